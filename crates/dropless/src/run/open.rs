//! An open port: its queues, whatever carries its packets, with its link and its counters.

mod counted;
mod link;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use dataplane::kernel_io::{KernelReceive, KernelTransmit};
use dpdk::{Eal, Pool, Port, PortConfig, PortStats, Promiscuous, RxQueue, TxQueue};
use host::watch::LinkWatch;
use host::{Medium, PortKind, PortTraits, PortUri, Sys};
use measure::Note;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use xdp::{ProbesEnd, ProbesOf};

pub use counted::{losses, not_sent, once_an_interface};

use crate::run::below::Below;
use crate::run::kernel_counts::KernelCounts;
use crate::run::kernel_port::KernelPort;
use crate::run::peer::Tending;

/// What a port needs of DPDK.
#[derive(Clone, Copy)]
pub struct Dpdk<'p, 'e> {
    pub eal: &'e Eal,
    /// The pool of the port's NUMA node.
    pub pool: &'p Pool<'e>,
}

/// What is behind a port.
pub enum Carrier<'e> {
    /// Devices of DPDK: one for all queues, or one for each.
    Devices(Vec<Port<'e>>),
    Sockets(KernelPort),
}

pub enum Rx<'e> {
    Device(RxQueue<'e>),
    Socket(Box<KernelReceive>),
}

pub enum Tx<'e> {
    Device(TxQueue<'e>),
    Socket(Box<KernelTransmit>),
}

/// A started port and its queues.
pub struct OpenPort<'e> {
    /// As the user named it.
    pub uri: PortUri,
    carrier: Carrier<'e>,
    pub rx: Vec<Rx<'e>>,
    pub tx: Vec<Tx<'e>>,
    /// The other end of an embedded ring, for the in-process reflector.
    pub far: Option<Box<OpenPort<'e>>>,
    pub mac: [u8; 6],
    /// Buffers that its driver took when it started and never gives back.
    pub kept: u64,
    /// What the kernel counts below it.
    pub kernel: KernelCounts,
    /// The interface of the kernel that it works through.
    pub below: Option<Below>,
    /// The XDP program on that interface, where it needs one.
    program: Option<u32>,
    /// What the kernel says of that interface as it happens, or why it does not.
    watch: Option<io::Result<LinkWatch>>,
    /// What became of its link.
    pub tending: Tending,
    /// Frames of this length were cut when they were received, or may have been.
    pub cut_at: Option<usize>,
    /// Longer frames without a VLAN tag are not sent, and counted as if they were, or keep others from being sent.
    pub longest: Option<usize>,
    /// What makes its interface take frames for any address.
    pub promiscuous: Option<Promiscuous>,
    /// What keeps probes from the kernel's IP, on an interface that it has, too.
    probes_end: Option<ProbesEnd>,
    /// Frames with an 802.1ad tag came, which its driver made one of 802.1Q.
    had_service_tags: bool,
    /// Frames that its driver took and the kernel had not taken when the run ended.
    unsent: u64,
    /// What its counters said before the run's first packet: until then others' packets were missed, and our own questions.
    before: PortStats,
}

/// Whether somebody may wait for what comes there by a socket of the kernel: it has the address, if perhaps not yet for use,
/// or takes it for its own.
fn is_the_kernels(ip: IpAddr) -> bool {
    let listed = getifaddrs().is_ok_and(|mut all| {
        all.any(|interface| {
            let address = interface.address;
            let v4 = address.and_then(|address| address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip())));
            let v6 = address.and_then(|address| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip())));
            v4.or(v6) == Some(ip)
        })
    });
    let bound = UdpSocket::bind((ip, 0)).map_err(|error| error.kind());
    listed || bound.err() != Some(ErrorKind::AddrNotAvailable)
}

impl<'e> OpenPort<'e> {
    /// The port `uri` on what carries it, with its queues.
    pub fn of(uri: &PortUri, carrier: Carrier<'e>, rx: Vec<Rx<'e>>, tx: Vec<Tx<'e>>) -> Self {
        let of_sockets = match &carrier {
            Carrier::Sockets(port) => port.interface.as_deref(),
            Carrier::Devices(_) => None,
        };
        let interface = uri.kind.interface().filter(|_| uri.kind.traits().needs_program);
        Self {
            program: interface.and_then(|name| host::xdp::program(&Sys::at("/"), name)),
            watch: uri.kind.interface().or(of_sockets).and_then(|name| {
                let number = host::link::index(&Sys::at("/"), name)?;
                Some(LinkWatch::begin(number, interface.is_some()))
            }),
            below: uri.kind.interface().or(of_sockets).map(Below::now),
            uri: uri.clone(),
            carrier,
            rx,
            tx,
            far: None,
            mac: [2, 0, 0, 0, 0, 1],
            kept: 0,
            kernel: KernelCounts::default(),
            tending: Tending::default(),
            cut_at: None,
            longest: None,
            promiscuous: None,
            probes_end: None,
            had_service_tags: false,
            unsent: 0,
            before: PortStats::default(),
        }
    }

    /// Keeps probes to these addresses from the kernel's IP, which would look for a route for each after a `packet:` port has
    /// read it: those of a run, or, at addresses that the kernel has not, any. Where the kernel cannot or we may not, it goes
    /// on doing so: that costs time and no packet.
    pub fn end_probes(&mut self, own: &[IpAddr], of: Option<ProbesOf>) {
        let PortKind::Packet { interface, .. } = &self.uri.kind else {
            return;
        };
        let own = own.iter().copied();
        let own: Vec<IpAddr> = own.filter(|ip| of.is_some() || !is_the_kernels(*ip)).collect();
        if let (Ok(number), false) = (if_nametoindex(interface.as_str()), own.is_empty()) {
            self.probes_end = ProbesEnd::on(number, &own, of).ok();
        }
    }

