//! `kernel:` ports: sockets and their queues, opened without DPDK.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dataplane::kernel_io::{KernelReceive, KernelTransmit, SlotPool, SocketCounters};
use dpdk::PortStats;
use host::{KernelIo, PortKind, PortUri, Sys};
use measure::Note;
use measure::units::format_count;
use sockets::{Failure, Options, Receiver, Sender, Socket, Way};

/// What the kernel charges a socket for a small packet, bytes, where a driver gave it a whole page.
const PAGE_BYTES: usize = 4096;
/// What it charges besides the frame (x86-64): the room before it and `struct skb_shared_info`, which with the frame are a power of
/// two, and `struct sk_buff`.
const AROUND_FRAME: usize = 64 + 320;
const SK_BUFF: usize = 256;

/// What the kernel charges a socket for a packet in a frame of this length at most, bytes.
fn packet_bytes(largest_frame: usize) -> usize {
    PAGE_BYTES.max((largest_frame + AROUND_FRAME).next_power_of_two() + SK_BUFF)
}

/// Buffers of a queue; few, so that they stay in the cache.
const SLOTS: usize = 512;
/// The same where a fault injector keeps some.
const SLOTS_FAULT: usize = 8192;

/// What `send` or `reflect` wants of its sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketConfig {
    /// Sockets of the port.
    pub queues: u16,
    /// Packets that may wait in a socket.
    pub descriptors: u16,
    pub burst: usize,
    /// The largest frame, with FCS.
    pub largest_frame: usize,
    /// Probes get true checksums, because their payload is compared.
    pub sealed: bool,
    /// What is received goes out again, through the same buffers.
    pub reflects: bool,
    /// A fault injector keeps frames back.
    pub has_faults: bool,
    /// Code point and time to live of what is sent.
    pub dscp_and_ttl: (u8, u8),
    /// Where the probes go, if that is known.
    pub peers: Vec<SocketAddr>,
}

pub struct KernelPort {
    sockets: Vec<Arc<Socket>>,
    counters: Vec<Arc<SocketCounters>>,
    /// The interface that has the address.
    pub interface: Option<String>,
    pub io: KernelIo,
    pub notes: Vec<Note>,
    descriptors: u16,
    /// What a packet takes of a receive buffer at most.
    packet_bytes: usize,
    /// UDP packets with wrong checksums in this network namespace, before.
    damaged_before: u64,
    /// And those that no socket had room for.
    no_room_before: u64,
    /// Of what our sockets dropped.
    damaged_told: Cell<u64>,
}

pub type KernelQueues = (KernelReceive, KernelTransmit);

