//! What the kernel counts below a port, on an interface or in the sockets of a `packet:` port: frames that it missed, threw away,
//! or has not taken yet.

use std::cell::Cell;

use anyhow::{Context as _, Result};
use dpdk::{PacketRing, PacketSockets};
use host::interface::{counted, softnet_dropped};
use host::link::index;
use host::qdisc::dropped;
use host::{PortKind, PortUri, Sys};
use measure::Note;
use report::number;

/// Where a NIC, or its driver, counts what its ring had no room for; some count it in `rx_dropped`.
const OF_NIC: &[&str] = &["rx_missed_errors", "rx_fifo_errors"];

/// What the kernel has counted below a port since it was opened.
#[derive(Debug, Default)]
pub struct KernelCounts {
    /// The interface that counts it, and its counter.
    at: Option<(String, &'static str)>,
    interface: Growth,
    sockets: PacketSockets,
    /// What was told of the sockets so far: the kernel forgets it.
    of_sockets: Cell<u64>,
    /// Of an interface that is the kernel's: what was lost before anything of ours could see it.
    below: Option<LostBelow>,
    /// The interface that may throw away what its driver counts as sent.
    sends_by: Option<SendsBy>,
    thrown_away: Growth,
    /// The same of the queues in front of it.
    queued: Growth,
}

/// What is lost below a port, and counted for whoever shares the interface or the cores: it is told, and charged to nobody.
#[derive(Debug, Default)]
struct LostBelow {
    interface: String,
    nic: Growth,
    /// Frames without a place in the queue of a core. The interface also counts in `rx_dropped` what nobody wanted, and the cores
    /// count all interfaces.
    dropped: Growth,
    by_cores: Growth,
}

/// Below a port that sends by an interface of the kernel.
#[derive(Debug)]
struct SendsBy {
    interface: String,
    /// Its number, where frames go by a queue (tc(8)). Without one a `packet:` port keeps what was not sent.
    queued: Option<u32>,
}

/// How much a count has grown since the first look: one that is less was made anew.
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

impl LostBelow {
    /// What a NIC had no room for since the first look, and what the cores had not.
    fn look(&self) -> (u64, u64) {
        let sys = Sys::at("/");
        let of = |names: &[&str]| counted(&sys, &self.interface, names);
        let dropped = self.dropped.look(of(&["rx_dropped"]));
        let by_cores = self.by_cores.look(softnet_dropped(&sys));
        (self.nic.look(of(OF_NIC)), dropped.min(by_cores))
    }
}

impl KernelCounts {
    /// Counts from now on. The sockets of a `packet:` port have `rings`.
    pub fn from_now(uri: &PortUri, rings: PacketRing) -> Result<Self> {
        let mut counts = Self::default();
        match &uri.kind {
            PortKind::Packet { interface, .. } => {
                counts.sockets = PacketSockets::of(interface, rings)
                    .with_context(|| format!("cannot look into the sockets of port {uri}"))?;
            }
            // Whoever it was that had no room.
            PortKind::Xdp { interface, .. } => counts.at = Some((interface.clone(), "rx_dropped")),
            // What the kernel sends by it we receive.
            PortKind::Tap { name, .. } => counts.at = Some((name.clone(), "tx_dropped")),
            _ => {}
        }
        counts.missed();
        counts.of_sockets.set(0);
        Ok(counts)
    }

    /// The run begins: what is lost from now on is told.
    pub fn begin(&mut self, uri: &PortUri) {
        self.below = uri.kind.interface().map(|interface| {
            let below = LostBelow {
                interface: interface.to_owned(),
                ..LostBelow::default()
            };
            below.look();
            below
        });
        self.sends_by = match &uri.kind {
            PortKind::Xdp { interface, .. } => Some(SendsBy {
                interface: interface.clone(),
                queued: None,
            }),
            PortKind::Packet {
                interface,
                qdisc_bypass: false,
            } => index(&Sys::at("/"), interface).map(|number| SendsBy {
                interface: interface.clone(),
                queued: Some(number),
            }),
            _ => None,
        };
        self.thrown_away();
    }

    /// What the interface took in the run and threw away, such as a veth whose other end has a full queue or a smaller MTU.
    /// The kernel's own frames may be among them, and those of other ports on it. The sockets of a `packet:` port keep a frame that
    /// was thrown away, unless a queue took it before: what that or the interface throws away then counts as sent.
    pub fn thrown_away(&self) -> u64 {
        let Some(by) = &self.sends_by else { return 0 };
        let of_queues = by.queued.map(|number| dropped(number).unwrap_or(Some(0)));
        let is_told = of_queues == Some(None);
        let tx_dropped = counted(&Sys::at("/"), &by.interface, &["tx_dropped"]).filter(|_| !is_told);
        self.thrown_away.look(tx_dropped) + self.queued.look(of_queues.flatten())
    }

    /// The sockets; none where the port is of another kind.
    pub fn sockets(&self) -> &PacketSockets {
        &self.sockets
    }

    /// What was missed since it was opened.
    pub fn missed(&self) -> u64 {
        self.of_sockets
            .set(self.of_sockets.get() + self.sockets.new_drops());
        let at = self.at.as_ref();
        let at_interface = at.and_then(|(interface, name)| counted(&Sys::at("/"), interface, &[name]));
        self.of_sockets.get() + self.interface.look(at_interface)
    }

    /// What was lost below the port in the run, if that was anything.
    pub fn note(&self, uri: &PortUri) -> Option<Note> {
        let (nic, by_cores) = self.below.as_ref()?.look();
        // That of an `xdp:` port counts what the cores dropped.
        let by_cores = if self.at.is_some() { 0 } else { by_cores };
        let told = [
            (
                nic,
                "by a NIC whose ring was full (rx_missed_errors, rx_fifo_errors)",
            ),
            (
                by_cores,
                "by a core whose queue was full (net.core.netdev_max_backlog; over a veth its sender is told, and may send again)",
            ),
        ];
        let told: Vec<String> = told
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, by)| format!("{} {by}", number::count(*count)))
            .collect();
        (!told.is_empty()).then(|| {
            let text = format!(
                "lost below port {uri}, before anything of ours saw it, and counted nowhere here: {}",
                told.join(", ")
            );
            Note::new("lost_below", text)
        })
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
