//! `dropless guard --dev`: samples of what arrives go to the guard, and its rules into force, before the user's own.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use host::Sys;
use measure::{GuardSummary, Judged, Validity};
use nix::time::{ClockId, clock_gettime};
use report::live::Live;
use report::out::Console;
use report::published::{Phase, State};
use report::rundir::RunDir;
use rules::{RuleSet, Tables, Totals};
use xdp::{Kept, Mode, Ready, Wanted};

use super::layers::{Due, Layers, spared};
use super::sampler::Sampler;
use super::watch::Watch;
use super::{Args, allow_list, guard_of, own_rules};
use crate::about::About as _;
use crate::plan::{GuardPlan, GuardSource};
use crate::run::finish::Finish;
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::received::{Level, Received};
use crate::run::on_interface::tags::{self, ThroughXdp};
use crate::run::on_interface::{self, End, refusals, total};
use crate::run::rulebook::TOLD_MAX;
use crate::run::signals::{Hangup, Interrupt};
use crate::run::{self, claim, privileges};
use crate::status::{Expected, HealthCheck, StatusBoard};

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs it; the result is its exit code.
pub fn run(args: &Args, plan: &GuardPlan) -> Result<u8> {
    let GuardSource::Interface {
        name,
        generic,
        groups,
        duration_ns,
        force,
    } = &plan.source
    else {
        return Err(anyhow!("--dev is wanted"));
    };
    let board = StatusBoard::open(&args.run.status.settings()?, "guard")?;
    let interrupt = Interrupt::install_with(Hangup::Reload)?;
    let console = args.run.output.console();
    let own = own_rules(plan)?;
    let allowed = allow_list(plan)?;
    let interface = host::device(&Sys::live(), name, "--dev ").about("--dev")?;
    let name = &interface.name;
    let index = host::link::index(&Sys::live(), name).context("the interface has gone")?;
    let (_claim, removed) = claim::interface(name, index, true).about("--dev")?;
    let session = (!force).then(|| Session::through(name)).flatten();
    let spared = spared(session, &RuleSet::joined(&[&allowed, &own.set]))?;
    let guard = guard_of(plan, &RuleSet::joined(&[&spared, &allowed]), run::random())?;
    let (layers, first) = Layers::new(
        plan,
        (session, ThroughXdp::interface(name)),
        [spared, allowed],
        own,
    )?;
    let before = Level::of(index);
    let wanted = Wanted {
        interface: index,
        mode: if *generic { Mode::Generic } else { Mode::Native },
        groups: *groups,
        sampling: Sampler::first(),
    };
    let kept = Kept::start(&wanted, &first.set, &first.tables);
    let kept = kept
        .map_err(|error| refusals::attach(error, name))
        .about("--dev")?;
    let rights = on_interface::drop_rights(name);
    let received = Received::begin(&interface, !generic, before, 0);
    let dir = run::directory(&args.run.output.place(), plan, &board)?;
    let mode = on_interface::mode_in_force(&kept)?;
    let rules = plan
        .rules
        .as_ref()
        .map_or_else(String::new, |path| path.display().to_string());
    let mut summary = GuardSummary {
        run: dir.path().display().to_string(),
        source: name.clone(),
        mode: mode.to_owned(),
        dry_run: plan.dry_run,
        rules,
        ..GuardSummary::default()
    };
    let watch = Watch::new(guard, &dir, plan.dry_run).keeping(plan.baseline.clone());
    let mut active = Active::new(name, kept, layers, watch);
    let planned = duration_ns.map(Duration::from_nanos);
    // Whoever waits for the line below finds the rules on the board.
    board.tell(active.state(active.begun.elapsed(), planned));
    if !console.quiet {
        announce(plan, name, mode, &dir);
    }
    let end = active.go(planned, (&interrupt, &board, console));
    let level = Level::of(index);
    let lasted = active.begun.elapsed();
    active.end(&mut summary, end)?;
    summary.duration_s = lasted.as_secs_f64();
    summary.rate_pps = summary.judged.packets() as f64 / summary.duration_s.max(1e-3);
    summary.interrupted = end == End::Asked;
    summary.notes.extend(removed);
    summary.notes.extend(rights);
    summary.notes.extend(tags::notes(&interface, mode));
    judge(&mut summary, end, received.zip(level));
    if summary.reasons.is_empty() {
        summary.verdict = Validity::Valid;
    }
    let finish = Finish {
        dir: &dir,
        console,
        board: Some(&board),
    };
    let exit = finish.with(summary, settle)?;
    board.linger(&interrupt);
    Ok(exit)
}