impl KernelPort {
    pub fn open(uri: &PortUri, config: &SocketConfig) -> Result<(Self, Vec<KernelQueues>)> {
        let PortKind::Kernel { address, port, io } = uri.kind else {
            anyhow::bail!("port {uri} has no sockets");
        };
        let queues = uri.queues.map_or(config.queues, std::num::NonZeroU16::get);
        let mut own = Self {
            sockets: Vec::new(),
            counters: Vec::new(),
            interface: interface_with(&Sys::live(), address),
            io,
            notes: Vec::new(),
            descriptors: config.descriptors,
            packet_bytes: packet_bytes(config.largest_frame),
            damaged_before: udp_counted(DAMAGED),
            no_room_before: udp_counted(NO_ROOM),
            damaged_told: Cell::new(0),
        };
        let options = Options {
            local: SocketAddr::new(address, port.unwrap_or(0)),
            shared_port: port.is_some() && queues > 1,
            buffer_bytes: usize::from(config.descriptors) * own.packet_bytes,
            dscp: config.dscp_and_ttl.0,
            ttl: config.dscp_and_ttl.1,
        };
        let way = match io {
            KernelIo::Call => Way::Call,
            KernelIo::Mmsg => Way::Batch,
            KernelIo::Uring => Way::Ring,
        };
        let room = config.largest_frame.next_multiple_of(64).max(2048);
        let slots = if config.has_faults { SLOTS_FAULT } else { SLOTS };
        let mut pairs = Vec::new();
        for _ in 0..queues {
            let socket = Socket::open(&options).with_context(|| format!("cannot open port {uri}"))?;
            let socket = Arc::new(socket);
            let counters = Arc::new(SocketCounters::default());
            let why = || match io {
                KernelIo::Uring => format!(
                    "cannot open port {uri}: io_uring (Linux 6.0 or later, and /proc/sys/kernel/io_uring_disabled at 0); use io=mmsg"
                ),
                _ => format!("cannot open port {uri}"),
            };
            let receiver = Receiver::new(Arc::clone(&socket), way, config.burst, room).with_context(why)?;
            let sender = Sender::new(Arc::clone(&socket), way, config.burst).with_context(why)?;
            let pool = SlotPool::new(slots, room);
            // Two threads that share nothing do not wait for each other.
            let tx_pool = if config.reflects {
                pool.clone()
            } else {
                SlotPool::new(slots, room)
            };
            pairs.push((
                KernelReceive::new(
                    receiver,
                    socket.local(),
                    config.sealed,
                    pool,
                    Arc::clone(&counters),
                ),
                KernelTransmit::new(sender, tx_pool, Arc::clone(&counters)),
            ));
            own.sockets.push(socket);
            own.counters.push(counters);
        }
        own.check_size(uri, config)?;
        own.note_buffer(uri);
        Ok((own, pairs))
    }

    /// A frame that would have to be cut in pieces is refused here, not packet by packet.
    fn check_size(&self, uri: &PortUri, config: &SocketConfig) -> Result<()> {
        let Some(socket) = self.sockets.first() else {
            return Ok(());
        };
        for peer in &config.peers {
            let Some(mtu) = socket.mtu_towards(*peer) else {
                continue;
            };
            let carries = mtu + 18;
            ensure!(
                config.largest_frame <= carries,
                "port {uri} carries frames of up to {carries} bytes towards {} (MTU {mtu}); send none that are longer",
                peer.ip()
            );
        }
        Ok(())
    }

    fn note_buffer(&mut self, uri: &PortUri) {
        let got = self.sockets.first().map_or(0, |socket| socket.receive_buffer());
        let wanted = usize::from(self.descriptors) * self.packet_bytes;
        if got < wanted / 2 {
            self.notes.push(Note::new("socket_buffer_small", format!(
                "port {uri}: the kernel grants {} KiB of receive buffer a socket, {} were asked for; more with: sysctl -w net.core.rmem_max={}",
                got >> 10,
                wanted >> 10,
                wanted / 2
            )));
        }
    }

    /// The counters of all its sockets, as a driver would give them.
    pub fn stats(&self) -> PortStats {
        let of_one = |counters: &Arc<SocketCounters>| PortStats {
            ipackets: counters.rx_packets.get(),
            opackets: counters.tx_packets.get(),
            ibytes: counters.rx_bytes.get(),
            obytes: counters.tx_bytes.get(),
            ierrors: counters.rx_errors.get(),
            oerrors: counters.tx_errors.get(),
            ..PortStats::default()
        };
        let mut sum: PortStats = self.counters.iter().map(of_one).sum();
        let dropped: u64 = self.sockets.iter().map(|socket| socket.drops()).sum();
        if dropped > 0 {
            // A socket also counts what it finds damaged when it is read (net/ipv4/udp.c, `udp_recvmsg`): that is the path's, where
            // so many are damaged. What had no room may be others', later: what was told as damaged stays.
            let no_room = udp_counted(NO_ROOM).saturating_sub(self.no_room_before);
            let damaged = dropped.saturating_sub(no_room).min(self.damaged());
            let damaged = damaged.max(self.damaged_told.get());
            self.damaged_told.set(damaged);
            sum.imissed = dropped - damaged;
            sum.ierrors += damaged;
        }
        sum
    }

