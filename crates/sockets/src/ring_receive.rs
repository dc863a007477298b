//! Receiving through `io_uring`: one request that stays, and a result in the ring for each packet. The kernel is entered only
//! when it says that there is something for it to do.

use std::io;
use std::mem::{ManuallyDrop, size_of, zeroed};
use std::sync::Arc;

use io_uring::{IoUring, cqueue, opcode, types};

use crate::address::RawAddress;
use crate::failure::passes;
use crate::ring_memory::BufferRing;
use crate::{Arrival, Socket};

/// Packets that may lie in the ring, picked up and not yet read.
const BUFFERS: u16 = 1024;
/// What stands before the payload in a buffer: lengths, and the sender's address.
const HEAD: usize = 16 + size_of::<libc::sockaddr_in6>();
const GROUP: u16 = 0;
/// Marks of our two requests.
const STANDING: u64 = 1;
const CANCEL: u64 = 2;
/// Results are looked for this often, at most, when the request is taken back.
const WITHDRAWAL_LOOKS: usize = 2 * BUFFERS as usize + 2;
/// `IORING_ENTER_GETEVENTS`.
const GETEVENTS: u32 = 1;

/// Receives bursts.
pub struct RingReceiver {
    shared: ManuallyDrop<Shared>,
    socket: Arc<Socket>,
    is_standing: bool,
    is_broken: bool,
}

/// What the kernel may follow, and write to, as long as it has a request.
struct Shared {
    /// Dropped before the memory that it uses.
    ring: IoUring,
    buffers: BufferRing,
    /// The pattern of every message: only how long addresses are is read from it.
    pattern: Box<libc::msghdr>,
}

// SAFETY: the pattern's pointers are null; the rest may be sent by itself.
unsafe impl Send for RingReceiver {}

impl RingReceiver {
    pub fn new(socket: Arc<Socket>, payload: usize) -> io::Result<Self> {
        let ring = IoUring::builder()
            // Work of the kernel waits for our next call instead of interrupting us, and a flag says that there is some.
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(u32::from(BUFFERS) * 2)
            .build(8)?;
        ring.submitter().register_files(&[socket.raw()])?;
        let buffers = BufferRing::new(BUFFERS, HEAD + payload);
        // SAFETY: the ring's memory is page-aligned, as large as its count says, and outlives the io_uring, which is
        // dropped first.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(buffers.address(), buffers.count(), GROUP, 0)?;
        }
        // SAFETY: all-zero is a value of this plain C structure.
        let mut pattern: Box<libc::msghdr> = Box::new(unsafe { zeroed() });
        pattern.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        Ok(Self {
            shared: ManuallyDrop::new(Shared {
                ring,
                buffers,
                pattern,
            }),
            socket,
            is_standing: false,
            is_broken: false,
        })
    }

    pub fn receive<'a>(
        &mut self,
        rooms: impl Iterator<Item = &'a mut [u8]>,
        arrived: &mut impl FnMut(Arrival),
    ) -> usize {
        if self.is_broken || (!self.is_standing && !self.stand()) {
            return 0;
        }
        if self.shared.ring.completion().is_empty() {
            self.let_the_kernel_work();
        }
        let mut count = 0;
        let mut rooms = rooms.peekable();
        let Shared {
            ring,
            buffers,
            pattern,
        } = &mut *self.shared;
        let mut results = ring.completion();
        while rooms.peek().is_some() {
            let Some(result) = results.next() else { break };
            if !cqueue::more(result.flags()) {
                self.is_standing = false;
            }
            let Some(index) = cqueue::buffer_select(result.flags()) else {
                if result.result() != -libc::ENOBUFS {
                    self.socket.forget_errors();
                }
                continue;
            };
            let len = usize::try_from(result.result()).unwrap_or(0);
            let bytes = buffers.bytes(index, len);
            if let Ok(message) = types::RecvMsgOut::parse(bytes, pattern) {
                if let (Some(from), Some(room)) = (RawAddress::read(message.name_data()), rooms.next()) {
                    let payload = message.payload_data();
                    let len = payload.len().min(room.len());
                    room[..len].copy_from_slice(&payload[..len]);
                    arrived(Arrival {
                        from,
                        len,
                        cut: message.is_payload_truncated() || len < payload.len(),
                    });
                    count += 1;
                }
            }
            buffers.give(index);
        }
        drop(results);
        buffers.publish();
        count
    }

    /// Makes the request that stays until an error, or until no buffer is left.
    #[cold]
    fn stand(&mut self) -> bool {
        let Shared { ring, pattern, .. } = &mut *self.shared;
        let entry = opcode::RecvMsgMulti::new(types::Fixed(0), &raw const **pattern, GROUP)
            .build()
            .user_data(STANDING);
        // One that could not be handed over last time still lies there.
        let is_there = !ring.submission().is_empty();
        // SAFETY: the pattern is boxed and outlives the ring; the buffers are those registered as this group.
        if !is_there && unsafe { ring.submission().push(&entry) }.is_err() {
            return false;
        }
        match ring.submit() {
            Ok(_) => self.is_standing = true,
            Err(error) => self.note(error),
        }
        self.is_standing
    }

    /// Has the kernel wait for nothing until the next call, perhaps of another thread: it would go on waking the one that asked.
    /// What came meanwhile is thrown away.
    pub fn rest(&mut self) {
        self.withdraw(|ring| ring.submit_and_wait(1));
    }

    /// Takes the request back: otherwise the kernel would keep the socket, and its port, for some time after we are gone.
    /// `enter` hands entries over and waits for a result. True when the kernel has nothing of ours any more.
    fn withdraw(&mut self, mut enter: impl FnMut(&IoUring) -> io::Result<usize>) -> bool {
        if !self.is_standing {
            return !self.is_broken;
        }
        let Shared { ring, buffers, .. } = &mut *self.shared;
        let entry = opcode::AsyncCancel::new(STANDING).build().user_data(CANCEL);
        // SAFETY: the entry points to nothing.
        if unsafe { ring.submission().push(&entry) }.is_err() {
            return false;
        }
        let mut open = 2;
        for _ in 0..WITHDRAWAL_LOOKS {
            let call = enter(ring);
            for result in ring.completion() {
                if let Some(index) = cqueue::buffer_select(result.flags()) {
                    buffers.give(index);
                }
                open -= i32::from(result.user_data() == CANCEL || !cqueue::more(result.flags()));
            }
            if open <= 0 {
                buffers.publish();
                self.is_standing = false;
                return true;
            }
            match call {
                Err(error) if !passes(&error) => {
                    self.note(error);
                    return false;
                }
                _ => {}
            }
        }
        self.note(io::ErrorKind::TimedOut.into());
        false
    }

    fn let_the_kernel_work(&mut self) {
        if !self.shared.ring.submission().taskrun() {
            return;
        }
        let submitter = self.shared.ring.submitter();
        // SAFETY: no argument is passed.
        let call = unsafe { submitter.enter::<libc::sigset_t>(0, 0, GETEVENTS, None) };
        if let Err(error) = call {
            self.note(error);
        }
    }

    /// An error that does not pass ends the ring.
    #[cold]
    fn note(&mut self, error: io::Error) {
        if !passes(&error) {
            self.is_broken = true;
            self.socket.fail(error);
        }
    }
}

