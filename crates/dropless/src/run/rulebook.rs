//! The rules of a run: read at its start, and again when somebody asks for that, beside whatever goes on.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use measure::{Judged, Note, RuleCount, RulePlace};
use report::number::counted;
use report::published::{RulesInForce, unix_ms};
use rules::{Count, Malformed, RuleSet, Spelling, Tables, Totals, Verdict};

use super::privileges;
use crate::plan;

/// Rates of rules are taken over this long.
const RATES_OVER: Duration = Duration::from_secs(1);
const RATES_EVERY: Duration = Duration::from_millis(200);
/// How many rules are told while a run goes; the result has all.
pub const TOLD_MAX: usize = 200;

/// A set, and its tables.
#[derive(Clone, Debug)]
pub struct Rules {
    pub set: Arc<RuleSet>,
    pub tables: Arc<Tables>,
    /// So many had asked when their file was read.
    answers: u64,
}

impl Rules {
    /// Reads a rule file and those that it includes.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of(plan::rules::read(path)?)
    }

    /// A set, with its tables.
    pub fn of(set: impl Into<Arc<RuleSet>>) -> Result<Self> {
        let set = set.into();
        let tables = Tables::new(&set)?;
        Ok(Self {
            set,
            tables: Arc::new(tables),
            answers: 0,
        })
    }
}

/// Rules in force, and the next ones on their way.
#[derive(Debug)]
pub struct Rulebook {
    path: PathBuf,
    rules: Rules,
    /// And how many had asked when that began.
    reading: Option<(u64, JoinHandle<Result<Rules>>)>,
    in_force: RulesInForce,
    /// How often what was read was refused.
    refused: u64,
    /// How often rules that nobody asked to read were not put in force.
    failed: u64,
    rates: RefCell<Rates>,
    /// What came of reading them again, until it is said.
    news: Option<String>,
}

impl Rulebook {
    /// With the rules that are in force from the start.
    pub fn new(path: &Path, rules: Rules) -> Self {
        Self {
            path: path.to_path_buf(),
            reading: None,
            in_force: RulesInForce {
                file: path.display().to_string(),
                rules: rules.set.rules.len() as u64,
                generation: 1,
                since_unix_ms: unix_ms(),
                ..RulesInForce::default()
            },
            rules,
            refused: 0,
            failed: 0,
            rates: RefCell::default(),
            news: None,
        }
    }

    /// Those that are in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Has the file read again, in a thread of its own: once more after that where it is being read.
    pub fn ask(&mut self) {
        self.in_force.heard += 1;
        if self.reading.is_none() {
            self.begin();
        }
    }

    /// Who asks is told that this cannot be.
    pub fn ask_in_vain(&mut self, error: &anyhow::Error) {
        self.in_force.heard += 1;
        self.refuse_for(self.in_force.heard, error);
    }

    fn begin(&mut self) {
        let path = self.path.clone();
        let read = move || {
            // Through sudo the file may be the user's, in a home that is closed to others.
            privileges::drop_all_but_reading();
            Rules::read(&path)
        };
        match std::thread::Builder::new().name("rules".into()).spawn(read) {
            Ok(reading) => self.reading = Some((self.in_force.heard, reading)),
            Err(error) => {
                let error = anyhow!("cannot start a thread: {error}");
                self.refuse_for(self.in_force.heard, &error);
            }
        }
    }

    /// Rules that were read, and should be put in force now: whether that went well is told by [`Rulebook::accept`] or
    /// [`Rulebook::refuse`].
    pub fn read(&mut self) -> Option<Rules> {
        let (answers, reading) = self.reading.take_if(|(_, reading)| reading.is_finished())?;
        let read = reading
            .join()
            .map_err(|_| anyhow!("the thread that read them died"));
        // What was read may be older than what is meant now, and comes into force all the same: whoever asks all the time
        // would have nothing otherwise.
        if self.in_force.heard > answers {
            self.begin();
        }
        match read.and_then(|read| read) {
            Ok(rules) => Some(Rules { answers, ..rules }),
            Err(error) => {
                self.refuse_for(answers, &error);
                None
            }
        }
    }

