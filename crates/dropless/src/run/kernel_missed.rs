//! Frames that the kernel missed below a port, on an interface or in the sockets of a `packet:` port, and those that it has not
//! taken from these yet.

use std::cell::Cell;

use anyhow::{Context as _, Result};
use dpdk::{PacketRing, PacketSockets};
use host::interface::counted;
use host::{PortKind, PortUri, Sys};

/// What the kernel has missed below a port since it was opened.
#[derive(Debug, Default)]
pub struct KernelMissed {
    interface: Growth,
    sockets: PacketSockets,
    /// What was told of the sockets so far: the kernel forgets it.
    of_sockets: Cell<u64>,
    /// What the kernel dropped before a `packet:` port's sockets saw it.
    before_sockets: Growth,
}

/// What an interface has counted since the first look: one that counts less was made anew.
#[derive(Debug, Default)]
struct Growth {
    last: Cell<Option<u64>>,
    sum: Cell<u64>,
}

impl Growth {
    /// Looks again, if the count can be read.
    fn look(&self, counted: Option<u64>) -> u64 {
        if let Some(counted) = counted {
            let before = self.last.replace(Some(counted)).unwrap_or(counted);
            let new = counted.checked_sub(before).unwrap_or(counted);
            self.sum.set(self.sum.get() + new);
        }
        self.sum.get()
    }
}

impl KernelMissed {
    /// Counts from now on. The sockets of a `packet:` port have `rings`.
    pub fn from_now(uri: &PortUri, rings: PacketRing) -> Result<Self> {
        let mut missed = Self::default();
        if let PortKind::Packet { interface, .. } = &uri.kind {
            missed.sockets = PacketSockets::of(interface, rings)
                .with_context(|| format!("cannot look into the sockets of port {uri}"))?;
        }
        missed.get(uri);
        missed.of_sockets.set(0);
        missed.before_sockets(uri);
        Ok(missed)
    }

    /// The sockets; none where the port is of another kind.
    pub fn sockets(&self) -> &PacketSockets {
        &self.sockets
    }

    /// What was missed since.
    pub fn get(&self, uri: &PortUri) -> u64 {
        self.of_sockets
            .set(self.of_sockets.get() + self.sockets.new_drops());
        let counters = uri.kind.missed_at();
        let at_interface = counters.and_then(|(interface, names)| counted(&Sys::at("/"), interface, names));
        self.of_sockets.get() + self.interface.look(at_interface)
    }

    /// What the kernel dropped since on its way to the sockets of a `packet:` port: a veth tells its sender, which may have sent
    /// it again, and nothing else does.
    pub fn before_sockets(&self, uri: &PortUri) -> u64 {
        let PortKind::Packet { interface, .. } = &uri.kind else {
            return 0;
        };
        self.before_sockets
            .look(counted(&Sys::at("/"), interface, &["rx_dropped"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface that is made anew, or gone for a moment, takes nothing back that was missed.
    #[test]
    fn what_was_missed_stays() {
        let growth = Growth::default();
        let looks = [None, Some(5), Some(9), None, Some(9), Some(2), Some(4)];
        assert_eq!(looks.map(|counted| growth.look(counted)), [0, 0, 4, 4, 4, 6, 8]);
    }
}
