//! `dropless guard --dev`: samples of what arrives go to the guard, and its rules into force, before the user's own.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use host::Sys;
use measure::{GuardSummary, Judged, Note, Validity};
use nix::time::{ClockId, clock_gettime};
use report::live::Live;
use report::out::Console;
use report::published::{Ended, Phase, State};
use report::rundir::RunDir;
use rules::{RuleSet, Tables, Totals};
use xdp::{Kept, Mode, Ready, Wanted};

use super::sampler::Sampler;
use super::watch::Watch;
use super::{Args, allow_list, guard_of, keep_baseline, own_rules, tell};
use crate::plan::{GuardPlan, GuardSource};
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::received::{Level, Received};
use crate::run::on_interface::{self, refusals, total};
use crate::run::rulebook::{Rulebook, Rules, TOLD_MAX, judged};
use crate::run::signals::{Hangup, Interrupt};
use crate::run::{self, claim};
use crate::status::{Expected, HealthCheck, StatusBoard};

/// What the kernel refuses now, for want of memory say, it may take later, and a flood waits for it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Planned,
    Asked,
    /// Somebody took the rules off the interface, or that has gone.
    Displaced,
}

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
    let board = StatusBoard::open(&args.status.settings()?, "guard")?;
    let interrupt = Interrupt::install_with(Hangup::Reload)?;
    let console = args.output.console();
    let own = own_rules(plan)?;
    let allowed = allow_list(plan)?;
    let interface = host::device(&Sys::live(), name)?;
    let name = &interface.name;
    let index = host::interface::index(&Sys::live(), name).context("the interface has gone")?;
    let (_claim, removed) = claim::interface(name, index, true)?;
    let session = (!force).then(|| Session::through(name)).flatten();
    let spared = spared(session, &RuleSet::joined(&[&allowed, &own.set]))?;
    let guard = guard_of(plan, &RuleSet::joined(&[&spared, &allowed]), run::random())?;
    let first = Rules::of(RuleSet::joined(&[&spared, &allowed, &own.set]))?;
    let before = Level::of(name);
    let wanted = Wanted {
        interface: index,
        mode: if *generic { Mode::Generic } else { Mode::Native },
        groups: *groups,
        sampling: Sampler::first(),
    };
    let kept =
        Kept::start(&wanted, &first.set, &first.tables).map_err(|error| refusals::attach(error, name))?;
    let received = Received::begin(&interface, !generic, before, 0);
    let dir = run::directory(&args.output.runs, plan, &board)?;
    let in_force = kept
        .in_force()
        .context("the kernel does not say what is in force")?;
    let mode = match in_force.and_then(|found| found.mode) {
        Some(Mode::Native) => "native",
        Some(Mode::Generic) => "generic",
        None => "unknown",
    };
    if !console.quiet {
        announce(plan, name, mode, &dir);
    }
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
    let path = plan.rules.clone().unwrap_or_else(|| "default allow".into());
    let rules = ([spared, allowed], Rulebook::new(&path, own));
    let mut active = Active::new(
        plan,
        (name, session),
        (kept, first),
        rules,
        Watch::new(guard, &dir),
    );
    let end = active.go(
        duration_ns.map(Duration::from_nanos),
        (&interrupt, &board, console),
    );
    let level = Level::of(name);
    let lasted = active.begun.elapsed();
    active.end(&mut summary)?;
    summary.duration_s = lasted.as_secs_f64();
    summary.rate_pps = summary.judged.packets() as f64 / summary.duration_s.max(1e-3);
    summary.interrupted = end == End::Asked;
    summary.notes.extend(removed);
    judge(&mut summary, end, received.zip(level));
    if summary.reasons.is_empty() {
        summary.verdict = Validity::Valid;
    }
    if let Err(error) = keep_baseline(plan, &active.watch.guard) {
        summary
            .notes
            .push(Note::new("baseline_not_kept", format!("{error:#}")));
    }
    summary.notes.extend(board.note());
    tell_end(&summary, &board);
    let code = tell(&mut summary, &dir, console)?;
    board.linger(&interrupt);
    Ok(code)
}

