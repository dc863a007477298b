//! Frames that the kernel missed below a port, on an interface or in the sockets of a `packet:` port, and those that it has not
//! taken from these yet.

use std::cell::Cell;

use anyhow::{Context as _, Result};
use dpdk::{PacketRing, PacketSockets};
use host::{MissedCount, PortUri, Sys};

/// What the kernel has missed below a port since it was opened.
#[derive(Debug, Default)]
pub struct KernelMissed {
    /// The interface's own count at the last look.
    counted: Cell<u64>,
    sockets: PacketSockets,
    /// What was told so far: the kernel forgets what it told of a socket, and with an interface what that counted.
    told: Cell<u64>,
}

impl KernelMissed {
    /// Counts from now on. The sockets of a `packet:` port have `rings`.
    pub fn from_now(uri: &PortUri, rings: PacketRing) -> Result<Self> {
        let mut missed = Self::default();
        if let (MissedCount::PacketSockets, Some(interface)) =
            (uri.kind.traits().missed, uri.kind.interface())
        {
            missed.sockets = PacketSockets::of(interface, rings)
                .with_context(|| format!("cannot look into the sockets of port {uri}"))?;
        }
        missed.get(uri);
        missed.told.set(0);
        Ok(missed)
    }

    /// The sockets; none where the port is of another kind.
    pub fn sockets(&self) -> &PacketSockets {
        &self.sockets
    }

    /// What was missed since.
    pub fn get(&self, uri: &PortUri) -> u64 {
        let new = if let (MissedCount::Interface, Some(interface)) =
            (uri.kind.traits().missed, uri.kind.interface())
        {
            self.new_of(host::interface::rx_dropped(&Sys::at("/"), interface))
        } else {
            self.sockets.new_drops()
        };
        self.told.set(self.told.get() + new);
        self.told.get()
    }

    /// What an interface missed since the last look, by what it counts now, if that can be read. One that counts less was
    /// made anew.
    fn new_of(&self, counted: Option<u64>) -> u64 {
        let Some(counted) = counted else { return 0 };
        let before = self.counted.replace(counted);
        counted.checked_sub(before).unwrap_or(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface that is made anew, or gone for a moment, takes nothing back that was missed.
    #[test]
    fn what_was_missed_stays() {
        let missed = KernelMissed::default();
        let looks = [Some(5), Some(9), None, Some(9), Some(2), Some(4)];
        assert_eq!(looks.map(|counted| missed.new_of(counted)), [5, 4, 0, 0, 2, 2]);
    }
}
