//! `dropless guard --port --port`: forwarding whose rules come from what the guard sees of it, before the user's own.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use dataplane::forward::{Every, Samples, samples};
use guard::{Guard, Sample};
use host::PortKind;
use measure::{Clock, ForwardSummary, GuardSummary, Judged, Note};
use report::published::{RulesInForce, State};
use report::rundir::RunDir;
use rules::RuleSet;

use super::layers::{Due, Layers, spared};
use super::pace::{FIRST, Pace};
use super::watch::Watch;
use super::{Args, allow_list, guard_of, own_rules};
use crate::plan::{ForwardPlan, GuardPlan};
use crate::run::clock::now;
use crate::run::control::Look;
use crate::run::forward::{ForwardJob, Judges, TaskRules};
use crate::run::judging::Judging;
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::tags::ThroughXdp;
use crate::run::rulebook::Rules;
use crate::run::{self, Summary};

/// Samples of a task that may wait for control: more than a tenth of a second has when there are as many as may be.
const ROOM: usize = 1 << 13;

/// Runs it; the result is its exit code.
pub fn run(args: &Args, plan: &GuardPlan, forward: &ForwardPlan) -> Result<u8> {
    let own = own_rules(plan)?;
    let allowed = allow_list(plan)?;
    let session = session(forward);
    let spared = spared(session, &RuleSet::joined(&[&allowed, &own.set]))?;
    let guard = guard_of(plan, &RuleSet::joined(&[&spared, &allowed]), run::random())?;
    let (layers, first) = Layers::new(
        plan,
        (session, ThroughXdp::of_ports(forward.ports())),
        [spared, allowed],
        own,
    )?;
    let before = Before {
        plan: plan.clone(),
        guard,
        layers,
        first,
    };
    let plans = (forward.clone(), plan.clone());
    let job = ForwardJob::<Guarding>::new(plans, Some(before), args.run.output.quiet);
    forward.named(run::run(job, &args.run.settings()?))
}

/// The SSH session that this is typed in, where it goes over a port that the host has a part in. A port without a tap leaves
/// the host to its kernel, or cuts it off, whatever the rules are.
fn session(plan: &ForwardPlan) -> Option<Session> {
    let shared = plan.ports().iter().take(plan.kernel.len());
    let mut names = shared.filter_map(|port| match &port.kind {
        PortKind::Xdp { interface, .. } => Some(interface),
        _ => None,
    });
    names
        .find_map(|name| Session::through(name))
        .filter(|_| !plan.machine.force)
}

/// A guard that has no packets yet.
pub struct Before {
    plan: GuardPlan,
    guard: (Guard, Option<Note>),
    layers: Layers,
    first: Rules,
}

/// A guard whose packets go from port to port.
pub struct Guarding {
    plan: GuardPlan,
    watch: Watch,
    layers: Layers,
    judging: Judging,
    /// How many sets were put in force.
    generation: u64,
    loading: Option<Loading>,
    /// What the workers are taking over.
    arriving: Option<Due>,
    every: Arc<Every>,
    pace: Pace,
    tasks: Vec<Told>,
    /// The run's, as of the last look.
    clock: Option<Clock>,
    is_interrupted: bool,
    /// A dry run says so once.
    is_announced: bool,
}

/// What a task told.
struct Told {
    samples: Samples,
    taken: u64,
    /// Those that found no room, as of the last look.
    missed: u64,
}

/// Tables that are being made.
struct Loading {
    due: Due,
    thread: JoinHandle<Result<Rules>>,
}

impl Guarding {
    /// What was told since the last look goes to the guard, in its order. When it was, is the result; ns.
    fn look_at_samples(&mut self, clock: &Clock) -> u64 {
        let begun_ns = clock.ns(now()).0;
        let (mut told, mut missed) = (Vec::new(), 0);
        for task in &mut self.tasks {
            // No more than had room: the rest is for the next look.
            let more = std::iter::from_fn(|| task.samples.take()).take(ROOM);
            let before = told.len();
            told.extend(more.map(|sample| Sample {
                packet: sample.packet,
                len: sample.len,
                weight: sample.every,
                time_ns: clock.ns(sample.at).0,
            }));
            task.taken += (told.len() - before) as u64;
            missed += task.samples.missed() - std::mem::replace(&mut task.missed, task.samples.missed());
        }
        told.sort_by_key(|sample| sample.time_ns);
        self.watch.look(&told, missed, (begun_ns, clock.ns(now()).0));
        begun_ns
    }

    /// Samples that were taken, and those that found no room.
    fn counts(&self) -> (u64, u64) {
        let each = self.tasks.iter();
        each.map(|task| (task.taken, task.samples.missed()))
            .fold((0, 0), |sum, task| (sum.0 + task.0, sum.1 + task.1))
    }

