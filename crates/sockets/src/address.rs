//! Socket addresses as the kernel wants them, and back.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address in the kernel's form, in place, so that pointers to it stay good as long as it is not moved.
#[derive(Clone, Copy)]
pub struct RawAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl RawAddress {
    /// Room for the longest address.
    pub fn empty() -> Self {
        Self {
            // SAFETY: all-zero is a value of this plain C structure: the unspecified family.
            storage: unsafe { zeroed() },
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    /// `address` for the kernel.
    pub fn new(address: SocketAddr) -> Self {
        let mut raw = Self::empty();
        raw.set(address);
        raw
    }

    /// Becomes `address`.
    pub fn set(&mut self, address: SocketAddr) {
        match address {
            SocketAddr::V4(v4) => {
                let to = (&raw mut self.storage).cast::<libc::sockaddr_in>();
                // SAFETY: sockaddr_storage is as large as and aligned for every address structure; all its bytes are
                // initialised, and we own it.
                let to = unsafe { &mut *to };
                to.sin_family = libc::AF_INET as libc::sa_family_t;
                to.sin_port = v4.port().to_be();
                to.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                self.len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            SocketAddr::V6(v6) => {
                let to = (&raw mut self.storage).cast::<libc::sockaddr_in6>();
                // SAFETY: as above.
                let to = unsafe { &mut *to };
                to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                to.sin6_port = v6.port().to_be();
                to.sin6_addr.s6_addr = v6.ip().octets();
                to.sin6_scope_id = v6.scope_id();
                to.sin6_flowinfo = 0;
                self.len = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
        }
    }

    /// What the kernel wrote; `None` if it is no IP address.
    pub fn get(&self) -> Option<SocketAddr> {
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: as above; the family says that it is this structure.
                let v4 = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port)))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some(SocketAddr::new(IpAddr::V6(ip), u16::from_be(v6.sin6_port)))
            }
            _ => None,
        }
    }

    /// The address in the bytes of one, as `io_uring` leaves it among other things.
    pub fn read(bytes: &[u8]) -> Option<SocketAddr> {
        let mut raw = Self::empty();
        let len = bytes.len().min(size_of::<libc::sockaddr_storage>());
        // SAFETY: both are at least `len` bytes long and do not overlap; every byte pattern is a value of the structure.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut raw.storage).cast::<u8>(), len);
        }
        raw.get()
    }

    /// For a call that only reads it.
    pub fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// For a call that may write it.
    pub fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }

    /// Its length in bytes.
    pub fn len(&self) -> libc::socklen_t {
        self.len
    }

    /// Where a call writes the length of what it wrote; the whole room before.
    pub fn len_mut(&mut self) -> &mut libc::socklen_t {
        self.len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        &mut self.len
    }
}
