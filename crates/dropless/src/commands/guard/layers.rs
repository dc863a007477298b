//! All rules that should be in force, one layer before the other: what is spared, what the guard found, and the user's own.
//!
//! How they come into force is for whoever has the packets: the kernel's program, or the poll loops.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use measure::{Judged, Note};
use report::published::RulesInForce;
use rules::{RuleSet, Totals};

use super::watch::Watch;
use crate::plan::GuardPlan;
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::tags::ThroughXdp;
use crate::run::rulebook::{Rulebook, Rules, judged};

/// What is refused now, for want of memory say, may be taken later, and a flood waits for it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub struct Layers {
    /// The user's own.
    book: Rulebook,
    has_file: bool,
    is_dry: bool,
    /// Rules of the guard that limit a rate, at most.
    rates: usize,
    session: Option<Session>,
    through: ThroughXdp,
    /// What the session lives from, and what the user says is never blocked.
    spared: RuleSet,
    allowed: RuleSet,
    blocks: RuleSet,
    /// All that is in force.
    set: Arc<RuleSet>,
    /// What is in force is not what should be.
    is_due: bool,
    /// When what could not be put in force is tried again.
    again: Option<Instant>,
    /// The user's rules that were read and wait for their turn.
    next: Option<Rules>,
}

/// Rules on their way.
pub struct Due {
    pub set: Arc<RuleSet>,
    /// Those of the user that were read again, if that is why.
    own: Option<Rules>,
}

/// What a session lives from that this is typed in, which the user's own rules must let pass: whoever floods its port would
/// have all that is found refused otherwise.
pub fn spared(session: Option<Session>, own: &RuleSet) -> Result<RuleSet> {
    let Some(session) = session else {
        return Ok(RuleSet::joined(&[]));
    };
    session.is_kept_by(own)?;
    session.allowance()
}

impl Layers {
    /// The layers, and the rules that they begin with.
    pub fn new(
        plan: &GuardPlan,
        (session, through): (Option<Session>, ThroughXdp),
        [spared, allowed]: [RuleSet; 2],
        own: Rules,
    ) -> Result<(Self, Rules)> {
        let first = Rules::of(RuleSet::joined(&[&spared, &allowed, &own.set]))?;
        through.shows_tags_to(&first.set)?;
        let none = || PathBuf::from("default allow");
        let path = plan.rules.clone().unwrap_or_else(none);
        let layers = Self {
            book: Rulebook::new(&path, own),
            has_file: plan.rules.is_some(),
            is_dry: plan.dry_run,
            rates: plan.cap.rates,
            session,
            through,
            spared,
            allowed,
            blocks: RuleSet::joined(&[]),
            set: Arc::clone(&first.set),
            is_due: false,
            again: None,
            next: None,
        };
        Ok((layers, first))
    }

    /// The guard's rules may be others now.
    pub fn take(&mut self, watch: &mut Watch) {
        match watch.changed() {
            Some(Ok(blocks)) if !self.is_dry => {
                self.blocks = blocks;
                self.is_due = true;
            }
            Some(Err(error)) => self.book.fail(&error),
            _ => {}
        }
    }

    /// The same rules have to be put in force anew.
    pub fn renew(&mut self) {
        self.is_due = true;
    }

    /// One look: reads the user's rules again where that `is_asked`.
    pub fn look(&mut self, is_asked: bool) {
        if is_asked && self.has_file {
            self.book.ask();
        } else if is_asked {
            self.book
                .ask_in_vain(&anyhow!("there is no --rules that could be read again"));
        }
        if let Some(own) = self.book.read() {
            self.next = Some(own);
            self.is_due = true;
        }
        if self.again.take_if(|at| *at <= Instant::now()).is_some() {
            self.is_due = true;
        }
    }

