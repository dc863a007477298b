//! The counters of an open port in a run: its driver's, or its sockets', and the kernel's below them.

use std::collections::BTreeMap;

use dpdk::PortStats;
use host::Medium;
use measure::place::{RX_ERROR, RX_MISSED, RX_NO_BUFFER, TX_DROPPED, TX_ERROR};
use measure::{Note, PortSummary};
use report::number::counted;

use super::{Carrier, OpenPort};
use crate::run::below::Below;
use crate::run::kernel_port::KernelPort;

impl OpenPort<'_> {
    /// What its counters lose from now on belongs to the run: what is to come is in its totals.
    pub fn begin(&mut self) {
        self.before = self.counted();
        self.kernel.begin(&self.uri);
        self.tending.carrier_losses = self.carrier_losses();
        if let Some(far) = &mut self.far {
            far.begin();
        }
    }

    /// The counters of all its devices or sockets; nothing where one cannot be read.
    pub fn stats(&self) -> Option<PortStats> {
        match &self.carrier {
            Carrier::Devices(devices) => devices.iter().map(|port| port.stats().ok()).sum(),
            Carrier::Sockets(port) => Some(port.stats()),
        }
    }

    /// The counters since it was opened, and what the kernel missed below it: where driver and kernel count, it is the same
    /// packets. What its driver counts as sent and was not is an error; what it refused to take is none, and still ours.
    /// Nobody knows what a file would have had where it cannot be read: see [`OpenPort::misread`].
    fn counted(&self) -> PortStats {
        let stats = self.stats().unwrap_or_default();
        let failed = if self.traits().counts_refusals {
            0
        } else {
            stats.oerrors
        };
        PortStats {
            imissed: stats.imissed.max(self.kernel.missed()),
            opackets: stats.opackets.saturating_sub(self.unsent),
            oerrors: failed + self.unsent,
            ierrors: if self.traits().medium == Medium::Files {
                0
            } else {
                stats.ierrors
            },
            ..stats
        }
    }

    /// Why its file is not to be read further: libpcap goes on behind an error as if packets came there.
    pub fn misread(&self) -> Option<String> {
        let file = self.uri.kind.files().0?;
        let errors = self.stats()?.ierrors;
        (errors > 0).then(|| {
            format!(
                "port {}: libpcap could not read on in its file, and what came after that may be no packets; `dropless read {}` says where it is damaged, and `dropless replay` takes what libpcap does not (sections of another byte order, packets of several links)",
                self.uri,
                file.display()
            )
        })
    }

    /// Frames that nobody had room for in the run.
    pub fn rx_missed(&self) -> u64 {
        self.counted().imissed.saturating_sub(self.before.imissed)
    }

    /// The same, and before it the frames that came through it.
    pub fn received_and_missed(&self) -> [u64; 2] {
        let stats = self.counted();
        [stats.ipackets, stats.imissed.saturating_sub(self.before.imissed)]
    }

    /// Frames that were lost on their way into the run: nobody had room for them, or a buffer.
    pub fn rx_lost(&self) -> u64 {
        let (stats, before) = (self.counted(), &self.before);
        let no_buffer = stats.rx_nombuf.saturating_sub(before.rx_nombuf);
        stats.imissed.saturating_sub(before.imissed) + no_buffer
    }

    /// The same, and what it could not read: all that came to it and was not received.
    pub fn not_received(&self) -> u64 {
        let errors = self.counted().ierrors.saturating_sub(self.before.ierrors);
        self.rx_lost() + errors
    }

    /// Frames that it took and its driver could not send.
    pub fn tx_errors(&self) -> u64 {
        self.counted().oerrors.saturating_sub(self.before.oerrors)
    }

    /// What the other end of an embedded ring missed.
    pub fn far_missed(&self) -> u64 {
        self.far.as_ref().map_or(0, |far| far.rx_missed())
    }

    pub fn summary(&self) -> PortSummary {
        let (stats, before) = (self.counted(), &self.before);
        let (driver, name) = self.driver_and_name();
        PortSummary {
            uri: self.uri.to_string(),
            driver,
            name,
            link: self.link(),
            tx_packets: stats.opackets,
            rx_packets: stats.ipackets,
            rx_missed: stats.imissed.saturating_sub(before.imissed),
            rx_nombuf: stats.rx_nombuf.saturating_sub(before.rx_nombuf),
            rx_errors: stats.ierrors.saturating_sub(before.ierrors),
            tx_errors: self.tx_errors(),
            tx_dropped: self.kernel.thrown_away(),
        }
    }

    /// What is to be told of it at the end of a run.
    pub fn last_notes(&self) -> Vec<Note> {
        let unsent = (self.unsent > 0).then(|| {
            let text = format!(
                "{} still waited in the ring of port {} at the end, as its interface sends slower than it was given: not sent, and counted as tx_error",
                counted(self.unsent, "frame"),
                self.uri
            );
            Note::new("tx_unsent", text)
        });
        // To another kind of port the kernel hands what comes by any queue.
        let below = self.below.as_ref().filter(|_| self.traits().needs_program);
        let raised = below.and_then(Below::more_queues).map(|(had, has)| {
            let text = format!(
                "the interface of port {} had {} and was given {has} in the run: what came by the others went to the kernel",
                self.uri,
                counted(had.into(), "receive queue")
            );
            Note::new("queues_raised", text)
        });
        let tags = self.had_service_tags.then(|| {
            let text = format!(
                "frames with an 802.1ad tag (0x88a8) came to port {}, where DPDK's driver makes it one of 802.1Q (0x8100): so it is captured, and goes on",
                self.uri
            );
            Note::new("service_tags_changed", text)
        });
        let of_sockets = self.sockets().map(KernelPort::last_notes).unwrap_or_default();
        let told = of_sockets
            .into_iter()
            .chain(unsent)
            .chain(self.kernel.note(&self.uri))
            .chain(self.kernel.changed_note(&self.uri));
        told.chain(raised).chain(tags).collect()
    }

    /// Has the kernel take what a `packet:` port's driver asked for and the kernel had no room for: the driver asks again only
    /// with the next frame, and the last ones have none. Whether there is more that it may still take.
    pub fn send_the_rest(&self) -> bool {
        let sockets = self.kernel.sockets();
        sockets.send_the_rest() && sockets.unsent() > 0
    }

    /// Whether it says when what its driver took has left.
    pub fn tells_departure(&self) -> bool {
        self.traits().counts_on_wire || self.kernel.sockets().are_some()
    }

    /// Whether what its driver took has yet to be sent, by an interface of the kernel.
    pub fn sends_by_interface(&self) -> bool {
        self.traits().medium == Medium::SharedInterface
    }

    /// Frames that it counts as sent and that wait below it, in a queue of the kernel's interface.
    pub fn waiting_below(&self) -> u64 {
        self.kernel.sockets().sending()
    }

    /// Frames that it counts as sent and that the kernel has not taken from it yet.
    pub fn waiting_above(&self) -> u64 {
        self.kernel.sockets().unsent()
    }

    /// Whether something that it counts as sent has not left, as far as the kernel tells that of it.
    pub fn is_sending(&self) -> bool {
        self.waiting_below() + self.waiting_above() > 0 || self.sockets().is_some_and(KernelPort::is_sending)
    }

    /// The run has ended: what the kernel has not taken from it is not sent.
    pub fn give_the_rest_up(&mut self) {
        let sockets = self.kernel.sockets();
        self.unsent = sockets.unsent();
        self.had_service_tags |= sockets.has_service_tag(usize::MAX);
    }
}

/// Frames that `ports` took and did not send: their drivers could not, or the interfaces below threw them away.
pub fn not_sent(ports: &[OpenPort<'_>]) -> u64 {
    let errors: u64 = ports.iter().map(OpenPort::tx_errors).sum();
    let thrown_away = ports
        .iter()
        .map(|open| (open.interface(), open.kernel.thrown_away()));
    errors + once_an_interface(thrown_away)
}

/// The sum of what each port says of the interface below it, whatever ports are on that.
pub fn once_an_interface<'i>(counts: impl Iterator<Item = (Option<&'i str>, u64)>) -> u64 {
    let mut of = BTreeMap::new();
    for (interface, count) in counts {
        let most: &mut u64 = of.entry(interface).or_default();
        *most = count.max(*most);
    }
    of.values().sum()
}

/// What a port of these counters lost, by place.
pub fn losses(port: &PortSummary) -> [(&'static str, u64); 5] {
    [
        (TX_ERROR, port.tx_errors),
        (TX_DROPPED, port.tx_dropped),
        (RX_NO_BUFFER, port.rx_nombuf),
        (RX_MISSED, port.rx_missed),
        (RX_ERROR, port.rx_errors),
    ]
}
