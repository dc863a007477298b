//! A packet's way through the tables.

#![allow(clippy::inline_always, reason = "per packet: must vanish into the loops")]

use super::alone::Values;
use super::header::Header;
use super::memo::{
    Classes, DESTINATION, DESTINATION_PORT, DETAIL, ETHER_TYPE, KIND, Memo, SOURCE, SOURCE_PORT, TABLES, VLAN,
};
use super::{AddressTable, Do, IndexTable, Rows, Tables, WORD};
use crate::facts::look;
use crate::limit::{Limiter, Over};
use crate::{Decision, Facts, Layer, Malformed, Verdict};

impl AddressTable {
    #[inline]
    fn rows(&self) -> &Rows {
        &self.rows
    }
}

impl IndexTable {
    #[inline]
    fn rows(&self) -> &Rows {
        &self.rows
    }

    #[inline]
    fn class(&self, value: Option<usize>) -> u32 {
        let class = value
            .and_then(|value| self.classes.get(value))
            .copied()
            .unwrap_or(self.none);
        u32::from(class)
    }
}

/// What there is to decide about: a packet, and the rates that it may be above.
struct Case<'p> {
    packet: &'p Result<Facts, Malformed>,
    limiter: &'p Limiter,
    now_ns: u64,
}

impl Tables {
    /// Decides about a frame of `len` bytes, whose headers are in `frame`, at this time.
    #[inline]
    pub fn classify(&self, frame: &[u8], len: usize, limiter: &Limiter, now_ns: u64) -> Decision {
        self.decide(&look(frame, len, self.reasons), limiter, now_ns)
    }

    /// Decides about what [`look`] found.
    #[inline(never)]
    pub fn decide(&self, packet: &Result<Facts, Malformed>, limiter: &Limiter, now_ns: u64) -> Decision {
        let case = Case {
            packet,
            limiter,
            now_ns,
        };
        match packet {
            Ok(facts) => self.by_classes((&self.classes(facts), facts), &case),
            Err(reason) => self.by_reason(*reason, &case),
        }
    }

    /// Whether `memo` is worth asking about the next so many frames: not where rates make every packet a new case, and not
    /// for a while after most headers were new.
    #[inline]
    pub fn recalls(&self, memo: &mut Memo, frames: usize) -> bool {
        self.rates.is_empty() && memo.knows(frames)
    }

    /// What `memo` knows of a frame by its header, before its facts are gathered: well-formed, and decided for good. It must
    /// have been made for these tables.
    #[inline(always)]
    pub fn recall(&self, memo: &Memo, frame: &[u8]) -> Option<Decision> {
        memo.decision(Header::of(frame, self.reasons)?)
    }

    /// Decides about a frame, and has `memo` remember that where it can. Says why the packet is malformed, if it is.
    #[inline(never)]
    pub fn judge(
        &self,
        memo: &mut Memo,
        (frame, len): (&[u8], usize),
        at: (&Limiter, u64),
    ) -> (Decision, Option<Malformed>) {
        let packet = look(frame, len, self.reasons);
        let decision = self.decide_with(memo, &packet, at);
        // What passed a rate may not pass it the next time, and why a packet is malformed is not remembered.
        if packet.is_ok() && self.rates.is_empty() {
            if let Some(header) = Header::of(frame, self.reasons) {
                memo.remember(header, decision);
            }
        }
        (decision, packet.err())
    }

    /// [`Tables::decide`], faster: what `memo` knows is not looked for again. It must have been made for these tables.
    #[inline(always)]
    pub fn decide_with(
        &self,
        memo: &mut Memo,
        packet: &Result<Facts, Malformed>,
        (limiter, now_ns): (&Limiter, u64),
    ) -> Decision {
        let Ok(facts) = packet else {
            return self.decide(packet, limiter, now_ns);
        };
        let classes = self.classes(facts);
        let first = if self.rules.len() <= WORD {
            // Nothing is remembered sooner than one word.
            self.first_in_word(&classes)
        } else {
            memo.rule(&classes, || self.first_of(&classes, facts))
        };
        let Some(rule) = first else {
            return self.otherwise();
        };
        match self.rules.get(rule) {
            Some(Do::Decide(verdict)) => decided(rule, *verdict, false),
            // What is within a rate goes on: to what, depends on more than classes.
            _ => self.decide(packet, limiter, now_ns),
        }
    }

