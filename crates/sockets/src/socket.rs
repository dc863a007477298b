//! One UDP socket: how it is opened, and what the kernel tells of it.

use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Failure;
use crate::address::RawAddress;

/// `SK_MEMINFO_WMEM_ALLOC`, `SK_MEMINFO_RCVBUF` and `SK_MEMINFO_DROPS` of `linux/sock_diag.h`: places in what `SO_MEMINFO` tells.
const MEMINFO_WMEM_ALLOC: usize = 2;
const MEMINFO_RCVBUF: usize = 3;
const MEMINFO_DROPS: usize = 8;
const MEMINFO_WORDS: usize = 9;

/// What a socket shall be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is bound; port 0 lets the kernel choose.
    pub local: SocketAddr,
    /// Several sockets share the port: the kernel spreads what arrives over them by flow.
    pub shared_port: bool,
    /// Bytes that may wait in either direction, by the kernel's way of counting (with its own overhead).
    pub buffer_bytes: usize,
    /// Differentiated services code point of what is sent.
    pub dscp: u8,
    /// Time to live, or hop limit, of what is sent.
    pub ttl: u8,
}

/// A bound UDP socket that never blocks.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    local: SocketAddr,
    drops_before: u32,
    /// What was told of them; by one thread at a time.
    drops: AtomicU64,
    refusals: AtomicU64,
    failure: OnceLock<Failure>,
}

impl Socket {
    /// Opens it in the network namespace of this thread.
    pub fn open(options: &Options) -> io::Result<Self> {
        let v6 = options.local.is_ipv6();
        let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::socket(family, kind, 0) })?;
        // SAFETY: the kernel just gave us this descriptor; nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let raw = fd.as_raw_fd();
        if options.shared_port {
            set(raw, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        // The kernel doubles what it is asked for, to have room for its own overhead. Beyond the machine's limit only
        // root gets it; less is no error, and can be asked for.
        let half = c_int::try_from(options.buffer_bytes / 2).unwrap_or(c_int::MAX);
        for (forced, plain) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if set(raw, libc::SOL_SOCKET, forced, half).is_err() {
                set(raw, libc::SOL_SOCKET, plain, half)?;
            }
        }
        let (level, tos, ttl, errors, discover) = if v6 {
            (
                libc::IPPROTO_IPV6,
                libc::IPV6_TCLASS,
                libc::IPV6_UNICAST_HOPS,
                libc::IPV6_RECVERR,
                (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
            )
        } else {
            (
                libc::IPPROTO_IP,
                libc::IP_TOS,
                libc::IP_TTL,
                libc::IP_RECVERR,
                (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
            )
        };
        if options.dscp > 0 {
            set(raw, level, tos, c_int::from(options.dscp) << 2)?;
        }
        set(raw, level, ttl, c_int::from(options.ttl.max(1)))?;
        // Without this the kernel says that it took what its queueing discipline then threw away.
        set(raw, level, errors, 1)?;
        // A packet is a packet: what does not fit is refused, not cut in pieces.
        set(raw, level, discover.0, discover.1)?;
        let address = RawAddress::new(options.local);
        // SAFETY: the address is initialised and as long as it says.
        check(unsafe { libc::bind(raw, address.as_ptr(), address.len()) })?;
        let mut bound = RawAddress::empty();
        let len: *mut libc::socklen_t = bound.len_mut();
        // SAFETY: the address has the room that its length says; the kernel writes no more.
        check(unsafe { libc::getsockname(raw, bound.as_mut_ptr(), len) })?;
        let local = bound.get().unwrap_or(options.local);
        let mut socket = Self {
            fd,
            local,
            drops_before: 0,
            drops: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            failure: OnceLock::new(),
        };
        socket.drops_before = socket.counted_drops().unwrap_or(0);
        Ok(socket)
    }

    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Datagrams that the kernel threw away because this socket's buffer was full (or, of long ones, their checksum was wrong: it
    /// looks at that when they are read), since it was opened. The kernel counts in 32 bits: whoever asks before 2^32 came since the last time misses none.
    pub fn drops(&self) -> u64 {
        let told = self.drops.load(Ordering::Relaxed);
        let Some(counted) = self.counted_drops() else {
            return told;
        };
        let new = counted.wrapping_sub(self.drops_before).wrapping_sub(told as u32);
        self.drops.store(told + u64::from(new), Ordering::Relaxed);
        told + u64::from(new)
    }

    /// Bytes that may wait to be received, by the kernel's way of counting.
    pub fn receive_buffer(&self) -> usize {
        self.memory().map_or(0, |words| words[MEMINFO_RCVBUF] as usize)
    }

    /// Bytes that were sent and have not left yet, by the kernel's way of counting.
    pub fn sending_bytes(&self) -> usize {
        self.memory()
            .map_or(0, |words| words[MEMINFO_WMEM_ALLOC] as usize)
    }

    fn counted_drops(&self) -> Option<u32> {
        self.memory().map(|words| words[MEMINFO_DROPS])
    }

    fn memory(&self) -> Option<[u32; MEMINFO_WORDS]> {
        let mut words = [0_u32; MEMINFO_WORDS];
        let mut len = size_of::<[u32; MEMINFO_WORDS]>() as libc::socklen_t;
        // SAFETY: `words` has `len` writable bytes; the kernel writes no more, and any number is a value.
        let result = unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                words.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        (result == 0).then_some(words)
    }

    /// Throws away what the kernel reports of earlier packets (ICMP): it takes room from what arrives.
    #[cold]
    pub(crate) fn forget_errors(&self) {
        let mut bytes = [0_u8; 64];
        for _ in 0..64 {
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            // SAFETY: `bytes` has the room that is told.
            let result = unsafe { libc::recv(self.raw(), bytes.as_mut_ptr().cast(), bytes.len(), flags) };
            if result < 0 {
                break;
            }
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often the kernel reported that a packet did not get there (ICMP): the far kernel answers few of them so.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// The first end of a ring on it.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    /// The calling thread moves nothing more through it.
    #[cold]
    pub(crate) fn fail(&self, error: io::Error) {
        let _ = self.failure.set(Failure::here(error));
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The largest packet, with its IP header, that goes to `peer` in one piece.
    pub fn mtu_towards(&self, peer: SocketAddr) -> Option<usize> {
        let probe = UdpSocket::bind((self.local.ip(), 0)).ok()?;
        probe.connect(peer).ok()?;
        let (level, name) = if peer.is_ipv6() {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU)
        };
        let mut value = MaybeUninit::<c_int>::zeroed();
        let mut len = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: `value` has `len` writable bytes; the kernel writes no more.
        let result = unsafe {
            libc::getsockopt(
                probe.as_raw_fd(),
                level,
                name,
                value.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        // SAFETY: it was zeroed, and any number is a value.
        (result == 0).then(|| unsafe { value.assume_init() } as usize)
    }
}

fn set(fd: RawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the option's value is read from `value`, which is `len` bytes long.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), len) })?;
    Ok(())
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
