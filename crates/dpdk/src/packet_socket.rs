//! What the kernel could not put into the rings of our packet sockets: DPDK's driver does not ask.

use std::mem::size_of;
use std::{io, ptr};

/// The most file descriptors looked at.
const DESCRIPTORS_MAX: i32 = 4096;
/// `PACKET_IGNORE_OUTGOING` of `linux/if_packet.h`, since Linux 4.20.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// The packet sockets of this process on one interface, as they were when it was made; it outlives none of them.
#[derive(Debug, Default)]
pub struct PacketSockets(Vec<i32>);

impl PacketSockets {
    /// Those of `interface`, which from now on receive what comes from it and not what this machine sends.
    pub fn of(interface: &str) -> io::Result<Self> {
        let Ok(name) = std::ffi::CString::new(interface) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // SAFETY: a zero-terminated name.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let ours =
            |fd: &i32| domain(*fd) == Some(libc::AF_PACKET) && interface_of(*fd) == i32::try_from(index).ok();
        let sockets: Vec<i32> = (0..DESCRIPTORS_MAX).filter(ours).collect();
        sockets.iter().try_for_each(|fd| ignore_outgoing(*fd))?;
        Ok(Self(sockets))
    }

    /// Frames lost because a socket's ring was full, since this was last asked.
    pub fn new_drops(&self) -> u64 {
        self.0.iter().filter_map(|fd| drops(*fd)).sum()
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