    /// What a well-formed packet is in each table.
    #[inline(always)]
    fn classes(&self, facts: &Facts) -> Classes {
        let is_ip = facts.layer != Layer::Other;
        let is_v6 = facts.layer == Layer::V6;
        let mut classes = [0; TABLES];
        let index = |table: &Option<IndexTable>, value: Option<usize>| {
            table.as_ref().map_or(0, |table| table.class(value))
        };
        classes[KIND] = index(
            &self.kind,
            Some(Self::kind(facts.layer, facts.part, facts.protocol)),
        );
        for (class, table, address) in [
            (SOURCE, &self.source, facts.source),
            (DESTINATION, &self.destination, facts.destination),
        ] {
            if let Some(table) = table {
                classes[class] = if is_ip {
                    table.class(address, is_v6)
                } else {
                    table.none
                };
            }
        }
        let (source, destination) = facts.ports.unzip();
        classes[DESTINATION_PORT] = index(&self.destination_port, destination.map(usize::from));
        classes[SOURCE_PORT] = index(&self.source_port, source.map(usize::from));
        classes[DETAIL] = index(&self.detail, Some(Self::detail(facts.detail)));
        classes[VLAN] = index(&self.vlan, facts.vlan.map(usize::from));
        let ether_type = (!is_ip).then_some(usize::from(facts.ether_type));
        classes[ETHER_TYPE] = index(&self.ether_type, ether_type);
        Classes(classes)
    }

    /// The rows of all tables, where there is one, by the place of its class.
    #[inline]
    fn tables(&self) -> [Option<&Rows>; TABLES] {
        let index = IndexTable::rows;
        let address = AddressTable::rows;
        [
            self.kind.as_ref().map(index),
            self.source.as_ref().map(address),
            self.destination.as_ref().map(address),
            self.destination_port.as_ref().map(index),
            self.source_port.as_ref().map(index),
            self.detail.as_ref().map(index),
            self.vlan.as_ref().map(index),
            self.ether_type.as_ref().map(index),
        ]
    }

    /// What `take` first takes of the rules that hold for a packet of these classes.
    #[inline]
    fn first_by<T>(
        &self,
        (classes, facts): (&Classes, &Facts),
        take: impl FnMut(usize) -> Option<T>,
    ) -> Option<T> {
        let tables = self.tables();
        let each = || tables.into_iter().zip(classes.0);
        if self.rules.len() > WORD {
            let few = each().filter_map(|(table, class)| table?.few(class));
            if let Some(few) = few.min_by_key(|few| few.len()) {
                return self.first_of_few(few, (&tables, classes, &Values::of(facts)), take);
            }
        }
        let mut rows: [&[u64]; TABLES] = [&[]; TABLES];
        let mut count = 0;
        for (table, class) in each() {
            if let Some(table) = table {
                rows[count] = table.row(class);
                count += 1;
            }
        }
        self.first(&rows[..count], take)
    }

    /// The same, where only these rules come into question.
    #[inline]
    fn first_of_few<T>(
        &self,
        few: &[u16],
        (tables, classes, values): (&[Option<&Rows>; TABLES], &Classes, &Values),
        mut take: impl FnMut(usize) -> Option<T>,
    ) -> Option<T> {
        let few = few.iter().map(|rule| usize::from(*rule));
        let in_all = |rule: usize, asked: u8| {
            let places = (0..TABLES).filter(|place| asked >> place & 1 != 0);
            places
                .filter_map(|place| Some((tables[place]?, classes.0[place])))
                .all(|(table, class)| table.has(class, rule))
        };
        let holds = |rule: &usize| {
            let alone = self.alone.get(*rule);
            alone.is_some_and(|alone| alone.holds(values) && in_all(*rule, alone.tables()))
        };
        few.filter(holds).find_map(&mut take)
    }

