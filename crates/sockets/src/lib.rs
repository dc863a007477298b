//! UDP sockets of the kernel, used the three ways that programs use them: a call a packet, batches, `io_uring`.
//!
//! The baseline that everything else is compared with. A [`Socket`] is opened once; a [`Sender`] and a [`Receiver`] work on it,
//! each on its own thread. Neither waits: what the kernel does not take or does not have is for the next time. A ring that
//! breaks moves nothing more, and [`Socket::failure`] says so.
//!
//! `unsafe` stands here for the kernel's structures of addresses, messages and rings; each block says what it rests on.

mod address;
mod batch;
mod call;
mod failure;
mod outcome;
mod ring_memory;
mod ring_receive;
mod ring_send;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub use failure::Failure;
pub use outcome::Sent;
pub use socket::{Options, Socket};

/// How packets pass between us and the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A system call for each: `sendto`, `recvfrom`.
    Call,
    /// A system call for a burst: `sendmmsg`, `recvmmsg`.
    Batch,
    /// Rings shared with the kernel: `io_uring`, receiving by one request that stays.
    Ring,
}

/// Sends on a socket.
pub struct Sender(SenderKind);

enum SenderKind {
    Call(call::CallSender),
    Batch(Box<batch::BatchSender>),
    Ring(Box<ring_send::RingSender>),
}

impl Sender {
    /// Sends bursts of up to `burst` packets.
    pub fn new(socket: Arc<Socket>, way: Way, burst: usize) -> io::Result<Self> {
        Ok(Self(match way {
            Way::Call => SenderKind::Call(call::CallSender::new(socket)),
            Way::Batch => SenderKind::Batch(Box::new(batch::BatchSender::new(socket, burst))),
            Way::Ring => SenderKind::Ring(Box::new(ring_send::RingSender::new(socket, burst)?)),
        }))
    }

    /// Offers packets to the kernel, in order, and says what became of them. Of more than a burst the rest is not offered.
    pub fn send<'a>(&mut self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])> + Clone) -> Sent {
        match &mut self.0 {
            SenderKind::Call(sender) => sender.send(packets),
            SenderKind::Batch(sender) => sender.send(packets),
            SenderKind::Ring(sender) => sender.send(packets),
        }
    }
}

/// Receives from a socket.
pub struct Receiver(ReceiverKind);

enum ReceiverKind {
    Call(call::CallReceiver),
    Batch(Box<batch::BatchReceiver>),
    Ring(Box<ring_receive::RingReceiver>),
}

/// A packet that was received into a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it.
    pub from: SocketAddr,
    /// How many bytes of the room it took.
    pub len: usize,
    /// Whether it was longer than its room.
    pub cut: bool,
}

impl Receiver {
    /// Receives bursts of up to `burst` packets of up to `payload` bytes.
    pub fn new(socket: Arc<Socket>, way: Way, burst: usize, payload: usize) -> io::Result<Self> {
        Ok(Self(match way {
            Way::Call => ReceiverKind::Call(call::CallReceiver::new(socket)),
            Way::Batch => ReceiverKind::Batch(Box::new(batch::BatchReceiver::new(socket, burst))),
            Way::Ring => ReceiverKind::Ring(Box::new(ring_receive::RingReceiver::new(socket, payload)?)),
        }))
    }

    /// Before another thread goes on: a ring of the kernel would go on waking the one that asked. What came meanwhile may be
    /// thrown away.
    pub fn rest(&mut self) {
        if let ReceiverKind::Ring(receiver) = &mut self.0 {
            receiver.rest();
        }
    }

    /// Fills rooms in order with what has arrived, and tells of each. Returns how many were filled.
    pub fn receive<'a>(
        &mut self,
        rooms: impl Iterator<Item = &'a mut [u8]>,
        mut arrived: impl FnMut(Arrival),
    ) -> usize {
        match &mut self.0 {
            ReceiverKind::Call(receiver) => receiver.receive(rooms, &mut arrived),
            ReceiverKind::Batch(receiver) => receiver.receive(rooms, &mut arrived),
            ReceiverKind::Ring(receiver) => receiver.receive(rooms, &mut arrived),
        }
    }
}

#[cfg(test)]
mod tests;
