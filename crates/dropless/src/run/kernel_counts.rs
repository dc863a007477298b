//! What the kernel counts below a port, on an interface or in the sockets of a `packet:` port: frames that it missed, threw away,
//! or has not taken yet.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dpdk::{PacketRing, PacketSockets};
use host::interface::{counted, softnet_dropped};
use host::link::index;
use host::qdisc::{self, Silent};
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
    /// Where frames may wait in a queue first (tc(8)). Without one a `packet:` port keeps what was not sent.
    queued: Option<Queued>,
}

/// The queues before an interface.
#[derive(Debug)]
struct Queued {
    number: u32,
    silent: RefCell<Silent>,
    looked: Cell<Option<Instant>>,
    is_there: Cell<bool>,
}

impl Queued {
    /// To list them the kernel keeps everybody from changing an interface.
    const EVERY: Duration = Duration::from_millis(100);

    fn of(interface: &str) -> Option<Self> {
        Some(Self {
            number: index(&Sys::at("/"), interface)?,
            silent: RefCell::default(),
            looked: Cell::default(),
            is_there: Cell::default(),
        })
    }

    /// Looks again, but not too often. What cannot be read is as it was.
    fn look(&self) {
        if self
            .looked
            .get()
            .is_some_and(|looked| looked.elapsed() < Self::EVERY)
        {
            return;
        }
        self.looked.set(Some(Instant::now()));
        if let Ok(found) = qdisc::of(self.number) {
            self.is_there.set(!found.is_empty());
            self.silent.borrow_mut().look(found);
        }
    }
}

/// Whether frames of the kernel's own sockets wait in a queue before `interface` now.
pub fn has_queues(interface: &str) -> bool {
    let number = index(&Sys::at("/"), interface);
    number.is_some_and(|number| qdisc::of(number).is_ok_and(|found| !found.is_empty()))
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
            } => Some(SendsBy {
                interface: interface.clone(),
                queued: Queued::of(interface),
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
        by.queued.iter().for_each(Queued::look);
        let is_told = by.queued.as_ref().is_some_and(|queued| !queued.is_there.get());
        let tx_dropped = counted(&Sys::at("/"), &by.interface, &["tx_dropped"]).filter(|_| !is_told);
        let in_queues = by
            .queued
            .as_ref()
            .map_or(0, |queued| queued.silent.borrow().dropped());
        self.thrown_away.look(tx_dropped) + in_queues
    }

    /// The next look at what is not looked at each time is a fresh one.
    pub fn expire(&self) {
        if let Some(queued) = self.sends_by.as_ref().and_then(|by| by.queued.as_ref()) {
            queued.looked.set(None);
        }
    }

    /// Whether frames wait in a queue before the interface: it is emptied when the interface or that queue's own rate allows it,
    /// and not in our calls alone.
    pub fn has_queues(&self) -> bool {
        let queued = self.sends_by.as_ref().and_then(|by| by.queued.as_ref());
        queued.is_some_and(|queued| queued.is_there.get())
    }

    /// That the queues before the interface were others for a while.
    pub fn changed_note(&self, uri: &PortUri) -> Option<Note> {
        let queued = self.sends_by.as_ref()?.queued.as_ref()?;
        let text = format!(
            "the queues before the interface of port {uri} were exchanged in the run (tc qdisc): what waited in one that was taken away is lost, and counts as sent"
        );
        queued
            .silent
            .borrow()
            .has_changed()
            .then(|| Note::new("queue_changed", text))
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
