//! The control of a run: takes the workers through their phases, tells, and watches links, signals and stalls.
//!
//! One thread, which no worker ever waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::Phase;
use dataplane::worker::{Control, WorkerCounters};
use host::cores::{Core, CoreSet};
use measure::verdict::LinkLoss;
use measure::{Clock, Note, Ticks};
use report::live::Live;
use report::rundir::RunDir;

use super::clock::now;
use super::link_losses::LinkLosses;
use super::links;
use super::open::OpenPort;
use super::peer::{self, Patience, Wait};
use super::placement::Turn;
use super::privileges;
use super::signals::Interrupt;
use super::tap::Taps;
use super::workers::Running;
use super::{Active, Next, Run};
use crate::explain::Explainer;
use crate::status::{Drivers, Expected, HealthCheck, StallWatch};

/// How often control looks where missed packets are joined to stalls: the finer, the surer.
const TICK_EXPLAIN: Duration = Duration::from_millis(5);

/// How long the workers of a run without a schedule are waited for: longer than the kernel lets real-time threads keep them from
/// their cores.
const READY: Duration = Duration::from_secs(2);

/// What a job sees when it is asked.
pub struct Look<'w, 'e> {
    /// The ports, without the queues that the job took.
    pub ports: &'w mut [OpenPort<'e>],
    /// When the first packet was due.
    pub start: Ticks,
    pub clock: Clock,
    /// Of each port, how its link was lost so far.
    pub link_losses: Vec<LinkLosses>,
    /// Rounds that each worker has made.
    pub rounds: Vec<u64>,
    pub is_interrupted: bool,
    /// For a look that takes its time: it may be interrupted meanwhile.
    pub interrupt: &'w Interrupt,
    /// Somebody wants what can be read again to be read again: so at one look.
    pub is_reload_asked: bool,
    pub worker_died: bool,
    /// How workers are given something.
    pub generations: Generations<'w>,
    pub dir: &'w RunDir,
}

/// Makes the workers take what was left for their tasks.
#[derive(Clone, Copy)]
pub struct Generations<'w> {
    control: &'w Control,
    workers: &'w [Arc<WorkerCounters>],
}

impl<'w> Generations<'w> {
    pub fn new(control: &'w Control, workers: &'w [Arc<WorkerCounters>]) -> Self {
        Self { control, workers }
    }

    /// Has all tasks renewed soon, which [`Generations::is_acknowledged`] then says of the number that is returned.
    pub fn publish(&self) -> u64 {
        self.control.publish_generation()
    }

    /// Whether no task uses any more what it had before this generation.
    pub fn is_acknowledged(&self, generation: u64) -> bool {
        Control::is_acknowledged(generation, self.workers.iter().map(|worker| &**worker))
    }
}

impl Look<'_, '_> {
    /// Time since the first packet was due.
    pub fn elapsed(&self) -> Duration {
        self.since(self.start)
    }

    /// Whether a link was lost so long ago, ns, and is not back.
    pub fn has_lost_link_for(&self, ns: u64) -> bool {
        let at_ns = self.elapsed().as_nanos() as u64;
        let mut lost = self.link_losses.iter().filter_map(LinkLosses::down_since);
        lost.any(|since| at_ns.saturating_sub(since) > ns)
    }

    pub fn since(&self, begun: Ticks) -> Duration {
        Duration::from_nanos(self.clock.ns_from_ticks(now().since(begun)))
    }
}

/// What control saw of a run.
pub struct Seen {
    /// How long after the first packet was due the last worker polled, where there is a schedule.
    pub late_ns: u64,
    /// That a run without a schedule began before its workers had taken what waited for them.
    pub behind: Option<Note>,
    pub link_losses: Vec<LinkLoss>,
    pub is_interrupted: bool,
    pub explainer: Option<Explainer>,
}

pub struct Watch<'w, 'e> {
    look: Look<'w, 'e>,
    waits: Vec<Wait>,
    run: &'w Run<'w, 'e>,
    live: Live,
    explainer: Option<Explainer>,
    stalls: StallWatch<'w>,
    taps: Taps,
    health: HealthCheck,
    drivers: Drivers,
    /// When links were last looked at, ns after the start.
    looked_ns: u64,
    /// See [`Seen`].
    late_ns: u64,
    /// The cores whose workers have not taken yet what waited for them.
    behind: Vec<usize>,
    /// Nothing waits for workers that only send, however late they are.
    is_one_way: bool,
    /// Nothing more is to be sent but what the ports have.
    is_draining: bool,
}

