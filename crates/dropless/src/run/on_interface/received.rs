//! What the interface counts itself, beside the filter: two counters that know nothing of each other.

use std::path::Path;

use host::Sys;
use host::interface::{Interface, name_of};
use host::link::{index, virtual_kind};
use measure::InterfaceCheck;

/// A veth counts what it has handed to the program when it has done up to so many packets of a queue (`veth_poll`).
const POLLED: u64 = 64;

/// Frames that an interface says it received, of a driver that counts each before its program has it.
pub struct Received {
    /// Its number: names change.
    interface: u32,
    /// Frames that the interface may be behind, or ahead.
    slack: u64,
    /// Before and after the filter was put there.
    first: (Level, Level),
    /// Packets that the filter had judged by then.
    judged: u64,
}

/// The interface's counters at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    received: u64,
    dropped: u64,
}

impl Level {
    /// Of the interface with this number.
    pub fn of(interface: u32) -> Option<Self> {
        let sys = Sys::live();
        let name = name_of(&sys, interface)?;
        let counters = Path::new("/sys/class/net").join(name).join("statistics");
        Some(Self {
            received: sys.number(counters.join("rx_packets"))?,
            dropped: sys.number(counters.join("rx_dropped"))?,
        })
    }
}

impl Received {
    /// From now on, where the driver is known to count so: in drivers of NICs what a program drops is in one counter or the other.
    pub fn begin(interface: &Interface, is_native: bool, before: Option<Level>, judged: u64) -> Option<Self> {
        let is_known = virtual_kind(&Sys::live(), &interface.name).as_deref() == Some("veth");
        if !is_native || !is_known {
            return None;
        }
        let number = index(&Sys::live(), &interface.name)?;
        Some(Self {
            interface: number,
            slack: POLLED * u64::from(interface.rx_queues.max(1)),
            first: (before?, Level::of(number)?),
            judged,
        })
    }

    /// What must have been judged since; `before` is of before the filter's last count, `goes_on` where packets are judged still.
    pub fn check(&self, before: Level, judged: u64, goes_on: bool) -> Option<InterfaceCheck> {
        let after = Level::of(self.interface)?;
        let least = before.received.saturating_sub(self.first.1.received);
        let dropped = after.dropped.saturating_sub(self.first.0.dropped);
        let most = after.received.saturating_sub(self.first.0.received);
        let ahead = if goes_on || self.judged > 0 { self.slack } else { 0 };
        Some(InterfaceCheck {
            judged: judged.saturating_sub(self.judged),
            at_least: least.saturating_sub(dropped + self.slack),
            at_most: most + ahead,
        })
    }
}
