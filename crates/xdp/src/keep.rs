//! A filter on an interface, and its rule sets one after the other: counts go on, rule by rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libbpf_rs::MapHandle;
use rules::{RuleSet, Spelling, Tables, Totals};

use crate::attach::{AttachError, Attached, InForce, Mode};
use crate::barrier::Barrier;
use crate::counts;
use crate::program::{Setup, Shared};
use crate::{Error, Filter, Samples, Sampling};

/// What is wanted of a filter.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The interface's number.
    pub interface: u32,
    /// Where packets meet the program.
    pub mode: Mode,
    /// So many groups of addresses are remembered by rates.
    pub groups: u32,
    /// Packets that are told one by one.
    pub sampling: Sampling,
}

/// Makes rules ready beside those that are in force: in any thread, as that may take a second.
#[derive(Clone, Debug)]
pub struct Maker {
    shared: Arc<Shared>,
    sampling: Sampling,
    next: Arc<AtomicU32>,
}

/// Rules in the kernel that no packet meets yet.
#[derive(Debug)]
pub struct Ready {
    number: u32,
    spellings: Vec<Spelling>,
    filter: Filter,
}

/// Rules that are no longer in force, and what they counted.
#[derive(Debug)]
struct Old {
    spellings: Vec<Spelling>,
    counts: MapHandle,
}

/// A filter in force.
#[derive(Debug)]
pub struct Kept {
    attached: Attached,
    barrier: Barrier,
    maker: Maker,
    current: Ready,
    /// Those whose last packets may not be counted yet.
    retired: Vec<Old>,
    /// What those before them counted.
    settled: Totals,
    samples: Option<Samples>,
}

impl Ready {
    /// Of the sets of one filter the first is 1.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Maker {
    /// Loads these rules into the kernel.
    pub fn make(&self, set: &RuleSet, tables: &Tables) -> Result<Ready, Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let setup = Setup {
            shared: Some(&self.shared),
            sampling: self.sampling,
            generation: number,
            ..Setup::default()
        };
        Ok(Ready {
            number,
            spellings: set.spellings(),
            filter: Filter::load_with(tables, setup)?,
        })
    }
}

impl Kept {
    /// Puts these rules in force on an interface.
    pub fn start(wanted: &Wanted, set: &RuleSet, tables: &Tables) -> Result<Self, AttachError> {
        let setup = Setup {
            groups: wanted.groups,
            sampling: wanted.sampling,
            generation: 1,
            ..Setup::default()
        };
        let current = Ready {
            number: 1,
            spellings: set.spellings(),
            filter: Filter::load_with(tables, setup)?,
        };
        let is_sampled = wanted.sampling.denied_per_second > 0 || wanted.sampling.every > 0;
        let samples = is_sampled.then(|| Samples::of(&current.filter)).transpose()?;
        let maker = Maker {
            shared: Arc::new(current.filter.shared()?),
            sampling: wanted.sampling,
            next: Arc::new(AtomicU32::new(2)),
        };
        let barrier = Barrier::new()?;
        Ok(Self {
            attached: current.filter.attach(wanted.interface, wanted.mode)?,
            barrier,
            maker,
            current,
            retired: Vec::new(),
            settled: Totals::default(),
            samples,
        })
    }

    /// Makes other rules ready.
    pub fn maker(&self) -> Maker {
        self.maker.clone()
    }

    /// The number of the set in force.
    pub fn generation(&self) -> u32 {
        self.current.number
    }

    /// Puts other rules into the place of these, at once: every packet meets the old or the new ones. What rates know of groups
    /// stays, where a rate has the same number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses them: those before stay in force.
    pub fn put(&mut self, next: Ready) -> Result<(), AttachError> {
        let counts = self.current.filter.map("counts")?;
        self.attached.swap(&next.filter)?;
        let old = std::mem::replace(&mut self.current, next);
        self.retired.push(Old {
            spellings: old.spellings,
            counts,
        });
        // What could not be waited for now is the next time.
        let _ = self.settle();
        Ok(())
    }

    /// Both: for who has nothing else to do meanwhile.
    pub fn swap(&mut self, set: &RuleSet, tables: &Tables) -> Result<(), AttachError> {
        let next = self.maker.make(set, tables)?;
        self.put(next)
    }

    /// Adds up what rules counted that no packet meets any more.
    fn settle(&mut self) -> Result<(), Error> {
        if self.retired.is_empty() {
            return Ok(());
        }
        self.barrier.wait()?;
        let mut settled = self.settled.clone();
        for old in &self.retired {
            old.add_to(&mut settled)?;
        }
        self.settled = settled;
        self.retired.clear();
        Ok(())
    }

    /// Everything that was counted.
    pub fn totals(&self) -> Result<Totals, Error> {
        let mut totals = self.settled.clone();
        for old in &self.retired {
            old.add_to(&mut totals)?;
        }
        totals.add(&self.current.spellings, &self.current.filter.counts()?);
        Ok(totals)
    }

    /// The packets that it tells; nothing where none were asked for.
    pub fn samples(&mut self) -> Option<&mut Samples> {
        self.samples.as_mut()
    }

    /// What is on its interface now.
    pub fn in_force(&self) -> std::io::Result<Option<InForce>> {
        self.attached.in_force()
    }

    /// Whether it is still in force: nobody took it off, and the interface is there.
    pub fn is_in_force(&self) -> bool {
        self.attached.is_in_force()
    }

    /// Takes it off the interface, and says what it counted, to the last packet. Samples can still be read.
    pub fn detach(&mut self) -> Result<Totals, AttachError> {
        self.attached.detach()?;
        self.barrier.wait()?;
        Ok(self.totals()?)
    }
}

impl Old {
    fn add_to(&self, totals: &mut Totals) -> Result<(), Error> {
        // The last spelling is the default's.
        let rules = self.spellings.len().saturating_sub(1);
        totals.add(&self.spellings, &counts::of_set(&self.counts, rules)?);
        Ok(())
    }
}