fn announce(plan: &GuardPlan, name: &str, mode: &str, dir: &RunDir) {
    let dry = if plan.dry_run {
        ", and blocks nothing (dry run)"
    } else {
        ""
    };
    let text = format!(
        "guarding {name} ({mode} mode){dry}; Ctrl-C ends it; results in {}\n",
        dir.path().display()
    );
    let _ = report::out::print_stderr(&text);
}

/// Whether the counts may be believed.
fn judge(summary: &mut GuardSummary, end: End, counters: Option<(Received, Level)>) {
    if end == End::Displaced {
        let reason = on_interface::displaced(&summary.source, summary.duration_s);
        summary.reasons.push(reason);
        return;
    }
    let judged = summary.judged.packets();
    summary.interface_check = counters.and_then(|(received, level)| received.check(level, judged, false));
    match on_interface::judge(summary.interface_check, &summary.source, &summary.mode) {
        Ok(note) => summary.notes.extend(note),
        Err(reason) => summary.reasons.push(reason),
    }
}

/// Makes the state that was told last what the result says.
fn settle(summary: &GuardSummary, state: &mut State) {
    total(state, &summary.judged, &Judged::default());
    state.elapsed_s = summary.duration_s;
    if let Some(rules) = &mut state.rules {
        rules.judged = Judged::busiest(&summary.judged, TOLD_MAX);
    }
}

/// Rules on their way into the kernel.
struct Loading {
    due: Due,
    every: u32,
    thread: JoinHandle<Result<Ready>>,
}

struct Active {
    interface: String,
    kept: Kept,
    layers: Layers,
    watch: Watch,
    sampler: Sampler,
    every: u32,
    loading: Option<Loading>,
    begun: Instant,
    totals: Totals,
    health: HealthCheck,
}

impl Active {
    fn new(interface: &str, kept: Kept, layers: Layers, watch: Watch) -> Self {
        Self {
            interface: interface.to_owned(),
            kept,
            layers,
            watch,
            sampler: Sampler::new(),
            every: Sampler::first().every,
            loading: None,
            begun: Instant::now(),
            totals: Totals::default(),
            health: HealthCheck::new(Expected::default()),
        }
    }

    fn go(
        &mut self,
        planned: Option<Duration>,
        (interrupt, board, console): (&Interrupt, &StatusBoard, Console),
    ) -> End {
        let mut live = Live::stderr(console.quiet, privileges::drop_all);
        let end = loop {
            let elapsed = self.begun.elapsed();
            if let Some(end) = End::of(&self.kept, interrupt, (elapsed, planned)) {
                break end;
            }
            self.look_at_packets();
            self.look_after_rules(interrupt.take_reload());
            let said = self.watch.says();
            if let Some(news) = self.layers.says() {
                live.say(news.trim_end());
            }
            let said = said.iter().flat_map(|said| said.lines());
            said.filter(|_| !console.quiet).for_each(|line| live.say(line));
            if board.is_due() || live.is_due(elapsed) {
                board.tell(self.state(elapsed, planned));
                live.update(&board.told());
            }
            std::thread::sleep(LOOK_EVERY);
        };
        live.finish();
        end
    }

