//! A system call for each packet: `sendto` and `recvfrom`.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::address::RawAddress;
use crate::outcome::{ATTEMPTS, Refusal};
use crate::{Arrival, Sent, Socket};

/// Sends packet by packet.
pub struct CallSender {
    socket: Arc<Socket>,
}

impl CallSender {
    pub fn new(socket: Arc<Socket>) -> Self {
        Self { socket }
    }

    pub fn send<'a>(&mut self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])>) -> Sent {
        let mut sent = Sent::default();
        for (to, payload) in packets {
            match send_one(&self.socket, &RawAddress::new(to), payload) {
                Ok(()) => {}
                Err(Refusal::Never) => sent.failed += 1,
                Err(_) => break,
            }
            sent.taken += 1;
        }
        sent
    }
}

/// Sends one packet, past errors that belong to others.
pub fn send_one(socket: &Socket, to: &RawAddress, payload: &[u8]) -> Result<(), Refusal> {
    for attempt in 1..=ATTEMPTS {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: payload and address are initialised and as long as is told; the call only reads them.
        let result = unsafe {
            libc::sendto(
                socket.raw(),
                payload.as_ptr().cast(),
                payload.len(),
                flags,
                to.as_ptr(),
                to.len(),
            )
        };
        if result >= 0 {
            return Ok(());
        }
        match Refusal::last(attempt) {
            Refusal::Again => socket.forget_errors(),
            refusal => return Err(refusal),
        }
    }
    Err(Refusal::Later)
}

/// Receives packet by packet.
pub struct CallReceiver {
    socket: Arc<Socket>,
    from: RawAddress,
}

impl CallReceiver {
    pub fn new(socket: Arc<Socket>) -> Self {
        Self {
            socket,
            from: RawAddress::empty(),
        }
    }

    pub fn receive<'a>(
        &mut self,
        rooms: impl Iterator<Item = &'a mut [u8]>,
        arrived: &mut impl FnMut(Arrival),
    ) -> usize {
        let mut count = 0;
        'rooms: for room in rooms {
            for _ in 0..ATTEMPTS {
                let len: *mut libc::socklen_t = self.from.len_mut();
                let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
                // SAFETY: room and address are writable and as long as is told; the kernel writes no more.
                let result = unsafe {
                    libc::recvfrom(
                        self.socket.raw(),
                        room.as_mut_ptr().cast(),
                        room.len(),
                        flags,
                        self.from.as_mut_ptr(),
                        len,
                    )
                };
                if let (Ok(whole), Some(from)) = (usize::try_from(result), self.from.get()) {
                    arrived(Arrival {
                        from,
                        len: whole.min(room.len()),
                        cut: whole > room.len(),
                    });
                    count += 1;
                    continue 'rooms;
                }
                match Refusal::last(1) {
                    Refusal::Later => break 'rooms,
                    _ => self.socket.forget_errors(),
                }
            }
            break;
        }
        count
    }
}