/// What the session lives from that this is typed in, which the user's own rules must let pass: whoever floods its port would
/// have all that is found refused otherwise.
fn spared(session: Option<Session>, own: &RuleSet) -> Result<RuleSet> {
    let Some(session) = session else {
        return Ok(RuleSet::joined(&[]));
    };
    session.is_kept_by(own)?;
    session.allowance()
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
        let text = format!(
            "the rules were taken off {} by somebody else, or the interface has gone: what arrived since was not judged",
            summary.source
        );
        summary.reasons.push(Note::new("displaced", text));
        return;
    }
    let judged = summary.judged.packets();
    summary.interface_check = counters.and_then(|(received, level)| received.check(level, judged, false));
    match on_interface::judge(summary.interface_check, &summary.source, &summary.mode) {
        Ok(note) => summary.notes.extend(note),
        Err(reason) => summary.reasons.push(reason),
    }
}

fn tell_end(summary: &GuardSummary, board: &StatusBoard) {
    let ended = Ended {
        verdict: summary.verdict.name().into(),
        exit: summary.exit_code(),
        reasons: summary.reasons.clone(),
    };
    board.end(ended, |state| {
        total(state, &summary.judged, &Judged::default());
        state.elapsed_s = summary.duration_s;
        if let Some(rules) = &mut state.rules {
            rules.judged = Judged::busiest(&summary.judged, TOLD_MAX);
        }
    });
}

/// Rules on their way into the kernel.
struct Loading {
    /// Those of the user that were read again, if that is why.
    own: Option<Rules>,
    set: Arc<RuleSet>,
    every: u32,
    thread: JoinHandle<Result<Ready>>,
}

struct Active<'p> {
    plan: &'p GuardPlan,
    interface: String,
    kept: Kept,
    /// All rules that are in force.
    set: Arc<RuleSet>,
    book: Rulebook,
    /// What the session lives from, and what the user says is never blocked.
    spared: RuleSet,
    allowed: RuleSet,
    blocks: RuleSet,
    session: Option<Session>,
    watch: Watch,
    sampler: Sampler,
    every: u32,
    /// What is in force is not what should be.
    is_due: bool,
    /// When what could not be put in force is tried again.
    again: Option<Instant>,
    /// The user's rules that were read and wait for their turn.
    next: Option<Rules>,
    loading: Option<Loading>,
    begun: Instant,
    totals: Totals,
    health: HealthCheck,
}

