//! Sending through `io_uring`: a burst of requests, one call that hands them over, and their results in the ring.

use std::io;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};

use crate::batch::Messages;
use crate::call::send_one;
use crate::failure::passes;
use crate::outcome::Refusal;
use crate::{Sent, Socket};

/// How long a packet between others that were sent may wait for room.
const STRAGGLER_MS: i32 = 10;
/// Calls in a row that may fail, for reasons that pass, before the ring counts as broken.
const FAILURES_MAX: u32 = 10_000;

/// Sends bursts.
pub struct RingSender {
    socket: Arc<Socket>,
    shared: ManuallyDrop<Shared>,
    results: Vec<i32>,
    is_broken: bool,
}

/// What the kernel may follow as long as it has a request.
struct Shared {
    /// Dropped before the memory that it uses.
    ring: IoUring,
    messages: Messages,
}

impl RingSender {
    pub fn new(socket: Arc<Socket>, burst: usize) -> io::Result<Self> {
        let entries = (burst.max(1) as u32).next_power_of_two();
        let ring = IoUring::builder().setup_coop_taskrun().build(entries)?;
        ring.submitter().register_files(&[socket.raw()])?;
        let messages = Messages::new(burst);
        Ok(Self {
            socket,
            shared: ManuallyDrop::new(Shared { ring, messages }),
            results: vec![0; burst.max(1)],
            is_broken: false,
        })
    }

    pub fn send<'a>(&mut self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])> + Clone) -> Sent {
        if self.is_broken {
            return Sent::default();
        }
        let count = self.shared.messages.describe_sent(packets.clone());
        if count == 0 {
            return Sent::default();
        }
        let Shared { ring, messages } = &mut *self.shared;
        let mut queue = ring.submission();
        for index in 0..count {
            let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u32;
            let entry = opcode::SendMsg::new(types::Fixed(0), messages.header(index))
                .flags(flags)
                .build()
                .user_data(index as u64);
            // SAFETY: the header, its payload and its address live until the request's result is taken below, before
            // this function ends; the queue holds a burst and is empty between calls. Where the ring breaks instead, it
            // is never entered again: what it still holds is not looked at, and what was handed over is done, because
            // such a request does not wait.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
        }
        let pushed = queue.len();
        drop(queue);
        if let Err(error) = self.await_all(pushed) {
            self.is_broken = true;
            self.socket.fail(error);
            return Sent::default();
        }
        self.sort_out(packets, pushed)
    }

    /// Hands the requests over and takes every result: nothing of this burst is with the kernel afterwards.
    fn await_all(&mut self, pushed: usize) -> io::Result<()> {
        let ring = &mut self.shared.ring;
        let (mut waiting, mut failures) = (pushed, 0);
        while waiting > 0 {
            // The requests never block, so that their results are there when the call is back.
            let call = ring.submit_and_wait(waiting);
            failures = if call.is_ok() { 0 } else { failures + 1 };
            for result in ring.completion() {
                if let Some(place) = self.results.get_mut(result.user_data() as usize) {
                    *place = result.result();
                    waiting -= 1;
                }
            }
            match call {
                Err(error) if waiting > 0 && (!passes(&error) || failures > FAILURES_MAX) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Packets leave in order: one that was refused between others that were sent gets its turn now, or is given up.
    fn sort_out<'a>(&self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])>, count: usize) -> Sent {
        let results = &self.results[..count];
        let last = results.iter().rposition(|result| *result >= 0);
        let mut sent = Sent::default();
        for (index, (result, (_, payload))) in results.iter().zip(packets).enumerate() {
            let refusal = (*result < 0).then(|| Refusal::of(-result));
            match refusal {
                None => {}
                Some(Refusal::Never) => sent.failed += 1,
                Some(refusal) if refusal == Refusal::Doubtful || last.is_some_and(|last| index < last) => {
                    sent.failed += usize::from(!self.push_through(index, payload));
                }
                Some(refusal) => {
                    if refusal == Refusal::Again {
                        self.socket.forget_errors();
                    }
                    return sent;
                }
            }
            sent.taken += 1;
        }
        sent
    }

    #[cold]
    fn push_through(&self, index: usize, payload: &[u8]) -> bool {
        self.socket.forget_errors();
        let mut wait = libc::pollfd {
            fd: self.socket.raw(),
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one structure, of which the call writes `revents`.
        unsafe { libc::poll(&raw mut wait, 1, STRAGGLER_MS) };
        send_one(&self.socket, self.shared.messages.address(index), payload).is_ok()
    }
}

impl Drop for RingSender {
    fn drop(&mut self) {
        // Of a broken ring nobody knows what the kernel still has: it stays where it is, with its memory.
        if self.is_broken {
            return;
        }
        // The kernel closes a ring, and lets go of its files, some time after we are gone.
        let _ = self.shared.ring.submitter().unregister_files();
        // SAFETY: dropped here only, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{break_ring, open};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_broken_ring_ends_the_sending_and_is_named() {
        let (near, far) = (open(1 << 20), open(1 << 20));
        let mut sender = RingSender::new(Arc::clone(&near), 64).unwrap();
        let payload = [5_u8; 30];
        let mut send = |count: usize| sender.send((0..count).map(|_| (far.local(), &payload[..])));
        assert_eq!(send(8).taken, 8);
        assert!(near.failure().is_none());
        break_ring(sender.shared.ring.as_raw_fd());
        let mut send = |count: usize| sender.send((0..count).map(|_| (far.local(), &payload[..])));
        for _ in 0..3 {
            assert_eq!(send(8), Sent::default());
        }
        let failure = near.failure().expect("a failure");
        assert_eq!(Some(&failure.worker[..]), std::thread::current().name());
        assert_eq!(failure.source.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
