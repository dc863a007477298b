//! A system call for a burst: `sendmmsg` and `recvmmsg`.

use std::ffi::c_uint;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::address::RawAddress;
use crate::outcome::{ATTEMPTS, Refusal};
use crate::{Arrival, Sent, Socket};

/// The structures that a burst is described to the kernel with. Their pointers are only good during the call that they are
/// made for.
pub struct Messages {
    headers: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    addresses: Vec<RawAddress>,
}

// SAFETY: the raw pointers inside are set right before each call and never followed after it; none is tied to a thread.
unsafe impl Send for Messages {}

impl Messages {
    /// For up to `burst` packets.
    pub fn new(burst: usize) -> Self {
        let empty = libc::iovec {
            iov_base: null_mut(),
            iov_len: 0,
        };
        // SAFETY: all-zero is a value of this plain C structure: no address, no parts, no control data.
        let header: libc::mmsghdr = unsafe { zeroed() };
        Self {
            headers: vec![header; burst.max(1)],
            parts: vec![empty; burst.max(1)],
            addresses: vec![RawAddress::empty(); burst.max(1)],
        }
    }

    /// Describes what is to be sent, as long as there is room; returns how many.
    pub fn describe_sent<'a>(&mut self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])>) -> usize {
        let mut count = 0;
        for (index, (to, payload)) in packets.take(self.headers.len()).enumerate() {
            self.addresses[index].set(to);
            self.parts[index] = libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: payload.len(),
            };
            let len = self.addresses[index].len();
            self.point(index, len);
            count += 1;
        }
        count
    }

    /// Describes where to receive to; returns how many rooms there are.
    fn describe_rooms<'a>(&mut self, rooms: impl Iterator<Item = &'a mut [u8]>) -> usize {
        let mut count = 0;
        for (index, room) in rooms.take(self.headers.len()).enumerate() {
            self.parts[index] = libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: room.len(),
            };
            let len = *self.addresses[index].len_mut();
            self.point(index, len);
            count += 1;
        }
        count
    }

    fn point(&mut self, index: usize, name_len: libc::socklen_t) {
        let header = &mut self.headers[index].msg_hdr;
        header.msg_name = self.addresses[index].as_mut_ptr().cast();
        header.msg_namelen = name_len;
        header.msg_iov = &raw mut self.parts[index];
        header.msg_iovlen = 1;
    }

    /// The message `index` for a call that takes one.
    pub fn header(&self, index: usize) -> *const libc::msghdr {
        &raw const self.headers[index].msg_hdr
    }

    /// Whom message `index` goes to, or came from.
    pub fn address(&self, index: usize) -> &RawAddress {
        &self.addresses[index]
    }
}

/// Sends bursts.
pub struct BatchSender {
    socket: Arc<Socket>,
    messages: Messages,
}

impl BatchSender {
    pub fn new(socket: Arc<Socket>, burst: usize) -> Self {
        Self {
            socket,
            messages: Messages::new(burst),
        }
    }

    pub fn send<'a>(&mut self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])>) -> Sent {
        let count = self.messages.describe_sent(packets);
        let mut sent = Sent::default();
        // At the first of those that are left.
        let mut attempts = 0;
        while sent.taken < count && attempts < ATTEMPTS {
            let rest = &mut self.messages.headers[sent.taken..count];
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the headers were just pointed at payloads and addresses that live until this function's end; the
            // call reads these, and writes only the headers' own length fields.
            let result = unsafe {
                libc::sendmmsg(
                    self.socket.raw(),
                    rest.as_mut_ptr(),
                    rest.len() as c_uint,
                    flags as _,
                )
            };
            if let Some(done) = usize::try_from(result).ok().filter(|done| *done > 0) {
                sent.taken += done;
                attempts = 0;
                continue;
            }
            attempts += 1;
            match Refusal::last(attempts) {
                Refusal::Later => break,
                Refusal::Again | Refusal::Doubtful => self.socket.forget_errors(),
                Refusal::Never => {
                    sent.taken += 1;
                    sent.failed += 1;
                    attempts = 0;
                }
            }
        }
        sent
    }
}

/// Receives bursts.
pub struct BatchReceiver {
    socket: Arc<Socket>,
    messages: Messages,
}

impl BatchReceiver {
    pub fn new(socket: Arc<Socket>, burst: usize) -> Self {
        Self {
            socket,
            messages: Messages::new(burst),
        }
    }

    pub fn receive<'a>(
        &mut self,
        rooms: impl Iterator<Item = &'a mut [u8]>,
        arrived: &mut impl FnMut(Arrival),
    ) -> usize {
        let count = self.messages.describe_rooms(rooms);
        if count == 0 {
            return 0;
        }
        for _ in 0..ATTEMPTS {
            let flags = libc::MSG_DONTWAIT;
            // SAFETY: the headers were just pointed at rooms and addresses that are writable, as long as is told, and
            // live until this function's end.
            let result = unsafe {
                libc::recvmmsg(
                    self.socket.raw(),
                    self.messages.headers.as_mut_ptr(),
                    count as c_uint,
                    flags as _,
                    null_mut(),
                )
            };
            if let Ok(done) = usize::try_from(result) {
                for index in 0..done {
                    self.tell(index, arrived);
                }
                return done;
            }
            match Refusal::last(1) {
                Refusal::Later => return 0,
                _ => self.socket.forget_errors(),
            }
        }
        0
    }

    fn tell(&self, index: usize, arrived: &mut impl FnMut(Arrival)) {
        let header = &self.messages.headers[index];
        let from = self.messages.address(index).get();
        arrived(Arrival {
            from: from.unwrap_or(self.socket.local()),
            len: header.msg_len as usize,
            cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        });
    }
}
