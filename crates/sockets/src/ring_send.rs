//! Sending through `io_uring`: a burst of requests, one call that hands them over, and their results in the ring.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};

use crate::batch::Messages;
use crate::call::send_one;
use crate::outcome::Refusal;
use crate::{Sent, Socket};

/// How long a packet between others that were sent may wait for room.
const STRAGGLER_MS: i32 = 10;

/// Sends bursts.
pub struct RingSender {
    socket: Arc<Socket>,
    ring: IoUring,
    messages: Messages,
    results: Vec<i32>,
}

impl RingSender {
    pub fn new(socket: Arc<Socket>, burst: usize) -> io::Result<Self> {
        let entries = (burst.max(1) as u32).next_power_of_two();
        let ring = IoUring::builder().setup_coop_taskrun().build(entries)?;
        ring.submitter().register_files(&[socket.raw()])?;
        Ok(Self {
            socket,
            ring,
            messages: Messages::new(burst),
            results: vec![0; burst.max(1)],
        })
    }

    pub fn send<'a>(&mut self, packets: impl Iterator<Item = (SocketAddr, &'a [u8])>) -> Sent {
        // The payloads again for stragglers: a burst is short.
        let mut payloads: [&[u8]; BURST_MAX] = [&[]; BURST_MAX];
        let kept = packets.take(BURST_MAX).enumerate().map(|(index, (to, payload))| {
            payloads[index] = payload;
            (to, payload)
        });
        let count = self.messages.describe_sent(kept);
        if count == 0 {
            return Sent::default();
        }
        let mut queue = self.ring.submission();
        for index in 0..count {
            let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u32;
            let entry = opcode::SendMsg::new(types::Fixed(0), self.messages.header(index))
                .flags(flags)
                .build()
                .user_data(index as u64);
            // SAFETY: the header, its payload and its address live until the request's result is taken below, before
            // this function ends; the queue holds a burst and is empty between calls.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
        }
        let pushed = queue.len();
        drop(queue);
        self.await_all(pushed);
        self.sort_out(&payloads[..pushed])
    }

    /// Hands the requests over and takes every result: nothing of this burst is with the kernel afterwards.
    fn await_all(&mut self, pushed: usize) {
        let mut waiting = pushed;
        while waiting > 0 {
            // The requests never block, so that their results are there when the call is back.
            if let Err(error) = self.ring.submit_and_wait(waiting) {
                if error.raw_os_error() != Some(libc::EINTR) && error.raw_os_error() != Some(libc::EBUSY) {
                    // The ring is broken: requests not handed over are dropped with it.
                    std::thread::yield_now();
                }
            }
            for result in self.ring.completion() {
                if let Some(place) = self.results.get_mut(result.user_data() as usize) {
                    *place = result.result();
                    waiting -= 1;
                }
            }
        }
    }

    /// Packets leave in order: one that was refused between others that were sent gets its turn now, or is given up.
    fn sort_out(&mut self, payloads: &[&[u8]]) -> Sent {
        let results = &self.results[..payloads.len()];
        let last = results.iter().rposition(|result| *result >= 0);
        let mut sent = Sent::default();
        for (index, (result, payload)) in results.iter().zip(payloads).enumerate() {
            let refusal = (*result < 0).then(|| Refusal::of(-result));
            match refusal {
                None => {}
                Some(Refusal::Never) => sent.failed += 1,
                Some(_) if last.is_some_and(|last| index < last) => {
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
        send_one(&self.socket, self.messages.address(index), payload).is_ok()
    }
}

impl Drop for RingSender {
    fn drop(&mut self) {
        // The kernel closes a ring, and lets go of its files, some time after we are gone.
        let _ = self.ring.submitter().unregister_files();
    }
}

/// Packets of a burst, at most.
const BURST_MAX: usize = 128;
