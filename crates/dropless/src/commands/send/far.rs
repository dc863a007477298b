//! The far side's counters: asked before the first packet and after the last, where a neighbour was asked for its MAC address
//! anyway. A reflector of another make does not answer, and is not asked again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use dataplane::reflector_counters::Answers;
use dataplane::reply::ReplyQueue;
use measure::Note;
use wire::{DropReason, ReflectorCounters};

use super::load::{self, Load};
use super::wiring::Wiring;
use crate::plan::SendPlan;
use crate::run::open::OpenPort;
use crate::run::waiting::Waiting;

/// From a question to the next.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// How long an answer that covers the whole run is waited for: longer than a busy machine keeps a reflector off its core.
const PATIENCE: Duration = Duration::from_secs(3);
/// A look that began after the question is at most this many generations away.
const FRESH: u64 = 2;

struct Far {
    port: usize,
    question: Vec<u8>,
    replies: Arc<ReplyQueue>,
    answers: Arc<Answers>,
    before: Option<ReflectorCounters>,
    after: Option<ReflectorCounters>,
}

/// The far sides of all ports that can be asked.
pub struct FarSides(Vec<Far>);

#[derive(Default)]
pub struct Told {
    /// What all of them counted in the run, by name.
    pub counted: BTreeMap<String, u64>,
    /// How many told nothing, or not all of it.
    pub silent: usize,
    /// How many began anew in the run: what they told covers only what came after that.
    pub restarted: usize,
}

impl Told {
    /// Whether others were served, too: more came there to be returned than the run sent.
    pub fn is_shared(&self, sent: u64) -> bool {
        let of = |name: &str| self.counted.get(name).copied().unwrap_or(0);
        let refused: u64 = DropReason::ALL.iter().map(|reason| of(reason.name())).sum();
        of("received").saturating_sub(refused) > sent
    }

    /// What is shown of it: how much came there, and left, only where all of them tell, or the rest would seem lost on the way.
    pub fn shown(&self) -> impl Iterator<Item = (&String, &u64)> {
        let of_some = |name: &str| self.silent > 0 && ["received", "returned"].contains(&name);
        self.counted.iter().filter(move |(name, _)| !of_some(name))
    }

    /// What the user should know of it, where the run sent so many packets, and cannot explain so many of them.
    pub fn notes(&self, sent: u64, unexplained: u64) -> Vec<Note> {
        let mut notes = Vec::new();
        // Where unexplained packets may be: with a far side that does not tell.
        if self.silent > 0 && unexplained > 0 {
            notes.push(Note::new("far_side_silent", "the far side did not report its counters (it is not dropless reflect, or its answers were lost): what it lost is unexplained"));
        }
        if self.is_shared(sent) {
            notes.push(Note::new(
                "far_side_shared",
                "the far side served others during the run: what it counted is at most this run's",
            ));
        }
        if self.restarted > 0 {
            notes.push(Note::new("far_side_restarted", "the far side was restarted during the run: its counters begin there, and what it lost before is unexplained"));
        }
        notes
    }
}

impl FarSides {
    /// Those whose neighbours were asked for.
    pub fn new(plan: &SendPlan, loads: &[Load], wiring: &Wiring) -> Result<Self> {
        let mut sides = Vec::new();
        for (port, (load, mailbox)) in loads.iter().zip(&wiring.mailboxes).enumerate() {
            for (stream, before) in &load.before {
                sides.push(Far {
                    port,
                    question: ReflectorCounters::question(
                        &load::spec(plan, load, port, *stream, wiring.times.run),
                        mailbox.answers.nonce,
                    )?,
                    replies: Arc::clone(&mailbox.replies),
                    answers: Arc::clone(&mailbox.answers),
                    before: *before,
                    after: None,
                });
            }
        }
        Ok(Self(sides))
    }

