//! A filter in force: reads its rules again, tells how it stands, and sees whether it is still there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use measure::{Judged, Note};
use report::live::Live;
use report::out::Console;
use report::published::{Phase, State};
use rules::{RuleSet, Totals};
use xdp::{Kept, Ready, SampleCounts};

use super::samples::Writer;
use crate::plan::FilterPlan;
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::tags::ThroughXdp;
use crate::run::on_interface::{self, End, refusals, total};
use crate::run::privileges;
use crate::run::rulebook::{Rulebook, Rules};
use crate::run::signals::Interrupt;
use crate::status::{Expected, HealthCheck, StatusBoard};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Samples are read many times a second: those of a set that was replaced long ago are written.
const SETS_MAX: usize = 16;

/// What it came to.
pub struct Came {
    pub judged: Judged,
    /// What is to be said of how it was taken off: a note, or a reason to believe nothing.
    pub off: Result<Option<Note>, Note>,
    pub generation: u64,
    /// How often rules were read again, and how often refused.
    pub reloads: (u64, u64),
    pub lasted: Duration,
    /// What runs before this one had counted.
    pub before: Judged,
    pub samples: SampleCounts,
}

/// A filter in force.
pub struct Active<'p> {
    plan: &'p FilterPlan,
    kept: Kept,
    book: Rulebook,
    session: Option<Session>,
    /// Rules on their way into the kernel.
    loading: Option<(Rules, JoinHandle<Result<Ready, xdp::Error>>)>,
    begun: Instant,
    lasted: Duration,
    /// The latest sets, which samples are of.
    sets: VecDeque<(u32, Arc<RuleSet>)>,
    /// What runs before this one had counted.
    before: Judged,
    /// What was counted when it was last asked.
    totals: Totals,
    health: HealthCheck,
}

impl<'p> Active<'p> {
    pub fn new(kept: Kept, mut book: Rulebook, session: Option<Session>, plan: &'p FilterPlan) -> Self {
        book.is_generation(kept.generation().into());
        let before = kept.taken_over().map(|before| book.judged(before));
        Self {
            before: before.unwrap_or_default(),
            sets: [(kept.generation(), Arc::clone(&book.rules().set))].into(),
            plan,
            kept,
            book,
            session,
            loading: None,
            begun: Instant::now(),
            lasted: Duration::ZERO,
            totals: Totals::default(),
            health: HealthCheck::new(Expected::default()),
        }
    }

    /// Says how it stands.
    pub fn tell(&mut self, board: &StatusBoard) {
        board.tell(self.state(self.begun.elapsed()));
    }

    /// Until its end.
    pub fn go(
        &mut self,
        interrupt: &Interrupt,
        board: &StatusBoard,
        console: Console,
        mut samples: Option<&mut Writer>,
    ) -> End {
        let mut live = Live::stderr(console.quiet, privileges::drop_all);
        let planned = self.plan.duration_ns.map(Duration::from_nanos);
        let end = loop {
            let elapsed = self.begun.elapsed();
            if let Some(end) = End::of(&self.kept, interrupt, (elapsed, planned)) {
                break end;
            }
            self.look_after_rules(interrupt.take_reload());
            if let Some(writer) = &mut samples {
                self.write(writer);
            }
            if let Some(said) = self.book.says() {
                live.say(said.trim_end());
            }
            if board.is_due() || live.is_due(elapsed) {
                self.tell(board);
                live.update(&board.told());
            }
            let left = planned.map_or(LOOK_EVERY, |planned| planned.saturating_sub(elapsed));
            std::thread::sleep(LOOK_EVERY.min(left));
        };
        self.lasted = self.begun.elapsed();
        live.finish();
        end
    }

