//! Queues that are reflected, by `dropless reflect` or inside a sender, and what they count.

use std::collections::BTreeMap;
use std::sync::Arc;

use dataplane::Task;
use dataplane::fault::{self, FaultCounters, FaultSpec, Faults};
use dataplane::io::{Allocate, FramesMut, Receive, Transmit};
use dataplane::reflect::{self, OwnMac, ReflectCounters, ReflectPlan, ReflectResult, ReflectTask};
use dataplane::reflector_counters::OwnCounters;
use dataplane::slot::{Fill, Slot};
use measure::Clock;
use measure::place::{HOLD_NS, OVERSIZED, TX_FULL};
use wire::{Addresses, DropReason};

use super::queues::QueuePlace;
use super::stage::OnPair;

/// Probes that the injector delays at once, at most.
const DELAYED_MAX: usize = 4096;

/// One reflected queue pair, as the control thread sees it.
pub struct ReflectSide {
    pub place: QueuePlace,
    /// What its task publishes while it runs.
    pub counters: Arc<ReflectCounters>,
    /// What its injector publishes.
    pub faults: Arc<FaultCounters>,
    /// What its task leaves when it has ended.
    pub totals: Slot<ReflectResult>,
}

/// How the queues of a port are reflected.
pub struct Reflecting<'f> {
    /// Whose addresses are answered for.
    pub me: Addresses,
    pub own_mac: OwnMac,
    /// Return probes only.
    pub only_ours: bool,
    pub burst: usize,
    pub fault: Option<&'f FaultSpec>,
    pub seed: u64,
    pub clock: Clock,
    /// Its sender is in another process.
    pub takes_rest: bool,
    /// What the far sender is told.
    pub own_counters: Option<Arc<OwnCounters>>,
}

/// Buffers that the task of a queue pair may hold back.
pub const fn buffers_held(burst: usize, has_faults: bool) -> usize {
    let by_injector = if has_faults {
        fault::buffers_held(DELAYED_MAX)
    } else {
        0
    };
    reflect::buffers_held(burst) + by_injector
}

/// A task to be: between two queues.
pub struct ReflectQueue<'f> {
    plan: ReflectPlan,
    faults: Option<(&'f FaultSpec, u64, f64, Arc<FaultCounters>)>,
    leave: Fill<ReflectResult>,
}

impl<'f> Reflecting<'f> {
    /// The queue pair number `number` of the run, and its task.
    pub fn queue(&self, number: usize, place: QueuePlace) -> (ReflectSide, ReflectQueue<'f>) {
        let (totals, leave) = Slot::new();
        let side = ReflectSide {
            place,
            counters: ReflectCounters::new(),
            faults: Arc::default(),
            totals,
        };
        let faults = self.fault.map(|spec| {
            let seed = self.seed.wrapping_add(number as u64);
            (spec, seed, self.clock.hz(), Arc::clone(&side.faults))
        });
        let plan = ReflectPlan {
            only_ours: self.only_ours,
            own_mac: self.own_mac,
            me: self.me.clone(),
            burst: self.burst,
            hold_ticks: self.clock.ticks_from_ns(HOLD_NS),
            takes_rest: self.takes_rest,
            counters: Arc::clone(&side.counters),
            own_counters: self.own_counters.clone(),
        };
        (side, ReflectQueue { plan, faults, leave })
    }
}

impl OnPair for ReflectQueue<'_> {
    fn on<'p, A: Allocate<Frames: FramesMut> + 'p>(
        self,
        rx: impl Receive<Frames = A::Frames> + 'p,
        tx: impl Transmit<Frames = A::Frames> + 'p,
        buffers: A,
    ) -> Box<dyn Task + 'p> {
        let faults = self
            .faults
            .map(|(spec, seed, hz, counters)| Faults::new(spec, seed, hz, DELAYED_MAX, buffers, counters));
        Box::new(ReflectTask::new(rx, tx, self.plan, faults, self.leave))
    }
}

/// The drops of all queues, by name.
pub fn drops<'s>(sides: impl IntoIterator<Item = &'s ReflectSide>) -> BTreeMap<String, u64> {
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for side in sides {
        let counters = &side.counters;
        for reason in DropReason::ALL {
            *drops.entry(reason.name().into()).or_default() += counters.dropped[reason.index()].get();
        }
        *drops.entry(OVERSIZED.into()).or_default() += counters.oversized.get();
        *drops.entry(TX_FULL.into()).or_default() += counters.tx_full.get();
    }
    drops.retain(|_, count| *count > 0);
    drops
}

/// What the injectors did, by name; `seen` says of how many probes.
pub fn faults(sides: &[ReflectSide]) -> BTreeMap<String, u64> {
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    for side in sides {
        let one = &side.faults;
        for (name, counter) in [
            ("seen", &one.seen),
            ("drop", &one.drop),
            ("limit", &one.limit),
            ("duplicate", &one.duplicate),
            ("reorder", &one.reorder),
            ("corrupt", &one.corrupt),
            ("delay", &one.delay),
            ("not_done", &one.not_done),
        ] {
            *faults.entry(name.into()).or_default() += counter.get();
        }
    }
    if faults.get("seen") == Some(&0) {
        BTreeMap::new()
    } else {
        faults
    }
}

/// What the injectors dropped.
pub fn fault_drops(sides: &[ReflectSide]) -> u64 {
    sides.iter().map(|side| side.faults.drop.get()).sum()
}
