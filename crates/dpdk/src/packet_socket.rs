//! What DPDK's drivers do not ask of packet sockets: what the kernel could not put into the rings of ours or has not sent from
//! them, and every frame of an interface, without taking that from others who asked for it.

use std::cell::Cell;
use std::ffi::CString;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{io, ptr};

use crate::packet_ring::{Mapped, PacketRing};

/// The most file descriptors looked at.
const DESCRIPTORS_MAX: i32 = 4096;
/// `PACKET_IGNORE_OUTGOING` of `linux/if_packet.h`, since Linux 4.20.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// The packet sockets of this process on one interface, as they were when it was made; it outlives none of them.
#[derive(Debug, Default)]
pub struct PacketSockets {
    sockets: Vec<Socket>,
    /// The place of the rings that is looked at next.
    next_place: Cell<usize>,
}

#[derive(Debug)]
struct Socket {
    fd: i32,
    rings: Mapped,
}

impl PacketSockets {
    /// Those of `interface`, which from now on receive what comes from it and not what this machine sends. Their rings were
    /// made as `rings` says.
    pub fn of(interface: &str, rings: PacketRing) -> io::Result<Self> {
        let index = index_of(interface)?;
        let ours = |fd: &i32| domain(*fd) == Some(libc::AF_PACKET) && interface_of(*fd) == Some(index);
        let sockets = (0..DESCRIPTORS_MAX).filter(ours).map(|fd| {
            ignore_outgoing(fd)?;
            let version = option(fd, libc::SOL_PACKET, libc::PACKET_VERSION);
            let rings = Mapped::of(fd, version, rings)?;
            Ok(Socket { fd, rings })
        });
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        if sockets.is_empty() {
            // They are on one of the same name that has gone since.
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self {
            sockets,
            next_place: Cell::new(0),
        })
    }

    /// Frames lost because a socket's ring was full, since this was last asked.
    pub fn new_drops(&self) -> u64 {
        self.sockets.iter().filter_map(|socket| drops(socket.fd)).sum()
    }

    /// Frames that their driver took and the kernel has not: the driver asks for each only once, and the kernel stops where
    /// the socket's share of what waits behind it is full.
    pub fn unsent(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.rings.unsent()).sum()
    }

    /// Frames that the kernel took and that have not left yet: they wait in a queue of the interface.
    pub fn sending(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.rings.sending()).sum()
    }

    /// Whether there is one.
    pub fn are_some(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Whether a frame with an 802.1ad tag came, of those in the next `places` of each ring. The kernel hands the tag over apart
    /// from the frame, and the driver puts it back as one of 802.1Q (`rte_vlan_insert`).
    pub fn has_service_tag(&self, places: usize) -> bool {
        let first = self.next_place.get();
        self.next_place.set(first.wrapping_add(places));
        let mut rings = self.sockets.iter().map(|socket| &socket.rings);
        rings.any(|rings| rings.has_service_tag(first, places))
    }

    /// Asks the kernel once more to take them; whether it would.
    pub fn send_the_rest(&self) -> bool {
        let with_rest = self.sockets.iter().filter(|socket| socket.rings.unsent() > 0);
        with_rest.fold(true, |all, socket| {
            // SAFETY: no data, and nobody's address.
            let sent = unsafe { libc::send(socket.fd, ptr::null(), 0, libc::MSG_DONTWAIT) };
            let error = io::Error::last_os_error().raw_os_error();
            all & (sent >= 0 || matches!(error, Some(libc::EAGAIN | libc::ENOBUFS)))
        })
    }
}

/// An interface takes every frame, for any address, as long as this lives. The kernel counts who wants that, so that nobody
/// else's end takes it away. The drivers of `AF_PACKET` and `AF_XDP` set a flag instead (`IFF_PROMISC` by `SIOCSIFFLAGS`) that
/// is the same for all: who clears it, clears it for everybody.
#[derive(Debug)]
pub struct Promiscuous {
    /// The kernel gives it up with the socket, however the process ends.
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Wants every frame of `interface` from now on.
    pub fn on(interface: &str) -> io::Result<Self> {
        let wanted = libc::packet_mreq {
            mr_ifindex: index_of(interface)?,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // Without a protocol it receives nothing.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set_option(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &wanted,
        )?;
        Ok(Self { _socket: socket })
    }
}

/// The kernel's number of an interface.
fn index_of(interface: &str) -> io::Result<i32> {
    let name = CString::new(interface)?;
    // SAFETY: a zero-terminated name.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => i32::try_from(index).map_err(io::Error::other),
    }
}

/// The address family of a socket; `None` for anything else.
fn domain(fd: i32) -> Option<i32> {
    option::<i32>(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)
}

/// The interface that a packet socket is bound to.
fn interface_of(fd: i32) -> Option<i32> {
    // SAFETY: all-zero is a value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` has `length` writable bytes.
    let result = unsafe { libc::getsockname(fd, (&raw mut address).cast(), &raw mut length) };
    (result == 0).then_some(address.sll_ifindex)
}

/// The kernel sets the counters to zero when they are read.
fn drops(fd: i32) -> Option<u64> {
    option::<[u32; 2]>(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS).map(|[_, drops]| u64::from(drops))
}

/// Keeps from a packet socket what this machine sends on the interface, by the kernel's stack or another socket. The sockets
/// of several queues are a fanout group, which `PACKET_IGNORE_OUTGOING` of a socket does not reach (`net/packet/af_packet.c`),
/// and some kernels know no such option: there a filter does the same, after the kernel has made a copy for it.
fn ignore_outgoing(fd: i32) -> io::Result<()> {
    let is_alone = option::<i32>(fd, libc::SOL_PACKET, libc::PACKET_FANOUT) == Some(0);
    if is_alone && set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32).is_ok() {
        return Ok(());
    }
    refuse_outgoing(fd)
}

fn refuse_outgoing(fd: i32) -> io::Result<()> {
    const PACKET_OUTGOING: u32 = 4;
    let step = |code: u32, k: u32, otherwise: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: otherwise,
        k,
    };
    let kind = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, kind, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, PACKET_OUTGOING, 1),
        step(libc::BPF_RET | libc::BPF_K, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, i32::MAX as u32, 0),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // The kernel copies the steps.
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set_option<T>(fd: i32, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` has `length` readable bytes, and what it points to lives until the call returns.
    match unsafe { libc::setsockopt(fd, level, name, ptr::from_ref(value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A socket option that is nothing but numbers.
fn option<T: Copy>(fd: i32, level: i32, name: i32) -> Option<T> {
    // SAFETY: only called for integers and arrays of them, of which all-zero is a value.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` has `length` writable bytes; the kernel writes no more.
    let result = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut length) };
    (result == 0).then_some(value)
}