impl Drop for RingReceiver {
    fn drop(&mut self) {
        // Where the kernel may still write to the buffers, they stay, and the ring with them.
        if !self.withdraw(|ring| ring.submit_and_wait(1)) {
            return;
        }
        let _ = self.shared.ring.submitter().unregister_files();
        // SAFETY: dropped here only, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{break_ring, open};
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    fn standing() -> (Arc<Socket>, RingReceiver) {
        let socket = open(1 << 20);
        let mut receiver = RingReceiver::new(Arc::clone(&socket), 100).unwrap();
        let mut room = [0_u8; 100];
        receiver.receive(std::iter::once(&mut room[..]), &mut |_| {});
        assert!(receiver.is_standing);
        (socket, receiver)
    }

    #[test]
    fn an_interruption_does_not_end_the_withdrawal() {
        let (socket, mut receiver) = standing();
        let local = socket.local();
        let mut interruptions = 3;
        let withdrawn = receiver.withdraw(|ring| {
            if interruptions > 0 {
                interruptions -= 1;
                return Err(io::Error::from_raw_os_error(libc::EINTR));
            }
            ring.submit_and_wait(1)
        });
        assert!(withdrawn && !receiver.is_standing && socket.failure().is_none());
        drop((socket, receiver));
        UdpSocket::bind(local).expect("a free port");
    }

    #[test]
    fn a_withdrawal_has_an_end() {
        let (socket, mut receiver) = standing();
        let interrupted = || io::Error::from_raw_os_error(libc::EINTR);
        assert!(!receiver.withdraw(|_| Err(interrupted())));
        let failure = socket.failure().expect("a failure");
        assert_eq!(failure.source.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn what_the_kernel_may_write_to_stays() {
        let (socket, receiver) = standing();
        break_ring(receiver.shared.ring.as_raw_fd());
        let buffers = receiver.shared.buffers.address();
        drop(receiver);
        let failure = socket.failure().expect("a failure");
        assert_eq!(Some(&failure.worker[..]), std::thread::current().name());
        assert_eq!(failure.source.raw_os_error(), Some(libc::EOPNOTSUPP));
        // Were the ring's page given back, the next one of its kind would lie there.
        let next: Vec<BufferRing> = (0..64).map(|_| BufferRing::new(BUFFERS, HEAD + 100)).collect();
        assert!(next.iter().all(|ring| ring.address() != buffers));
    }

    #[test]
    fn a_broken_ring_ends_the_receiving_and_is_named() {
        let socket = open(1 << 20);
        let mut receiver = RingReceiver::new(Arc::clone(&socket), 100).unwrap();
        break_ring(receiver.shared.ring.as_raw_fd());
        let mut room = [0_u8; 100];
        for _ in 0..3 {
            assert_eq!(receiver.receive(std::iter::once(&mut room[..]), &mut |_| {}), 0);
        }
        assert!(socket.failure().is_some());
    }
}
