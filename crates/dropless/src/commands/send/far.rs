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
    /// What the answers to its question repeat: no other far side's do.
    nonce: u64,
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
    /// How many told something else's account than before: they began anew in the run, or another one has taken their place,
    /// and nobody knows what was lost before that, or how much of what is told now belongs to the run.
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
        let of_some =
            |name: &str| self.silent + self.restarted > 0 && ["received", "returned"].contains(&name);
        self.counted.iter().filter(move |(name, _)| !of_some(name))
    }

    /// What the user should know of it, where the run sent so many packets, and cannot explain so many of them.
    pub fn notes(&self, sent: u64, unexplained: u64) -> Vec<Note> {
        let mut notes = Vec::new();
        // Where unexplained packets may be: with a far side that does not tell.
        if self.silent > 0 && unexplained > 0 {
            notes.push(Note::new("far_side_silent", "the far side did not report its counters (it is not dropless reflect, its answers were lost, or the run was interrupted before they came): what it lost is unexplained"));
        }
        if self.is_shared(sent) {
            notes.push(Note::new(
                "far_side_shared",
                "the far side served others during the run: what it counted is at most this run's",
            ));
        }
        if self.restarted > 0 {
            notes.push(Note::new("far_side_restarted", "the far side was restarted during the run, or another one took its place: what was lost there is unexplained"));
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
                let spec = load::spec(plan, load, port, *stream, wiring.times.run);
                let nonce = crate::run::random();
                sides.push(Far {
                    port,
                    nonce,
                    question: ReflectorCounters::question(&spec, nonce)?,
                    replies: Arc::clone(&mailbox.replies),
                    answers: Arc::clone(&mailbox.answers),
                    before: *before,
                    after: None,
                });
            }
        }
        Ok(Self(sides))
    }

    /// Asks those that answered before until they tell what they counted after this call, or `stop` says so. Nobody answers
    /// over a lost link.
    pub fn ask_after(&mut self, ports: &[OpenPort<'_>], stop: impl Fn() -> bool) {
        let is_there = |far: &&mut Far| far.before.is_some() && !ports[far.port].tending.is_down();
        // Of all together: behind those that are silent nobody waits for as long again.
        let mut silence = Duration::ZERO;
        for far in self.0.iter_mut().filter(is_there) {
            silence += far.ask_for_all(PATIENCE.saturating_sub(silence), &stop);
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
            let Some(during) = after.since(before) else {
                told.restarted += 1;
                continue;
            };
            // Two of our ports may have asked the same one.
            if accounts.contains(&after.account) {
                continue;
            }
            accounts.push(after.account);
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
    /// Asks until all is told, or `stop` says so, or for no longer than `patience`. Returns how long it was waited for in vain.
    fn ask_for_all(&mut self, patience: Duration, stop: &impl Fn() -> bool) -> Duration {
        self.answers.expect(self.nonce);
        let mut waiting = Waiting::begin();
        let mut asked: Option<Instant> = None;
        let mut first: Option<ReflectorCounters> = None;
        loop {
            let waited = waiting.look(true);
            if waited >= patience || stop() {
                return waited;
            }
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN) {
                self.replies.push(&self.question);
                asked = Some(Instant::now());
            }
            std::thread::sleep(Duration::from_millis(2));
            if let Some(counters) = self.answers.pop(self.nonce) {
                match first.and_then(|first| counters.looks_since(&first)) {
                    Some(looks) if looks >= FRESH => {
                        self.after = Some(counters);
                        return Duration::ZERO;
                    }
                    Some(_) => {}
                    // The first one at all, or of one that has taken the place of the first.
                    None => first = Some(counters),
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
            nonce: 0,
            question: Vec::new(),
            replies: Arc::default(),
            answers: Arc::default(),
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

    /// `told` comes as the answer to the question with this nonce.
    fn comes(answers: &Answers, nonce: u64, told: &ReflectorCounters) {
        let mut frame = ReflectorCounters::question(&wire::TemplateSpec::plain(0), nonce).unwrap();
        assert!(told.answer(&mut frame));
        answers.take_from(&frame);
    }

    #[test]
    fn what_another_far_side_tells_late_is_not_taken_for_its_own() {
        let mut asked_now = far(Some(tells(2, 0)), None);
        asked_now.nonce = 9;
        let answers = Arc::clone(&asked_now.answers);
        // That of the one asked before, which was kept when its question was the one, or comes only now.
        answers.expect(8);
        comes(&answers, 8, &tells(77, 70));
        answers.expect(9);
        for generation in [0, FRESH] {
            for (nonce, account) in [(8, 77), (9, 2)] {
                let mut told = tells(account, 7 * account);
                told.generation = generation;
                comes(&answers, nonce, &told);
            }
        }
        asked_now.ask_for_all(PATIENCE, &|| false);
        assert_eq!(asked_now.after.map(|after| after.received), Some(14));
    }

    #[test]
    fn looks_of_one_life_say_nothing_of_another() {
        let mut restarted = far(Some(tells(1, 0)), None);
        let answers = Arc::clone(&restarted.answers);
        for (account, generation) in [(1, 0), (2, 900), (2, 901), (2, 902)] {
            let mut told = tells(account, generation);
            told.generation = generation;
            comes(&answers, 0, &told);
        }
        restarted.ask_for_all(PATIENCE, &|| false);
        assert_eq!(restarted.after.map(|after| after.received), Some(902));
    }

    /// Of all that it says nobody knows what it counted before it took the place of the one that was asked first.
    #[test]
    fn what_another_life_counted_is_charged_to_nobody() {
        let mut stranger = tells(2, 500);
        stranger.add("tx_full", 30);
        let sides = FarSides([far(Some(tells(1, 100)), Some(stranger))].into());
        let told = sides.told();
        assert_eq!((told.restarted, told.silent, told.counted.len()), (1, 0, 0));
        // Another port of ours knew it before the run.
        let sides = FarSides(
            [(1, 100), (2, 300)]
                .map(|(account, received)| far(Some(tells(account, received)), Some(stranger)))
                .into(),
        );
        let told = sides.told();
        assert_eq!((told.restarted, told.counted["received"]), (1, 200));
        let shown: Vec<_> = told.shown().collect();
        assert_eq!(shown, [(&"tx_full".to_owned(), &30)]);
    }

    #[test]
    fn an_interrupt_ends_the_wait_for_an_answer() {
        let begun = Instant::now();
        let mut silent = far(Some(tells(1, 0)), None);
        silent.ask_for_all(PATIENCE, &|| true);
        assert_eq!(silent.after, None);
        assert!(begun.elapsed() < PATIENCE);
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