    /// What should be in force and is not, said once: [`Layers::are_in_force`] or [`Layers::are_refused`] wants to hear what
    /// came of it.
    pub fn due(&mut self) -> Option<Due> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        let own = self.next.take().and_then(|own| match self.may_be(&own) {
            Ok(()) => Some(own),
            // What the guard found comes into force all the same.
            Err(error) => {
                self.book.refuse(&own, &error);
                None
            }
        });
        let last = own.as_ref().map_or(&self.book.rules().set, |own| &own.set);
        let set = Arc::new(RuleSet::joined(&[
            &self.spared,
            &self.allowed,
            &self.blocks,
            last,
        ]));
        Some(Due { set, own })
    }

    /// Whether the user's rules may come into force.
    fn may_be(&self, own: &Rules) -> Result<()> {
        super::leave_rates(own, self.rates)?;
        if let Some(session) = self.session {
            session.is_kept_by(&RuleSet::joined(&[&self.allowed, &own.set]))?;
        }
        self.through.shows_tags_to(&own.set)
    }

    /// They are in force since `now_ns`, as generation so and so; all before have met so much.
    pub fn are_in_force(
        &mut self,
        wanted: Due,
        generation: u64,
        (watch, now_ns, totals): (&mut Watch, u64, &Totals),
    ) {
        watch.in_force(&wanted.set, now_ns, totals);
        self.set = wanted.set;
        if let Some(own) = wanted.own {
            self.book.accept(own);
        }
        self.book.is_generation(generation);
    }

    /// They could not be put in force, and are tried again, without those of the user that were read again: who asked for
    /// these has an answer, and nobody else.
    pub fn are_refused(&mut self, wanted: &Due, error: &anyhow::Error) {
        match &wanted.own {
            Some(own) => self.book.refuse(own, error),
            None => self.book.fail(error),
        }
        self.again = Some(Instant::now() + AGAIN_AFTER);
    }

    /// What came of reading rules again, said once.
    pub fn says(&mut self) -> Option<String> {
        self.book.says()
    }

    /// That rules which the guard made were not put in force.
    pub fn failures(&self) -> Option<Note> {
        self.book.failures()
    }

    /// How they stand.
    pub fn told(&self, totals: &Totals) -> RulesInForce {
        self.book.told_of(&self.set, totals)
    }

    /// What they and those before them met.
    pub fn judged(&self, totals: &Totals) -> Judged {
        judged(&self.set, totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::GuardSource;

    /// With the rules of this file as the user's own.
    fn layers(path: PathBuf) -> Layers {
        let own = Rules::read(&path).unwrap();
        let plan = GuardPlan {
            source: GuardSource::File(PathBuf::new()),
            rules: Some(path),
            allow: None,
            thresholds: Vec::new(),
            learn_ns: None,
            factor: 5.0,
            floor_pps: 1,
            baseline: None,
            expire_ns: 1,
            cap: guard::Cap::default(),
            dry_run: false,
        };
        let none = || RuleSet::joined(&[]);
        let through = ThroughXdp::of_ports(&[]);
        Layers::new(&plan, (None, through), [none(), none()], own)
            .unwrap()
            .0
    }

    /// Somebody asks for the rules to be read again, and they have been.
    fn ask(layers: &mut Layers) {
        let begun = Instant::now();
        layers.look(true);
        while layers.next.is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "they are not read");
            std::thread::sleep(Duration::from_millis(1));
            layers.look(false);
        }
    }

    fn stand(layers: &Layers) -> RulesInForce {
        layers.told(&Totals::default())
    }

    /// Somebody asked, and what was read waits for rules of the guard that are being loaded.
    #[test]
    fn rules_of_the_guard_that_are_refused_answer_nobody_who_asked_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.rules");
        std::fs::write(&path, "deny udp dport 9\n").unwrap();
        let mut layers = layers(path);
        let error = anyhow!("no memory");
        layers.renew();
        let ours = layers.due().unwrap();
        ask(&mut layers);
        layers.are_refused(&ours, &error);
        let told = stand(&layers);
        assert_eq!((told.heard, told.asked, told.answered), (1, 0, 0));
        assert_eq!(told.refused, None, "those that were read are not refused");
        let failed = |layers: &Layers| {
            [stand(layers).failed, layers.failures()].map(|note| note.map(|note| note.code))
        };
        assert_eq!(failed(&layers), ["rules_failed"; 2].map(|code| Some(code.into())));
        let said = layers.says();
        assert!(
            said.is_some_and(|said| said.contains("no memory")),
            "but it is said"
        );
        // Now it is their turn, and somebody asks again meanwhile.
        let asked = layers.due().unwrap();
        ask(&mut layers);
        layers.are_refused(&asked, &error);
        let told = stand(&layers);
        assert_eq!((told.heard, told.asked, told.answered), (2, 1, 1));
        assert!(told.refused.is_some());
        assert!(stand(&layers).failed.is_some(), "nor are the guard's");
        layers.book.is_generation(2);
        assert_eq!(stand(&layers).failed, None);
        assert!(layers.failures().is_some_and(|note| note.text.contains("1 time")));
    }

    /// The guard could not put its own in force otherwise, once a flood is there.
    #[test]
    fn rules_read_again_leave_the_guard_its_rates() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.rules");
        let limits = |count: u16| (1..=count).map(|port| format!("rate 1pps per source udp dport {port}\n"));
        std::fs::write(&path, limits(8).collect::<String>()).unwrap();
        let mut layers = layers(path.clone());
        std::fs::write(&path, limits(9).collect::<String>()).unwrap();
        ask(&mut layers);
        assert!(layers.due().unwrap().own.is_none());
        let refused = stand(&layers).refused.map(|note| note.text);
        assert!(
            refused
                .as_ref()
                .is_some_and(|text| text.contains("--cap rates=7")),
            "{refused:?}"
        );
        assert_eq!(layers.book.rules().set.rules.len(), 8);
    }
}