    /// What is to be told of it at the end of a run.
    pub fn last_notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let refusals: u64 = self.sockets.iter().map(|socket| socket.refusals()).sum();
        if refusals > 0 {
            notes.push(refused(&self.name(), refusals, false));
        }
        let damaged = self.damaged();
        if damaged > 0 {
            notes.push(Note::new("wrong_checksums", format!(
                "the kernel dropped {} UDP packets with wrong checksums during the run, whoever they were for: on a virtual link to a program that sees whole frames, make the kernel compute them with: ethtool -K INTERFACE tx off",
                format_count(damaged)
            )));
        }
        notes
    }

    /// UDP packets with wrong checksums since it was opened, whoever they were for.
    fn damaged(&self) -> u64 {
        udp_counted(DAMAGED).saturating_sub(self.damaged_before)
    }

    /// The first of its workers that moves nothing more, and why.
    pub fn failure(&self) -> Option<String> {
        let mut failures = self.sockets.iter().filter_map(|socket| socket.failure());
        let text = |failure: &Failure| {
            format!(
                "the worker {} ended: its io_uring on {} failed: {}",
                failure.worker,
                self.name(),
                failure.source
            )
        };
        failures.next().map(text)
    }

    /// What stands where other ports have their driver.
    pub fn driver(&self) -> String {
        format!("sockets_{}", self.io.name())
    }

    /// Where its first socket is bound.
    pub fn name(&self) -> String {
        self.sockets
            .first()
            .map_or_else(String::new, |socket| socket.local().to_string())
    }

    /// Whether something that it sent waits below it, in a queue of the kernel's interface.
    pub fn is_sending(&self) -> bool {
        self.sockets.iter().any(|socket| socket.sending_bytes() > 0)
    }

    /// Packets that one of its sockets holds, at least.
    pub fn holds(&self) -> u32 {
        let bytes = self.sockets.first().map_or(0, |socket| socket.receive_buffer());
        (bytes / self.packet_bytes) as u32
    }

    /// Packets that a late sender catches up with, unless told otherwise: as many as fit a ring elsewhere.
    pub fn descriptors(&self) -> u16 {
        self.descriptors
    }
}

/// The interface that has this address.
pub fn interface_with(sys: &Sys, address: IpAddr) -> Option<String> {
    let mut addresses = sys.addresses.iter();
    addresses
        .find(|(_, ip)| *ip == address)
        .map(|(name, _)| name.clone())
}

/// UDP packets that the kernel threw away for their checksum.
const DAMAGED: &[&str] = &["InCsumErrors"];
/// And those that a socket had no room for, or the kernel no memory.
const NO_ROOM: &[&str] = &["RcvbufErrors", "MemErrors"];

/// The sum of these counters of UDP in this network namespace, over both IP versions.
fn udp_counted(counters: &[&str]) -> u64 {
    let v4 = std::fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let mut lines = v4.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let v4 = names.split_whitespace().zip(values.split_whitespace());
    let v6 = std::fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    let v6 = v6
        .lines()
        .filter_map(|line| line.strip_prefix("Udp6")?.split_once(char::is_whitespace));
    v4.chain(v6)
        .filter(|(name, _)| counters.contains(name))
        .filter_map(|(_, value)| value.trim().parse::<u64>().ok())
        .sum()
}

/// Somebody on the way sent so many errors for packets of ours to `who`; `all_back`: and yet each of these came back.
pub fn refused(who: &str, errors: u64, all_back: bool) -> Note {
    let text = if all_back {
        format!(
            "{who} received {errors} ICMP errors for packets that came back all the same: beside the one that returns them a kernel has that address, too; give the reflector one of its own (--to here, `dropless reflect --address` there)"
        )
    } else {
        format!(
            "{who} received {errors} errors for packets that were not delivered (ICMP; usually nothing listens on that UDP port, and kernels report only a few of them); start `dropless reflect --port kernel:ADDR` there"
        )
    };
    Note::new("packets_refused", text)
}
