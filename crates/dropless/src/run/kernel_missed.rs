//! Frames that the kernel missed below a port: on an interface, or in the sockets of a `packet:` port.

use std::cell::Cell;

use anyhow::{Context as _, Result};
use dpdk::PacketSockets;
use host::{MissedCount, PortUri, Sys};

/// What the kernel has missed below a port since it was opened.
#[derive(Debug, Default)]
pub struct KernelMissed {
    /// The interface's own count when the port was opened.
    before: u64,
    sockets: PacketSockets,
    /// The kernel forgets what it told of a socket.
    told: Cell<u64>,
}

impl KernelMissed {
    /// Counts from now on.
    pub fn from_now(uri: &PortUri) -> Result<Self> {
        let mut missed = Self::default();
        if let (MissedCount::PacketSockets, Some(interface)) =
            (uri.kind.traits().missed, uri.kind.interface())
        {
            missed.sockets = PacketSockets::of(interface)
                .with_context(|| format!("cannot keep what this machine sends out of port {uri}"))?;
        }
        missed.before = missed.get(uri);
        Ok(missed)
    }

    /// What was missed since.
    pub fn get(&self, uri: &PortUri) -> u64 {
        let ever = if let (MissedCount::Interface, Some(interface)) =
            (uri.kind.traits().missed, uri.kind.interface())
        {
            host::interface::rx_dropped(&Sys::at("/"), interface).unwrap_or(0)
        } else {
            self.told.set(self.told.get() + self.sockets.new_drops());
            self.told.get()
        };
        ever.saturating_sub(self.before)
    }
}
