//! What became of a burst that was offered to the kernel.

use std::io;

/// What became of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets, from the first on, that are no longer ours: sent, or failed.
    pub taken: usize,
    /// Of these, how many the kernel will never send: forbidden, unroutable, too long.
    pub failed: usize,
}

/// What an error of a sending call means for its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No room now: offer it again later.
    Later,
    /// The error belongs to an earlier packet, or to nothing: offer it again at once.
    Again,
    /// The error is its own, or an ICMP error about an earlier packet: offer it again at once, to see whether it repeats.
    Doubtful,
    /// It will never be sent.
    Never,
}

impl Refusal {
    /// By the error number. ICMP errors about earlier packets come as the result of the next call, whatever it sends.
    pub fn of(errno: i32) -> Self {
        match errno {
            libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => Self::Later,
            libc::EINTR | libc::ECONNREFUSED => Self::Again,
            // net/ipv4/icmp.c, `icmp_err_convert`; net/ipv6/icmp.c, `icmpv6_err_convert`.
            libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENONET
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
            | libc::EMSGSIZE
            | libc::EPROTO
            | libc::EACCES => Self::Doubtful,
            _ => Self::Never,
        }
    }

    /// By the last error of this thread, at this attempt (from 1 on) at one packet.
    pub fn last(attempt: usize) -> Self {
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        match Self::of(errno) {
            Self::Doubtful if attempt < ATTEMPTS => Self::Again,
            Self::Doubtful => Self::Never,
            refusal => refusal,
        }
    }
}

/// Attempts at a packet whose call reports errors of others.
pub const ATTEMPTS: usize = 4;