    pub fn devices(&self) -> &[Port<'e>] {
        match &self.carrier {
            Carrier::Devices(devices) => devices,
            Carrier::Sockets(_) => &[],
        }
    }

    /// Its device of DPDK; the first one where each queue has one of its own.
    pub fn device(&self) -> Option<&Port<'e>> {
        self.devices().first()
    }

    /// What it granted of what was asked of it.
    pub fn granted(&self) -> Option<&PortConfig> {
        self.device().map(Port::granted)
    }

    pub fn driver_and_name(&self) -> (String, String) {
        match &self.carrier {
            Carrier::Sockets(port) => (port.driver(), port.name()),
            Carrier::Devices(_) => self.device().map_or_else(Default::default, |port| {
                (port.driver_name().into(), port.name().into())
            }),
        }
    }

    /// What differs from what was asked of it, and what cannot be seen of it.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = match &self.carrier {
            Carrier::Sockets(port) => port.notes.clone(),
            Carrier::Devices(_) => {
                let notes = self.device().map_or(&[][..], Port::notes);
                let named = |note: &String| Note::new("driver_differs", format!("port {}: {note}", self.uri));
                notes.iter().map(named).collect()
            }
        };
        if let Some(Err(cause)) = &self.watch {
            let text = format!(
                "the kernel does not tell what becomes of the interface of port {} ({cause}): a link that is lost for less time than lies between two looks may not be seen",
                self.uri
            );
            notes.push(Note::new("link_unwatched", text));
        }
        notes
    }

    /// Gives its device another MAC address.
    pub fn take_mac(&mut self, mac: [u8; 6]) -> Result<()> {
        if let Carrier::Devices(devices) = &mut self.carrier {
            for device in devices {
                let failed = || {
                    format!(
                        "cannot give port {} the MAC address of the port it belongs to",
                        self.uri
                    )
                };
                device.set_mac(mac).with_context(failed)?;
            }
            self.mac = mac;
        }
        Ok(())
    }

    /// Packets that wait to be received in a queue of it, at least, before one is lost.
    pub fn rx_room(&self) -> u32 {
        match &self.carrier {
            Carrier::Sockets(port) => port.holds(),
            Carrier::Devices(_) => {
                let granted = self.granted().map_or(0, |granted| granted.rx_descriptors.into());
                self.traits().rx_room_max.min(granted)
            }
        }
    }

    /// How long its receive ring holds at `rate` packets/s; 0 where it is filled by this process, which waits, or by no one.
    /// Somebody else's may wait, too, or throw packets away.
    pub fn ring_holds_ns(&self, rate: f64) -> u64 {
        if matches!(self.traits().medium, Medium::Process | Medium::Files) {
            return 0;
        }
        (f64::from(self.rx_room()) / rate.max(1.0) * 1e9) as u64
    }

    /// Packets that wait to be sent in a queue of it.
    pub fn tx_room(&self) -> u64 {
        match &self.carrier {
            Carrier::Sockets(port) => u64::from(port.descriptors()),
            Carrier::Devices(_) => self.granted().map_or(0, |granted| granted.tx_descriptors.into()),
        }
    }

    /// Packets that wait in all its queues at most. The rings of one that serves by memif are as large as its client wants, which
    /// DPDK takes up to this, and does not tell.
    pub fn tx_places(&self) -> u64 {
        let queues = self.granted().map_or(1, |granted| granted.tx_queues);
        let room = match self.uri.kind {
            PortKind::Memif { server: true, .. } => 1 << 14,
            _ => self.tx_room(),
        };
        room * u64::from(queues)
    }

    /// Its sockets, where the kernel takes headers off and puts them on, and verifies and makes checksums.
    pub fn sockets(&self) -> Option<&KernelPort> {
        match &self.carrier {
            Carrier::Sockets(port) => Some(port),
            Carrier::Devices(_) => None,
        }
    }

    /// The file that it writes, and how long that must be by the driver's count: the pcap header, and a header for each
    /// record.
    pub fn written(&self) -> Option<(PathBuf, u64)> {
        let PortKind::Pcap {
            output: Some(path), ..
        } = &self.uri.kind
        else {
            return None;
        };
        let stats = self.stats()?;
        Some((path.clone(), 24 + 16 * stats.opackets + stats.obytes))
    }

    /// Why a worker moves nothing more through it; none where all do.
    pub fn failure(&self) -> Option<String> {
        self.sockets().and_then(KernelPort::failure)
    }

    /// Takes the queues of `other` as its own.
    pub fn join(&mut self, mut other: Self) {
        self.rx.append(&mut other.rx);
        self.tx.append(&mut other.tx);
        self.kept += other.kept;
        if let (Carrier::Devices(own), Carrier::Devices(others)) = (&mut self.carrier, other.carrier) {
            own.extend(others);
        }
    }

    /// What ports of its kind differ in.
    pub fn traits(&self) -> PortTraits {
        self.uri.kind.traits()
    }

    /// The interface of the kernel that it works through.
    pub fn interface(&self) -> Option<&str> {
        let own = || self.sockets()?.interface.as_deref();
        self.uri.kind.interface().or_else(own)
    }
}