    /// All that should be in force is, as generation so and so: sets of runs before this one are among them.
    pub fn is_generation(&mut self, generation: u64) {
        self.in_force.generation = generation;
        self.in_force.failed = None;
    }

    /// They are in force.
    pub fn accept(&mut self, rules: Rules) {
        self.in_force.rules = rules.set.rules.len() as u64;
        self.in_force.answered = self.in_force.answered.max(rules.answers);
        self.rules = rules;
        self.in_force.asked += 1;
        self.in_force.generation += 1;
        self.in_force.since_unix_ms = unix_ms();
        self.in_force.refused = None;
        let count = counted(self.rules.set.rules.len() as u64, "rule");
        self.news = Some(format!("{}: {count} in force\n", self.in_force.file));
    }

    /// They are not, and those before are.
    pub fn refuse(&mut self, rules: &Rules, error: &anyhow::Error) {
        self.refuse_for(rules.answers, error);
    }

    /// What was read for so many who asked is not in force.
    fn refuse_for(&mut self, answers: u64, error: &anyhow::Error) {
        self.in_force.asked += 1;
        self.in_force.answered = self.in_force.answered.max(answers);
        self.refused += 1;
        let text = self.stay(error);
        self.in_force.refused = Some(Note::new("rules_refused", text));
    }

    /// Rules that nobody asked to read are not in force: that is said, and is nobody's answer.
    pub fn fail(&mut self, error: &anyhow::Error) {
        self.failed += 1;
        let text = self.stay(error);
        self.in_force.failed = Some(Note::new("rules_failed", text));
    }

    /// How often that was so, for the result.
    pub fn failures(&self) -> Option<Note> {
        let times = counted(self.failed, "time");
        let now = match &self.in_force.failed {
            Some(failed) => format!("and in the end: {}", failed.text),
            None => "and were in the end".to_owned(),
        };
        let text = format!("rules that the guard made could not be put in force {times}, {now}");
        (self.failed > 0).then(|| Note::new("rules_failed", text))
    }

    /// Says why the rules before stay.
    fn stay(&mut self, error: &anyhow::Error) -> String {
        let text = format!("{error:#}\nthe rules before stay in force").replace('\n', "; ");
        self.news = Some(format!("{text}\n"));
        text
    }

    /// How often rules were read again, and how often what was read was refused.
    pub fn asked_and_refused(&self) -> (u64, u64) {
        (self.in_force.asked, self.refused)
    }

    /// What came of reading them again, said once.
    pub fn says(&mut self) -> Option<String> {
        self.news.take()
    }

    /// How they stand, for whoever watches.
    pub fn told(&self, totals: &Totals) -> RulesInForce {
        self.told_of(&self.rules.set, totals)
    }

    /// The same where they are a part of `set`, which is in force.
    pub fn told_of(&self, set: &RuleSet, totals: &Totals) -> RulesInForce {
        let mut judged = judged(set, totals).busiest(TOLD_MAX);
        self.rates.borrow_mut().fill(&mut judged, totals);
        RulesInForce {
            rules: set.rules.len() as u64,
            judged,
            ..self.in_force.clone()
        }
    }

    /// What they and those before them met.
    pub fn judged(&self, totals: &Totals) -> Judged {
        judged(&self.rules.set, totals)
    }
}

/// What rules had met within the last second or so.
#[derive(Debug, Default)]
struct Rates(VecDeque<(Instant, HashMap<Spelling, Count>)>);

impl Rates {
    /// Says of each rule how fast packets met it.
    fn fill(&mut self, judged: &mut Judged, totals: &Totals) {
        let is_over = |(at, _): &(Instant, _)| at.elapsed() >= RATES_OVER;
        while self.0.get(1).is_some_and(is_over) {
            self.0.pop_front();
        }
        if let Some((at, before)) = self.0.front() {
            let seconds = at.elapsed().as_secs_f64().max(1e-3);
            for rule in &mut judged.rules {
                let verdict = if rule.denies {
                    Verdict::Deny
                } else {
                    Verdict::Allow
                };
                let spelling = Spelling {
                    text: rule.rule.clone(),
                    verdict,
                };
                let before = before.get(&spelling).map_or(0, |met| met.packets);
                rule.rate_pps = (rule.packets.saturating_sub(before) as f64 / seconds) as u64;
            }
        }
        if self.0.back().is_none_or(|(at, _)| at.elapsed() >= RATES_EVERY) {
            self.0.push_back((Instant::now(), totals.rules.clone()));
        }
    }
}