    fn look_after_rules(&mut self, look: &Look<'_, '_>, now_ns: u64) {
        self.layers.take(&mut self.watch);
        self.layers.look(look.is_reload_asked);
        let arrived = self.judging.arrived(look.generations);
        if let Some(due) = arrived.and_then(|_| self.arriving.take()) {
            self.generation += 1;
            let totals = self.judging.totals();
            self.layers
                .are_in_force(due, self.generation, (&mut self.watch, now_ns, &totals));
        }
        if let Some(Loading { due, thread }) = self.loading.take_if(|loading| loading.thread.is_finished()) {
            let made = thread
                .join()
                .map_err(|_| anyhow!("the thread that made their tables died"));
            match made.and_then(|made| made) {
                Ok(rules) => {
                    self.judging.put(rules, look.generations);
                    self.arriving = Some(due);
                }
                Err(error) => self.layers.are_refused(&due, &error),
            }
        }
        if self.loading.is_none() && !self.judging.is_busy() {
            if let Some(due) = self.layers.due() {
                self.load(due);
            }
        }
    }

    /// Makes the tables of what should be in force, beside all this: those of large sets take their time.
    fn load(&mut self, due: Due) {
        let set = Arc::clone(&due.set);
        match std::thread::Builder::new()
            .name("load".into())
            .spawn(move || Rules::of(set))
        {
            Ok(thread) => self.loading = Some(Loading { due, thread }),
            Err(error) => self
                .layers
                .are_refused(&due, &anyhow!("cannot start a thread: {error}")),
        }
    }
}

impl Judges for Guarding {
    const COMMAND: &'static str = "guard";
    const DOING: &'static str = "guarding";
    /// A flood is not to wait for control.
    const TICK: Duration = Duration::from_millis(5);
    type Plan = GuardPlan;
    type Before = Before;
    type Summary = GuardSummary;

    fn begin(before: Before, dir: &RunDir) -> Self {
        Self {
            watch: Watch::new(before.guard, dir, before.plan.dry_run).keeping(before.plan.baseline.clone()),
            plan: before.plan,
            layers: before.layers,
            judging: Judging::new(before.first),
            generation: 1,
            loading: None,
            arriving: None,
            every: Every::new(FIRST),
            pace: Pace::new(),
            tasks: Vec::new(),
            clock: None,
            is_interrupted: false,
            is_announced: false,
        }
    }

    fn task(&mut self) -> TaskRules {
        let (judge, exchange) = self.judging.task();
        let (teller, samples) = samples(ROOM, &self.every, run::random());
        self.tasks.push(Told {
            samples,
            taken: 0,
            missed: 0,
        });
        TaskRules {
            judge,
            exchange,
            samples: Some(teller),
        }
    }

    fn look(&mut self, look: &Look<'_, '_>) {
        self.clock = Some(look.clock);
        self.is_interrupted |= look.is_interrupted;
        let now_ns = self.look_at_samples(&look.clock);
        let (taken, missed) = self.counts();
        if let Some(every) = self.pace.wanted(now_ns, taken + missed, self.every.get()) {
            self.every.set(every);
        }
        self.look_after_rules(look, now_ns);
    }

    fn says(&mut self) -> Option<String> {
        let is_first = !std::mem::replace(&mut self.is_announced, true);
        let dry = if is_first && self.plan.dry_run {
            "dry run: nothing is blocked\n"
        } else {
            ""
        };
        let mut text = dry.to_owned() + &self.layers.says().unwrap_or_default();
        for said in self.watch.says() {
            text += &said;
            text.push('\n');
        }
        Some(text).filter(|text| !text.is_empty())
    }

    fn told(&self) -> RulesInForce {
        self.layers.told(&self.judging.totals())
    }

    fn judged(&self) -> Judged {
        self.layers.judged(&self.judging.totals())
    }

    fn conclude(guarding: Option<Self>, forward: ForwardSummary) -> GuardSummary {
        let mut summary = GuardSummary {
            run: forward.run.clone(),
            verdict: forward.verdict,
            reasons: forward.reasons.clone(),
            notes: forward.notes.clone(),
            source: forward
                .ways
                .first()
                .map_or_else(String::new, |way| format!("{}, {}", way.from, way.to)),
            mode: "forward".to_owned(),
            rate_pps: forward.rate_rx_pps,
            duration_s: forward.duration_s,
            ..GuardSummary::default()
        };
        if let Some(mut guarding) = guarding {
            guarding.finish(&mut summary);
        }
        summary.forward = Some(Box::new(forward));
        summary
    }
}

impl Guarding {
    /// What it came to, once the workers have ended.
    fn finish(&mut self, summary: &mut GuardSummary) {
        summary.judged = self.judged();
        summary.dry_run = self.plan.dry_run;
        summary.interrupted = self.is_interrupted;
        let rules = self.plan.rules.as_ref();
        summary.rules = rules.map_or_else(String::new, |path| path.display().to_string());
        // Those of after the last look.
        if let Some(clock) = self.clock {
            self.look_at_samples(&clock);
        }
        self.watch.finish(summary, &self.judging.totals());
        summary.notes.extend(self.layers.failures());
    }
}

impl Summary for GuardSummary {
    fn total(&self, state: &mut State) {
        if let Some(forward) = &self.forward {
            forward.total(state);
        }
    }

    fn rated_s(&self) -> f64 {
        self.forward
            .as_ref()
            .map_or(self.duration_s, |forward| forward.rated_s())
    }
}