    /// Asks those that answered before until they tell what they counted after this call. Nobody answers over a lost link.
    pub fn ask_after(&mut self, ports: &[OpenPort<'_>]) {
        let is_there = |far: &&mut Far| far.before.is_some() && !ports[far.port].tending.is_down();
        let accounts: Vec<u64> = self
            .0
            .iter()
            .filter_map(|far| Some(far.before?.account))
            .collect();
        // Of all together: behind those that are silent nobody waits for as long again.
        let mut silence = Duration::ZERO;
        for far in self.0.iter_mut().filter(is_there) {
            while far.answers.pop().is_some() {}
            silence += far.ask_for_all(&accounts, PATIENCE.saturating_sub(silence));
        }
    }

    /// What all of them counted meanwhile.
    pub fn told(&self) -> Told {
        let mut told = Told::default();
        let mut accounts = Vec::new();
        for far in &self.0 {
            let (Some(before), Some(after)) = (&far.before, &far.after) else {
                told.silent += 1;
                continue;
            };
            // Two of our ports may have asked the same one.
            if accounts.contains(&after.account) {
                continue;
            }
            accounts.push(after.account);
            let during = if after.account == before.account {
                after.since(before)
            } else {
                told.restarted += 1;
                *after
            };
            let mut add = |name: &str, count: u64| *told.counted.entry(name.into()).or_default() += count;
            add("received", during.received);
            add("returned", during.returned);
            for (name, count) in during.lost().filter(|(_, count)| *count > 0) {
                add(name, count);
            }
        }
        told
    }
}

impl Far {
    /// Asks until all is told, or for no longer than `patience`; of `accounts` those of others are late answers to earlier
    /// questions. Returns how long it was waited for in vain.
    fn ask_for_all(&mut self, accounts: &[u64], patience: Duration) -> Duration {
        let own = self.before.map(|before| before.account);
        let is_others = |account: u64| Some(account) != own && accounts.contains(&account);
        let mut waiting = Waiting::begin();
        let mut asked: Option<Instant> = None;
        let mut first = None;
        loop {
            let waited = waiting.look(true);
            if waited >= patience {
                return waited;
            }
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN) {
                self.replies.push(&self.question);
                asked = Some(Instant::now());
            }
            std::thread::sleep(Duration::from_millis(2));
            if let Some(counters) = self.answers.pop().filter(|told| !is_others(told.account)) {
                let first = *first.get_or_insert(counters.generation);
                if counters.generation.saturating_sub(first) >= FRESH {
                    self.after = Some(counters);
                    return Duration::ZERO;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(before: Option<ReflectorCounters>, after: Option<ReflectorCounters>) -> Far {
        Far {
            port: 0,
            question: Vec::new(),
            replies: Arc::default(),
            answers: Arc::new(Answers::to(0)),
            before,
            after,
        }
    }

    /// What a reflector with this account tells, when it has received so many.
    fn tells(account: u64, received: u64) -> ReflectorCounters {
        let mut told = ReflectorCounters::default();
        (told.account, told.received) = (account, received);
        told
    }

    #[test]
    fn several_far_sides_add_up_or_are_not_told_as_all() {
        let [one, two] = [1, 2].map(|account| (Some(tells(account, 100)), Some(tells(account, 600))));
        let twice = FarSides([one, two, two].map(|(before, after)| far(before, after)).into());
        let shown: Vec<_> = twice.told().shown().map(|(_, count)| *count).collect();
        assert_eq!((twice.told().silent, shown), (0, vec![1000, 0]));
        let half = FarSides(
            [one, (None, None)]
                .map(|(before, after)| far(before, after))
                .into(),
        );
        assert_eq!((half.told().silent, half.told().shown().count()), (1, 0));
    }

    #[test]
    fn what_another_far_side_tells_late_is_not_taken_for_its_own() {
        let mut far = far(Some(tells(2, 0)), None);
        let answers = Arc::clone(&far.answers);
        for generation in [0, FRESH] {
            for account in [1, 2] {
                let mut told = tells(account, 7 * account);
                told.generation = generation;
                let spec = wire::TemplateSpec::plain(0);
                let mut frame = ReflectorCounters::question(&spec, answers.nonce).unwrap();
                assert!(told.answer(&mut frame));
                answers.take_from(&frame);
            }
        }
        far.ask_for_all(&[1, 2], PATIENCE);
        assert_eq!(far.after.map(|after| after.received), Some(14));
    }

    #[test]
    fn a_far_side_that_does_not_tell_all_is_told_of() {
        let told = |silent, restarted, received| Told {
            counted: BTreeMap::from([("received".to_owned(), received)]),
            silent,
            restarted,
        };
        let codes = |told: &Told, unexplained| -> Vec<String> {
            let notes = told.notes(10, unexplained);
            notes.into_iter().map(|note| note.code.to_string()).collect()
        };
        assert!(codes(&told(0, 0, 10), 5).is_empty());
        assert!(codes(&told(1, 0, 10), 0).is_empty(), "nothing is unexplained");
        assert_eq!(codes(&told(1, 0, 10), 5), ["far_side_silent"]);
        assert_eq!(codes(&told(0, 0, 11), 0), ["far_side_shared"]);
        assert_eq!(codes(&told(0, 1, 10), 0), ["far_side_restarted"]);
    }
}