impl<'p> Active<'p> {
    fn new(
        plan: &'p GuardPlan,
        (interface, session): (&str, Option<Session>),
        (kept, first): (Kept, Rules),
        ([spared, allowed], book): ([RuleSet; 2], Rulebook),
        watch: Watch,
    ) -> Self {
        Self {
            plan,
            interface: interface.to_owned(),
            kept,
            set: first.set,
            book,
            spared,
            allowed,
            blocks: RuleSet::joined(&[]),
            session,
            watch,
            sampler: Sampler::new(),
            every: Sampler::first().every,
            is_due: false,
            again: None,
            next: None,
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
        let mut live = Live::stderr(console.quiet);
        let end = loop {
            let elapsed = self.begun.elapsed();
            if !self.kept.is_in_force() {
                break End::Displaced;
            }
            if interrupt.is_set() {
                break End::Asked;
            }
            if planned.is_some_and(|planned| elapsed >= planned) {
                break End::Planned;
            }
            self.look_at_packets();
            self.look_after_rules(interrupt.take_reload());
            let said = self.watch.says();
            let news = self.book.says();
            if !said.is_empty() || news.is_some() {
                live.clear();
            }
            if let Some(news) = news {
                console.error(news.trim_end());
            }
            for line in said.iter().flat_map(|said| said.lines()) {
                if !console.quiet {
                    console.error(line);
                }
            }
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
        for sample in taken.and_then(Result::ok).into_iter().flatten() {
            self.watch.observe(&sample);
        }
        self.watch.advance(now_ns);
        if let Some(every) = self.sampler.wanted(now_ns) {
            self.every = every;
            self.is_due = true;
        }
        match self.watch.changed() {
            Some(Ok(blocks)) if !self.plan.dry_run => {
                self.blocks = blocks;
                self.is_due = true;
            }
            Some(Err(error)) => self.book.refuse(&error),
            _ => {}
        }
    }

    fn look_after_rules(&mut self, is_asked: bool) {
        if is_asked && self.plan.rules.is_some() {
            self.book.ask();
        } else if is_asked {
            self.book
                .ask_in_vain(&anyhow!("there is no --rules that could be read again"));
        }
        if let Some(own) = self.book.read() {
            self.next = Some(own);
            self.is_due = true;
        }
        if let Some(loading) = self.loading.take_if(|loading| loading.thread.is_finished()) {
            self.put(loading);
        }
        if self.again.take_if(|at| *at <= Instant::now()).is_some() {
            self.is_due = true;
        }
        if self.is_due && self.loading.is_none() {
            self.is_due = false;
            self.load();
        }
    }

    /// Loads what should be in force, beside all this.
    fn load(&mut self) {
        let mut own = self.next.take();
        let kept = own
            .as_ref()
            .zip(self.session)
            .map(|(own, session)| session.is_kept_by(&RuleSet::joined(&[&self.allowed, &own.set])));
        if let Some(Err(error)) = kept {
            // What the guard found comes into force all the same.
            self.book.refuse(&error);
            own = None;
        }
        let last = own.as_ref().map_or(&self.book.rules().set, |own| &own.set);
        let set = Arc::new(RuleSet::joined(&[
            &self.spared,
            &self.allowed,
            &self.blocks,
            last,
        ]));
        let (maker, all, every) = (
            self.kept.maker().with_every(self.every),
            Arc::clone(&set),
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
                self.loading = Some(Loading {
                    own,
                    set,
                    every,
                    thread,
                });
            }
            Err(error) => self.book.refuse(&anyhow!("cannot start a thread: {error}")),
        }
    }

    fn put(
        &mut self,
        Loading {
            own,
            set,
            every,
            thread,
        }: Loading,
    ) {
        let ready = thread
            .join()
            .map_err(|_| anyhow!("the thread that loaded them died"));
        let put = ready.and_then(|ready| ready).and_then(|ready| {
            self.sampler.loaded(ready.number(), every);
            self.kept
                .put(ready)
                .map_err(|error| refusals::attach(error, &self.interface))
        });
        match put {
            Ok(()) => {
                self.watch.in_force(&set, monotonic_ns());
                self.set = set;
                if let Some(own) = own {
                    self.book.accept(own);
                }
                self.book.is_generation(self.kept.generation().into());
            }
            Err(error) => {
                self.book.refuse(&error);
                self.again = Some(Instant::now() + AGAIN_AFTER);
            }
        }
    }

    fn state(&mut self, elapsed: Duration, planned: Option<Duration>) -> State {
        if let Ok(totals) = self.kept.totals() {
            self.totals = totals;
        }
        let judged = judged(&self.set, &self.totals);
        let mut rules = self.book.told(&self.totals);
        rules.rules = self.set.rules.len() as u64;
        rules.judged = judged.busiest(TOLD_MAX);
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
    fn end(&mut self, summary: &mut GuardSummary) -> Result<()> {
        let totals = self.kept.detach().or_else(|_| self.kept.totals());
        let totals = totals.map_err(|error| anyhow!("the last counts cannot be read: {error}"))?;
        self.look_at_packets();
        summary.judged = judged(&self.set, &totals);
        self.watch.finish(summary);
        summary.samples_missed = self.sampler.missed;
        Ok(())
    }
}

/// The clock of samples.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| Duration::from(now).as_nanos() as u64)
}
