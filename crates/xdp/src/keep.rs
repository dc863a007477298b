//! A filter on an interface, and its rule sets one after the other: counts go on, rule by rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rules::{RuleSet, Spelling, Tables, Totals};

use crate::attach::{AttachError, Attached, InForce, Mode};
use crate::barrier::Barrier;
use crate::program::{Setup, Shared, buckets};
use crate::stay::{About, Old, Pins, Stayed};
use crate::{Error, Filter, Samples, Sampling, StayError};

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
    pub(crate) shared: Arc<Shared>,
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
    /// What is pinned of it, so that it stays.
    pins: Option<Pins>,
    /// What it had counted when it was taken over.
    taken_over: Option<Totals>,
    /// What one had counted that should have been there, and was not.
    gone: Option<Totals>,
    /// What rates knew was not taken over.
    forgot_rates: bool,
}

impl Ready {
    /// Of the sets of one filter the first is 1.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Maker {
    /// The same, for rules that tell one of so many packets. Of a filter that was put in force without samples nobody reads
    /// them.
    #[must_use]
    pub fn with_every(mut self, every: u32) -> Self {
        self.sampling.every = every;
        self
    }

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
        let parts = Parts::load(wanted, None, 1, set, tables)?;
        let attached = parts.current.filter.attach(wanted.interface, wanted.mode)?;
        Ok(parts.kept(attached, None))
    }

    /// The same, so that it stays in force when this process ends. One that stays there already is taken over without a
    /// packet that is not judged, and its counts go on.
    pub fn stay(
        wanted: &Wanted,
        about: &About<'_>,
        set: &RuleSet,
        tables: &Tables,
    ) -> Result<Self, AttachError> {
        match Stayed::on(wanted.interface)? {
            Some(Stayed {
                pins,
                attached: Some(attached),
                old,
                ..
            }) => Self::take_over(wanted, about, (pins, attached, old), (set, tables)),
            found => {
                let others = Stayed::gone(about.interface)?;
                let others = others.into_iter().filter(|other| !other.is_on(wanted.interface));
                let mut gone: Option<Totals> = None;
                for found in found.into_iter().chain(others) {
                    gone.get_or_insert_default().add_all(&found.totals()?);
                    found.pins.remove()?;
                }
                let begun = Self::begin(wanted, about, set, tables)?;
                Ok(Self { gone, ..begun })
            }
        }
    }

    fn begin(
        wanted: &Wanted,
        about: &About<'_>,
        set: &RuleSet,
        tables: &Tables,
    ) -> Result<Self, AttachError> {
        let parts = Parts::load(wanted, None, 1, set, tables)?;
        let mut pins = Pins::begin(wanted.interface, about, &parts.maker.shared)?;
        let ready = &parts.current;
        let put = pins
            .announce(ready.number, &ready.spellings, &ready.filter.map("counts")?)
            .map_err(AttachError::from)
            .and_then(|()| ready.filter.attach(wanted.interface, wanted.mode))
            .and_then(|attached| {
                attached.pin(&pins.link())?;
                Ok(attached)
            });
        match put {
            Ok(attached) => Ok(parts.kept(attached, Some(pins))),
            Err(error) => {
                let _ = pins.remove();
                Err(error)
            }
        }
    }

    fn take_over(
        wanted: &Wanted,
        about: &About<'_>,
        (mut pins, attached, old): (Pins, Attached, Vec<Old>),
        (set, tables): (&RuleSet, &Tables),
    ) -> Result<Self, AttachError> {
        let mode = attached.in_force()?.and_then(|found| found.mode);
        if let Some(other) = mode.filter(|mode| *mode != wanted.mode) {
            return Err(StayError::OtherMode(other).into());
        }
        pins.sweep();
        let number = pins.state.generation + 1;
        // A table cannot grow: whoever asks for another size gets another table.
        let shared = pins
            .shared()
            .filter(|shared| shared.buckets == buckets(wanted.groups));
        let parts = Parts::load(wanted, shared.as_ref(), number, set, tables)?;
        let ready = &parts.current;
        pins.is_ours(about);
        pins.announce(number, &ready.spellings, &ready.filter.map("counts")?)?;
        if let Err(error) = attached.swap(&ready.filter) {
            pins.withdraw(number);
            return Err(error);
        }
        if shared.is_none() {
            pins.put_groups(&parts.maker.shared)?;
        }
        let mut kept = parts.kept(attached, Some(pins));
        kept.forgot_rates = shared.is_none();
        kept.settled = kept.pins.as_ref().map(Pins::counted).unwrap_or_default();
        kept.retired = old;
        kept.settle()?;
        kept.taken_over = Some(kept.settled.clone());
        Ok(kept)
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
        if let Some(pins) = &mut self.pins {
            pins.announce(next.number, &next.spellings, &next.filter.map("counts")?)?;
        }
        if let Err(error) = self.attached.swap(&next.filter) {
            if let Some(pins) = &mut self.pins {
                pins.withdraw(next.number);
            }
            return Err(error);
        }
        let old = std::mem::replace(&mut self.current, next);
        self.retired.push(Old::ours(old.spellings, counts));
        // What could not be waited for, or written, now is the next time.
        let _ = self.settle();
        Ok(())
    }

    /// Both: for who has nothing else to do meanwhile.
    pub fn swap(&mut self, set: &RuleSet, tables: &Tables) -> Result<(), AttachError> {
        let next = self.maker.make(set, tables)?;
        self.put(next)
    }

    /// Adds up what rules counted that no packet meets any more.
    fn settle(&mut self) -> Result<(), AttachError> {
        if self.retired.is_empty() {
            return Ok(());
        }
        self.barrier.wait()?;
        let mut settled = self.settled.clone();
        for old in &self.retired {
            old.add_to(&mut settled)?;
        }
        settled.forget(&self.current.spellings);
        if let Some(pins) = &mut self.pins {
            pins.fold(&settled, self.current.number)?;
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

    /// What it had counted when it was taken over from another process, if it was.
    pub fn taken_over(&self) -> Option<&Totals> {
        self.taken_over.as_ref()
    }

    /// What one had counted that should have stayed there, and that somebody took off.
    pub fn gone(&self) -> Option<&Totals> {
        self.gone.as_ref()
    }

    /// Whether it was taken over without what rates knew: another number of groups is wanted, or the table is not there.
    pub fn forgot_rates(&self) -> bool {
        self.forgot_rates
    }

    /// Takes it off the interface, also where it stays, and says what it counted, to the last packet. Samples can still be
    /// read.
    pub fn detach(&mut self) -> Result<Totals, AttachError> {
        self.attached.detach()?;
        self.barrier.wait()?;
        let totals = self.totals()?;
        if let Some(pins) = self.pins.take() {
            pins.remove()?;
        }
        Ok(totals)
    }
}

/// A filter that is loaded and not attached yet.
struct Parts {
    barrier: Barrier,
    maker: Maker,
    current: Ready,
    samples: Option<Samples>,
}

impl Parts {
    fn load(
        wanted: &Wanted,
        shared: Option<&Shared>,
        number: u32,
        set: &RuleSet,
        tables: &Tables,
    ) -> Result<Self, Error> {
        let setup = Setup {
            shared,
            groups: wanted.groups,
            sampling: wanted.sampling,
            generation: number,
            ..Setup::default()
        };
        let current = Ready {
            number,
            spellings: set.spellings(),
            filter: Filter::load_with(tables, setup)?,
        };
        let is_sampled = wanted.sampling.denied_per_second > 0 || wanted.sampling.every > 0;
        Ok(Self {
            barrier: Barrier::new()?,
            samples: is_sampled.then(|| Samples::of(&current.filter)).transpose()?,
            maker: Maker {
                shared: Arc::new(current.filter.shared()?),
                sampling: wanted.sampling,
                next: Arc::new(AtomicU32::new(number + 1)),
            },
            current,
        })
    }

    fn kept(self, attached: Attached, pins: Option<Pins>) -> Kept {
        Kept {
            attached,
            barrier: self.barrier,
            maker: self.maker,
            current: self.current,
            retired: Vec::new(),
            settled: Totals::default(),
            samples: self.samples,
            pins,
            taken_over: None,
            gone: None,
            forgot_rates: false,
        }
    }
}