impl<'w, 'e> Watch<'w, 'e> {
    /// Watches `ports`; the first packet is due at `start`. The run is healthy while it does what is `expected`.
    pub(super) fn new(
        run: &'w Run<'w, 'e>,
        ports: &'w mut [OpenPort<'e>],
        explainer: Option<Explainer>,
        (stalls, taps): (StallWatch<'w>, Taps),
        expected: Expected,
        (generations, clock, start): (Generations<'w>, Clock, Ticks),
    ) -> Self {
        let subject = matches!(run.needs.patience, Patience::Forever(_));
        let waits = ports.iter().filter(|_| subject);
        Self {
            waits: waits
                .map(|open| Wait::new(&open.uri, run.needs.patience))
                .collect(),
            looked_ns: 0,
            late_ns: 0,
            behind: Vec::new(),
            is_one_way: expected.one_way,
            is_draining: false,
            look: Look {
                link_losses: ports.iter().map(|_| LinkLosses::default()).collect(),
                ports,
                start,
                clock,
                rounds: Vec::new(),
                is_interrupted: false,
                interrupt: run.interrupt,
                is_reload_asked: false,
                worker_died: false,
                generations,
                dir: run.dir,
            },
            run,
            live: Live::stderr(run.settings.console.quiet, privileges::drop_all),
            explainer,
            stalls,
            taps,
            health: HealthCheck::new(expected),
            drivers: Drivers::default(),
        }
    }

    /// What ports lose from now on belongs to the run, and is explained.
    pub fn begin(&mut self) {
        self.look.ports.iter_mut().for_each(OpenPort::begin);
        if let Some(explainer) = &mut self.explainer {
            explainer.look(self.look.ports);
        }
    }

    /// Takes the run through its phases.
    pub fn run<J: Active>(
        &mut self,
        control: &Control,
        running: &Running<'_>,
        job: &mut J,
        (has_schedule, turn): (bool, Turn),
    ) {
        // Nothing waits for it: what workers receive before the run belongs to nobody.
        let mut turn = Some(turn);
        let begun = Instant::now();
        while running.ended_early().is_none() {
            let is_ready = if has_schedule {
                control.ready() >= running.count()
            } else {
                // Without one nothing waits for the last worker for ever, nor do those who are looked into wait.
                let is_late = begun.elapsed() > READY || self.run.interrupt.is_set();
                if !self.look.ports.is_empty() {
                    self.behind = running.behind();
                }
                self.behind.is_empty() || is_late
            };
            if is_ready {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if has_schedule {
            self.late_ns = self.look.elapsed().as_nanos() as u64;
        }
        if !J::COUNTS_EARLY {
            self.begin();
        }
        self.notice(running);
        let begins = job.ready(&self.look);
        self.say(begins);
        if !has_schedule {
            let begun = Instant::now();
            self.run.board.begin(begun, &job.status(&self.look).total);
        }
        control.set(Phase::Run);
        let mut all_poll = false;
        loop {
            self.tick(running, job);
            // Until then it is starting.
            all_poll |= control.ready() >= running.count();
            turn = turn.filter(|_| !all_poll);
            self.taps.look(self.look.generations);
            match job.step(&self.look) {
                Next::GoOn => {}
                Next::Drain => {
                    control.set(Phase::Drain);
                    self.is_draining = true;
                }
                Next::Stop => break,
            }
            self.say(job.says());
            // A line each second is of that second: it does not wait for the board.
            if all_poll && (self.run.board.is_due() || self.live.is_due(self.look.elapsed())) {
                self.tell(job);
            }
        }
        self.run.board.stopping();
        control.set(Phase::Stop);
        job.stopped();
        // What follows can take its time, and the tracer's newest events take the place of its oldest.
        if let Some(explainer) = &mut self.explainer {
            explainer.look(self.look.ports);
        }
    }

    /// To whoever looks on, without waiting for a terminal.
    fn say(&self, lines: Option<String>) {
        if let Some(lines) = lines.filter(|_| !self.run.settings.console.quiet) {
            lines.lines().for_each(|line| self.live.say(line));
        }
    }

    /// Waits for the next look, and looks after what every run has.
    fn tick<J: Active>(&mut self, running: &Running<'_>, job: &J) {
        let tick = self
            .explainer
            .as_ref()
            .map_or(self.run.needs.tick, |_| TICK_EXPLAIN);
        let is_calling = self.look.ports.iter().any(OpenPort::is_calling);
        let tick = if is_calling { tick.min(peer::LOOK) } else { tick };
        let wakes = job.wakes_at().map(|at| at.since(now()));
        let until = wakes.map(|ticks| Duration::from_nanos(self.look.clock.ns_from_ticks(ticks)));
        std::thread::sleep(until.map_or(tick, |until| until.min(tick)));
        if let Some(explainer) = &mut self.explainer {
            explainer.look(self.look.ports);
        }
        self.check_links();
        if self.is_draining {
            self.look.ports.iter().for_each(|open| {
                open.send_the_rest();
            });
        }
        self.notice(running);
    }

    fn notice(&mut self, running: &Running<'_>) {
        self.look.rounds = running.rounds();
        self.look.is_interrupted = self.run.interrupt.is_set();
        self.look.is_reload_asked = self.run.interrupt.take_reload();
        let mut ports = self.look.ports.iter();
        self.look.worker_died = running.ended_early().is_some() || ports.any(|port| port.failure().is_some());
    }

    fn check_links(&mut self) {
        let at_ns = self
            .look
            .clock
            .ns(now())
            .since(self.look.clock.ns(self.look.start));
        let looked_ns = std::mem::replace(&mut self.looked_ns, at_ns);
        let ports = self.look.ports.iter_mut().zip(&mut self.look.link_losses);
        for (index, (open, losses)) in ports.enumerate() {
            let up = open.tend().up;
            let is_awaited = !up && open.tending.losses == 0;
            if let Some(wait) = self.waits.get_mut(index).filter(|_| is_awaited) {
                if let Some(remark) = wait.remark() {
                    self.live.say(&remark);
                }
                continue;
            }
            let loss = |at_ns, down_ns| LinkLoss {
                port: open.uri.to_string(),
                at_ns,
                down_ns,
                more: 0,
            };
            match (up, losses.down_since()) {
                (false, None) => losses.push(loss(at_ns, None)),
                // It was away between two looks, at most for as long as lies between these.
                (true, None) if open.tending.flapped => {
                    losses.push(loss(looked_ns, Some(at_ns.saturating_sub(looked_ns))));
                }
                (true, Some(_)) => losses.end(at_ns),
                _ => {}
            }
        }
    }

    /// Tells how it stands: on the status board, and from there in the terminal.
    fn tell<J: Active>(&mut self, job: &J) {
        self.drivers.ask(self.look.ports);
        let mut state = job.status(&self.look);
        state.elapsed_s = self.look.elapsed().as_secs_f64();
        state.add_places(self.drivers.places());
        job.settle(&mut state);
        state.ports = self.drivers.ports().to_vec();
        state.workers = self.stalls.look(state.elapsed_s);
        state.stalls = self.stalls.recent();
        state.pool = self.run.pool_level();
        state.health = self.health.judge(Instant::now(), &state);
        self.run.board.tell(state);
        self.live.update(&self.run.board.told());
    }

    /// After the workers have ended: tells the last of it, and takes the display away.
    pub fn finish<J: Active>(mut self, job: &mut J) -> Seen {
        if links::drain(self.look.ports) {
            self.check_links();
        }
        job.joined(self.look.dir, self.look.ports);
        // With the last rows, what was told equals the result.
        self.tell(job);
        self.live.finish();
        let losses = self.look.link_losses.iter().flat_map(LinkLosses::told);
        let mut link_losses: Vec<LinkLoss> = losses.cloned().collect();
        link_losses.sort_by_key(|loss| loss.at_ns);
        Seen {
            late_ns: self.late_ns,
            behind: behind(&self.behind, self.is_one_way),
            link_losses,
            is_interrupted: self.look.is_interrupted,
            explainer: self.explainer,
        }
    }
}

/// What waited for the workers of these cores counts as what came in the run.
fn behind(cores: &[usize], is_one_way: bool) -> Option<Note> {
    let text = format!(
        "the run began before the workers on {} had taken what waited for them (something else had their cores, or it was interrupted): rows and rates have that, too, and are too high by it",
        cores
            .iter()
            .map(|core| Core(*core as u32))
            .collect::<CoreSet>()
            .in_words()
    );
    (!cores.is_empty() && !is_one_way).then(|| Note::new("began_behind", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_began_without_its_workers_says_so() {
        assert_eq!(behind(&[], false), None);
        assert_eq!(behind(&[1, 3], true), None, "a replay takes nothing");
        let note = behind(&[1, 3], false).unwrap();
        assert_eq!(note.code, "began_behind");
        assert!(
            note.text.contains("the workers on cores 1,3 had"),
            "{}",
            note.text
        );
    }
}