    /// Takes it off, and says what it met to the last packet.
    pub fn end(mut self, end: End, samples: Option<&mut Writer>) -> Result<Came> {
        let (totals, off) = if self.plan.stay && self.kept.is_in_force() {
            let totals = self.kept.totals();
            let totals = totals.map_err(|error| anyhow!("the last counts cannot be read: {error}"))?;
            (totals, Ok(None))
        } else {
            on_interface::take_off(&mut self.kept, &self.plan.interface, end)?
        };
        if let Some(writer) = samples {
            self.write(writer);
        }
        Ok(Came {
            off,
            judged: self.book.judged(&totals),
            generation: self.kept.generation().into(),
            reloads: self.book.asked_and_refused(),
            lasted: self.lasted,
            before: self.before.clone(),
            samples: self.samples(),
        })
    }

    /// Writes the samples that there are.
    fn write(&mut self, writer: &mut Writer) {
        let told = self.kept.samples().and_then(|samples| samples.take().ok());
        for sample in told.unwrap_or_default() {
            let set = self.sets.iter().find(|(number, _)| *number == sample.generation);
            writer.write(&sample, set.map(|(_, set)| &**set));
        }
        writer.flush();
    }

    fn samples(&mut self) -> SampleCounts {
        let counts = self.kept.samples().and_then(|samples| samples.counts().ok());
        counts.unwrap_or_default()
    }

    /// Rules are read, loaded and put in force, each as far as it is now.
    fn look_after_rules(&mut self, is_asked: bool) {
        if is_asked {
            self.book.ask();
        }
        if let Some((rules, ready)) = self.loading.take_if(|(_, loading)| loading.is_finished()) {
            let ready = ready
                .join()
                .map_err(|_| anyhow!("the thread that loaded them died"));
            let put = ready.and_then(|ready| {
                let ready = ready.map_err(|error| refusals::program(&error, &self.plan.interface))?;
                let put = self.kept.put(ready);
                put.map_err(|error| refusals::attach(error, &self.plan.interface))
            });
            match put {
                Ok(()) => {
                    self.sets.truncate(SETS_MAX);
                    self.sets
                        .push_front((self.kept.generation(), Arc::clone(&rules.set)));
                    self.book.accept(rules);
                    self.book.is_generation(self.kept.generation().into());
                }
                Err(error) => self.book.refuse(&rules, &error),
            }
        }
        if self.loading.is_some() {
            return;
        }
        if let Some(rules) = self.book.read() {
            self.load(rules);
        }
    }

    /// Loads them beside all this: of half a million prefixes that takes a second.
    fn load(&mut self, rules: Rules) {
        if let Some(Err(error)) = self.session.map(|session| session.is_kept_by(&rules.set)) {
            return self.book.refuse(&rules, &error);
        }
        if let Err(error) = ThroughXdp::interface(&self.plan.interface).shows_tags_to(&rules.set) {
            return self.book.refuse(&rules, &error);
        }
        let (maker, read) = (self.kept.maker(), rules.clone());
        let loading = std::thread::Builder::new()
            .name("load".into())
            .spawn(move || maker.make(&read.set, &read.tables));
        match loading {
            Ok(loading) => self.loading = Some((rules, loading)),
            Err(error) => self
                .book
                .refuse(&rules, &anyhow!("cannot start a thread: {error}")),
        }
    }

    /// How it stands.
    fn state(&mut self, elapsed: Duration) -> State {
        // What cannot be read now stands as it stood.
        if let Ok(totals) = self.kept.totals() {
            self.totals = totals;
        }
        let planned_s = self.plan.duration_ns.map(|ns| ns as f64 / 1e9);
        let mut state = State {
            phase: Phase::Filtering,
            elapsed_s: elapsed.as_secs_f64(),
            planned_s,
            done: planned_s.map(|planned| (elapsed.as_secs_f64() / planned).min(1.0)),
            rules: Some(self.book.told(&self.totals)),
            ..State::default()
        };
        total(&mut state, &self.book.judged(&self.totals), &self.before);
        state.health = self.health.judge(Instant::now(), &state);
        state
    }
}