/// What the rules of a set met, and those that were in force before it.
pub fn judged(set: &RuleSet, totals: &Totals) -> Judged {
    let place = |at: usize| {
        let place = set.rules.get(at).map(|rule| &rule.place);
        place.map_or(RulePlace::Default, |place| {
            RulePlace::InForce(format!("{}:{}", set.files[place.0], place.1))
        })
    };
    let mut left = totals.rules.clone();
    let mut rules: Vec<RuleCount> = Vec::new();
    for (at, spelling) in set.spellings().into_iter().enumerate() {
        let met = left.remove(&spelling).unwrap_or_default();
        rules.push(told(spelling, place(at), met));
    }
    let mut gone: Vec<_> = left.into_iter().collect();
    gone.sort_by(|one, other| one.0.cmp(&other.0));
    let gone = gone.into_iter();
    rules.extend(gone.map(|(spelling, met)| told(spelling, RulePlace::Gone, met)));
    let mut judged = Judged {
        groups_full: totals.full.packets,
        ..Judged::default()
    };
    for rule in &rules {
        let (packets, bytes) = if rule.denies {
            (&mut judged.denied, &mut judged.denied_bytes)
        } else {
            (&mut judged.allowed, &mut judged.allowed_bytes)
        };
        *packets += rule.packets;
        *bytes += rule.bytes;
    }
    for (reason, met) in Malformed::ALL.iter().zip(&totals.malformed) {
        if met.packets > 0 {
            judged.malformed.insert(reason.name().to_owned(), met.packets);
        }
    }
    judged.rules = rules;
    judged
}

fn told(spelling: Spelling, place: RulePlace, met: Count) -> RuleCount {
    RuleCount {
        place,
        rule: spelling.text,
        denies: spelling.verdict == Verdict::Deny,
        packets: met.packets,
        bytes: met.bytes,
        rate_pps: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_reload_each_rule_says_whether_it_is_in_force() {
        let set = rules::parse("edge.rules", &|_| {
            Ok("deny udp dport 9\ndefault deny\n".to_owned())
        })
        .unwrap();
        let spelling = |text: &str, verdict| Spelling {
            text: text.to_owned(),
            verdict,
        };
        let met = Count {
            packets: 4,
            bytes: 240,
        };
        let before = [
            spelling("default allow", Verdict::Allow),
            spelling("deny udp dport 7", Verdict::Deny),
        ];
        let totals = Totals {
            rules: before.into_iter().map(|spelling| (spelling, met)).collect(),
            ..Totals::default()
        };
        let rules = judged(&set, &totals).rules;
        let places: Vec<_> = rules
            .iter()
            .map(|rule| (&*rule.rule, rule.place.clone()))
            .collect();
        assert_eq!(
            places,
            [
                ("deny udp dport 9", RulePlace::InForce("edge.rules:1".into())),
                ("default deny", RulePlace::Default),
                ("default allow", RulePlace::Gone),
                ("deny udp dport 7", RulePlace::Gone),
            ]
        );
    }

    #[test]
    fn who_asks_all_the_time_is_answered_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("edge.rules");
        std::fs::write(&path, "deny udp dport 9\n").unwrap();
        let mut book = Rulebook::new(&path, Rules::read(&path).unwrap());
        let begun = Instant::now();
        let rules = loop {
            book.ask();
            if let Some(rules) = book.read() {
                break rules;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing comes of it");
            std::thread::sleep(Duration::from_millis(1));
        };
        book.accept(rules);
        let told = book.told(&Totals::default());
        assert_eq!(told.answered, 1, "read for the first who asked");
        assert!(told.heard >= 1);
        // And once more for those that asked meanwhile.
        let heard = told.heard;
        book.ask();
        while book.told(&Totals::default()).answered <= heard {
            if let Some(rules) = book.read() {
                book.accept(rules);
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing comes of it");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
