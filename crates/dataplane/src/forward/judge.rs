//! Rules in a poll loop: a set's tables, the groups of its rates, and what its rules met on one queue.

use std::sync::Arc;

use measure::Counter;
use rules::limit::Limiter;
use rules::tables::Memo;
use rules::{Count, Counts, Decision, Facts, Malformed, Tables, Verdict};

use crate::BURST_MAX;
use crate::io::Frames;

/// A rule set as one task has it: it goes in and out whole, so that no frame is judged by parts of two.
#[derive(Debug)]
pub struct Judge {
    tables: Arc<Tables>,
    memo: Memo,
    limiter: Arc<Limiter>,
    met: Arc<RuleCounters>,
}

/// Packets and bytes.
#[derive(Debug, Default)]
struct Met {
    packets: Counter,
    bytes: Counter,
}

/// What the rules of a set met on one queue. One writer: its worker.
#[derive(Debug)]
pub struct RuleCounters {
    /// By rule, and the default behind them.
    rules: Box<[Met]>,
    malformed: [Met; Malformed::ALL.len()],
    full: Met,
}

/// What was seen of a burst.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) bytes: usize,
    pub(super) denied: usize,
    /// Frames in several buffers.
    pub(super) has_chains: bool,
}

impl Seen {
    /// A frame of `len` bytes, and what was decided about it. Whether it stays.
    #[inline]
    fn add(&mut self, verdict: Verdict, (frame, len): (&[u8], usize)) -> bool {
        let is_denied = verdict == Verdict::Deny;
        self.denied += usize::from(is_denied);
        self.bytes += len;
        self.has_chains |= frame.len() < len;
        !is_denied
    }
}

impl Met {
    #[inline]
    fn add(&self, bytes: usize) {
        self.packets.add(1);
        self.bytes.add(bytes as u64);
    }

    fn get(&self) -> Count {
        Count {
            packets: self.packets.get(),
            bytes: self.bytes.get(),
        }
    }
}

impl RuleCounters {
    /// Zeroed counters of so many rules and their default.
    pub fn new(rules: usize) -> Arc<Self> {
        Arc::new(Self {
            rules: (0..=rules).map(|_| Met::default()).collect(),
            malformed: Default::default(),
            full: Met::default(),
        })
    }

    /// What was met so far.
    pub fn get(&self) -> Counts {
        let mut rules: Vec<Count> = self.rules.iter().map(Met::get).collect();
        Counts {
            default: rules.pop().unwrap_or_default(),
            rules,
            malformed: self.malformed.each_ref().map(Met::get),
            full: self.full.get(),
        }
    }

    #[inline]
    fn decided(&self, decision: Decision, bytes: usize) -> Verdict {
        let at = decision.rule.map_or(self.rules.len() - 1, usize::from);
        if let Some(met) = self.rules.get(at) {
            met.add(bytes);
        }
        decision.verdict
    }

    #[inline]
    fn judged(&self, (decision, malformed): (Decision, Option<Malformed>), bytes: usize) -> Verdict {
        if let Some(reason) = malformed {
            self.malformed[reason as usize].add(bytes);
        }
        if decision.is_full {
            self.full.add(bytes);
        }
        self.decided(decision, bytes)
    }
}

impl Judge {
    /// Judges by `tables`; what each rule meets is counted in `met`, which has a place for each of them.
    pub fn new(tables: Arc<Tables>, limiter: Arc<Limiter>, met: Arc<RuleCounters>) -> Self {
        Self {
            tables,
            memo: Memo::default(),
            limiter,
            met,
        }
    }

    /// Judges every frame of a burst that was received at `now_ns`, counts it at its rule, and clears the flag of those that are denied.
    #[inline]
    pub(super) fn judge(&mut self, frames: &impl Frames, now_ns: u64, keep: &mut [bool; BURST_MAX]) -> Seen {
        if !self.tables.recalls(&mut self.memo, frames.len()) {
            return self.judge_and_note(frames, now_ns, keep, |_, _| ());
        }
        // Not in what is returned: that would be written to memory for every frame.
        let (mut bytes, mut denied, mut has_chains) = (0, 0, false);
        frames.each().zip(keep).for_each(|((frame, len), keep)| {
            let verdict = match self.tables.recall(&self.memo, frame) {
                Some(decision) => self.met.decided(decision, len),
                None => self.judge_anew(frame, len, now_ns),
            };
            *keep = verdict != Verdict::Deny;
            denied += usize::from(verdict == Verdict::Deny);
            bytes += len;
            has_chains |= frame.len() < len;
        });
        Seen {
            bytes,
            denied,
            has_chains,
        }
    }

    /// Judges a frame that the memo does not know.
    #[inline(never)]
    fn judge_anew(&mut self, frame: &[u8], len: usize, now_ns: u64) -> Verdict {
        let at = (&*self.limiter, now_ns);
        let judged = self.tables.judge(&mut self.memo, (frame, len), at);
        self.met.judged(judged, len)
    }

    /// The same; `note` hears what each is, if that is known, and its length.
    #[inline]
    pub(super) fn judge_and_note(
        &mut self,
        frames: &impl Frames,
        now_ns: u64,
        keep: &mut [bool; BURST_MAX],
        mut note: impl FnMut(Option<&Facts>, usize),
    ) -> Seen {
        let Self {
            tables,
            memo,
            limiter,
            met,
        } = self;
        let mut seen = Seen::default();
        for ((frame, len), keep) in frames.each().zip(keep) {
            let packet = rules::look(frame, len, tables.reasons);
            let decision = tables.decide_with(memo, &packet, (limiter, now_ns));
            note(packet.as_ref().ok(), len);
            let verdict = met.judged((decision, packet.err()), len);
            *keep = seen.add(verdict, (frame, len));
        }
        seen
    }
}