    #[inline]
    fn by_classes(&self, packet: (&Classes, &Facts), case: &Case<'_>) -> Decision {
        self.first_by(packet, |rule| self.ask(rule, case))
            .unwrap_or_else(|| self.otherwise())
    }

    #[cold]
    fn by_reason(&self, reason: Malformed, case: &Case<'_>) -> Decision {
        let row = self
            .malformed
            .rows
            .row(self.malformed.class(Some(reason as usize)));
        self.first(&[row], |rule| self.ask(rule, case))
            .unwrap_or_else(|| self.otherwise())
    }

    /// The first rule that holds for these classes, whatever it does.
    #[inline(never)]
    fn first_of(&self, classes: &Classes, facts: &Facts) -> Option<usize> {
        self.first_by((classes, facts), Some)
    }

    /// The same, where rows are words.
    #[inline(always)]
    fn first_in_word(&self, classes: &Classes) -> Option<usize> {
        let tables = self.tables().into_iter().zip(classes.0);
        let words = tables.filter_map(|(table, class)| Some(table?.word(class)));
        let bits = words.fold(self.known(0), |all, bits| all & bits);
        (bits != 0).then(|| bits.trailing_zeros() as usize)
    }

    /// The bits of a word that stand for rules.
    #[inline]
    fn known(&self, word: usize) -> u64 {
        match self.rules.len() - word * WORD {
            rest @ 0..WORD => (1 << rest) - 1,
            _ => u64::MAX,
        }
    }

    /// What `take` first takes of the rules that all rows have, in their order.
    #[inline]
    fn first<T>(&self, rows: &[&[u64]], mut take: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let words = self.rules.len().div_ceil(WORD);
        let all = |word: usize| {
            let every = rows.iter().map(|row| row.get(word).copied().unwrap_or_default());
            every.fold(u64::MAX, |all, bits| all & bits)
        };
        if words <= 1 {
            return among(0, all(0) & self.known(0), take);
        }
        for part in 0..words.div_ceil(WORD) {
            let mut candidates = all(words + part);
            while candidates != 0 {
                let word = part * WORD + candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                if word < words {
                    let taken = among(word, all(word) & self.known(word), &mut take);
                    if taken.is_some() {
                        return taken;
                    }
                }
            }
        }
        None
    }

    /// What a rule says that all conditions hold for; `None`: the packet goes on.
    #[inline]
    fn ask(&self, rule: usize, case: &Case<'_>) -> Option<Decision> {
        match self.rules.get(rule)? {
            Do::Decide(verdict) => Some(decided(rule, *verdict, false)),
            Do::Limit(number) => {
                let limit = self.rates.get(usize::from(*number))?;
                let facts = case.packet.as_ref().ok()?;
                let group = (limit.rate.group(facts)?, facts.layer == Layer::V6);
                let passed = case
                    .limiter
                    .pass(limit.number, limit.interval, group, case.now_ns);
                let over = passed.err()?;
                Some(decided(rule, Verdict::Deny, over == Over::Full))
            }
        }
    }

    #[inline]
    fn otherwise(&self) -> Decision {
        Decision {
            verdict: self.default,
            rule: None,
            is_full: false,
        }
    }
}

/// What `take` first takes of the rules of these bits of a word.
#[inline]
fn among<T>(word: usize, mut bits: u64, mut take: impl FnMut(usize) -> Option<T>) -> Option<T> {
    while bits != 0 {
        let taken = take(word * WORD + bits.trailing_zeros() as usize);
        if taken.is_some() {
            return taken;
        }
        bits &= bits - 1;
    }
    None
}

#[inline]
fn decided(rule: usize, verdict: Verdict, is_full: bool) -> Decision {
    Decision {
        verdict,
        rule: Some(rule as u16),
        is_full,
    }
}
