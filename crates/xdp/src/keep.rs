//! A filter on an interface, and its rule sets one after the other: counts go on, rule by rule.

use std::time::{Duration, Instant};

use rules::{RuleSet, Spelling, Tables, Totals};

use crate::attach::{AttachError, Attached, InForce, Mode};
use crate::{Error, Filter, Groups};

/// A processor that was in the old program when it was replaced has left it long before.
const SETTLED: Duration = Duration::from_secs(1);

/// A filter in force.
#[derive(Debug)]
pub struct Kept {
    attached: Attached,
    current: Generation,
    /// Replaced a moment ago: their last packets may not be counted yet.
    retired: Vec<(Instant, Generation)>,
    /// What those before them counted.
    settled: Totals,
}

#[derive(Debug)]
struct Generation {
    spellings: Vec<Spelling>,
    filter: Filter,
}

impl Generation {
    fn new(set: &RuleSet, tables: &Tables, groups: Groups<'_>) -> Result<Self, Error> {
        Ok(Self {
            spellings: set.spellings(),
            filter: Filter::load(tables, groups, false)?,
        })
    }
}

impl Kept {
    /// Puts these rules in force on an interface; rates remember so many groups.
    pub fn new(
        interface: u32,
        mode: Mode,
        (set, tables): (&RuleSet, &Tables),
        groups: u32,
    ) -> Result<Self, AttachError> {
        let current = Generation::new(set, tables, Groups::New(groups))?;
        Ok(Self {
            attached: current.filter.attach(interface, mode)?,
            current,
            retired: Vec::new(),
            settled: Totals::default(),
        })
    }

    /// Puts other rules into the place of these, at once. What rates know of groups stays, where a rate has the same number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses them: those before stay in force.
    pub fn swap(&mut self, set: &RuleSet, tables: &Tables) -> Result<(), AttachError> {
        let next = Generation::new(set, tables, Groups::Of(&self.current.filter))?;
        self.attached.swap(&next.filter)?;
        let old = std::mem::replace(&mut self.current, next);
        self.retired.push((Instant::now(), old));
        Ok(())
    }

    /// Everything that was counted.
    pub fn totals(&mut self) -> Result<Totals, Error> {
        let settled = self
            .retired
            .iter()
            .take_while(|(at, _)| at.elapsed() > SETTLED)
            .count();
        for (_, generation) in self.retired.drain(..settled) {
            self.settled
                .add(&generation.spellings, &generation.filter.counts()?);
        }
        let mut totals = self.settled.clone();
        for generation in self.retired.iter().map(|(_, old)| old).chain([&self.current]) {
            totals.add(&generation.spellings, &generation.filter.counts()?);
        }
        Ok(totals)
    }

    /// What is on its interface now.
    pub fn in_force(&self) -> std::io::Result<Option<InForce>> {
        self.attached.in_force()
    }
}