    fn look_at_packets(&mut self) {
        let now_ns = monotonic_ns();
        let taken = self.kept.samples().map(|samples| self.sampler.take(samples));
        // What cannot be read now is read the next time.
        let (samples, missed) = taken.and_then(Result::ok).unwrap_or_default();
        self.watch.look(&samples, missed, (now_ns, monotonic_ns()));
        if let Some(every) = self.sampler.wanted(now_ns) {
            self.every = every;
            // The program has its share among its constants.
            self.layers.renew();
        }
        self.layers.take(&mut self.watch);
    }

    fn look_after_rules(&mut self, is_asked: bool) {
        self.layers.look(is_asked);
        if let Some(loading) = self.loading.take_if(|loading| loading.thread.is_finished()) {
            self.put(loading);
        }
        if self.loading.is_none() {
            if let Some(due) = self.layers.due() {
                self.load(due);
            }
        }
    }

    /// Loads what should be in force, beside all this.
    fn load(&mut self, due: Due) {
        let (maker, all, every) = (
            self.kept.maker().with_every(self.every),
            Arc::clone(&due.set),
            self.every,
        );
        let name = self.interface.clone();
        let make = move || {
            let tables = Tables::new(&all)?;
            maker
                .make(&all, &tables)
                .map_err(|error| refusals::program(&error, &name))
        };
        match std::thread::Builder::new().name("load".into()).spawn(make) {
            Ok(thread) => {
                self.loading = Some(Loading { due, every, thread });
            }
            Err(error) => self
                .layers
                .are_refused(&due, &anyhow!("cannot start a thread: {error}")),
        }
    }

    fn put(&mut self, loading: Loading) {
        let ready = loading
            .thread
            .join()
            .map_err(|_| anyhow!("the thread that loaded them died"));
        let put = ready.and_then(|ready| ready).and_then(|ready| {
            self.sampler.loaded(ready.number(), loading.every);
            self.kept
                .put(ready)
                .map_err(|error| refusals::attach(error, &self.interface))
        });
        match put {
            Ok(()) => {
                let (generation, now) = (self.kept.generation().into(), monotonic_ns());
                if let Ok(totals) = self.kept.totals() {
                    self.totals = totals;
                }
                let told = (&mut self.watch, now, &self.totals);
                self.layers.are_in_force(loading.due, generation, told);
            }
            Err(error) => self.layers.are_refused(&loading.due, &error),
        }
    }

    fn state(&mut self, elapsed: Duration, planned: Option<Duration>) -> State {
        if let Ok(totals) = self.kept.totals() {
            self.totals = totals;
        }
        let judged = self.layers.judged(&self.totals);
        let rules = self.layers.told(&self.totals);
        let planned_s = planned.map(|planned| planned.as_secs_f64());
        let mut state = State {
            phase: Phase::Filtering,
            elapsed_s: elapsed.as_secs_f64(),
            planned_s,
            done: planned_s.map(|planned| (elapsed.as_secs_f64() / planned).min(1.0)),
            rules: Some(rules),
            ..State::default()
        };
        total(&mut state, &judged, &Judged::default());
        state.health = self.health.judge(Instant::now(), &state);
        state
    }

    /// Takes the rules off, and says what they met to the last packet.
    fn end(&mut self, summary: &mut GuardSummary, end: End) -> Result<()> {
        let (totals, off) = on_interface::take_off(&mut self.kept, &self.interface, end)?;
        match off {
            Ok(note) => summary.notes.extend(note),
            Err(reason) => summary.reasons.push(reason),
        }
        self.look_at_packets();
        summary.not_judged = self.sampler.not_judged();
        summary.judged = self.layers.judged(&totals);
        self.watch.finish(summary, &totals);
        summary.notes.extend(self.layers.failures());
        Ok(())
    }
}

/// The clock of samples.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| Duration::from(now).as_nanos() as u64)
}
