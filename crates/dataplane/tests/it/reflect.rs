//! Who a reflector on a link that others share answers.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::sync::Arc;

use dataplane::fault::Faults;
use dataplane::memory::{MemoryBuffers, MemoryLink};
use dataplane::reflect::{OwnMac, ReflectCounters, ReflectPlan, ReflectTask};
use dataplane::reflector_counters::OwnCounters;
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use wire::{Addresses, DropReason, Mac, ReflectorCounters};

use crate::support::{now, spec};

/// Puts the question for the counters, which is sent to `spec`'s address, to the reflector `mac`.
fn asked(mac: Mac) -> (MemoryLink, Arc<ReflectCounters>) {
    let (there, back) = (MemoryLink::new(64), MemoryLink::new(64));
    there.inject(&ReflectorCounters::question(&spec(64, 0), 77).unwrap());
    let counters = ReflectCounters::new();
    let plan = ReflectPlan {
        own_mac: OwnMac::Destination,
        only_ours: false,
        me: Addresses { mac, ips: vec![] },
        burst: 32,
        hold_ticks: u64::MAX,
        takes_rest: true,
        counters: Arc::clone(&counters),
        own_counters: Some(Arc::new(OwnCounters::of(1))),
    };
    let (_, leave) = Slot::new();
    let faults = None::<Faults<MemoryBuffers>>;
    ReflectTask::new(there, back.clone(), plan, faults, leave).poll(now(), Phase::Run);
    (back, counters)
}

#[test]
fn a_question_to_another_host_is_left_to_it() {
    let (back, counters) = asked([2, 0, 0, 0, 0, 9]);
    assert_eq!((back.len(), counters.told.get()), (0, 0));
    assert_eq!(counters.dropped[DropReason::OtherHost.index()].get(), 1);
    let (back, counters) = asked(spec(64, 0).dst_mac);
    assert_eq!((back.len(), counters.told.get()), (1, 1));
}
