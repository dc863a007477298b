//! Receiving through `io_uring`: one request that stays, and a result in the ring for each packet. The kernel is entered only
//! when it says that there is something for it to do.

use std::io;
use std::mem::{size_of, zeroed};
use std::sync::Arc;

use io_uring::{IoUring, cqueue, opcode, types};

use crate::address::RawAddress;
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
    /// Dropped before the memory that it uses.
    ring: IoUring,
    buffers: BufferRing,
    /// The pattern of every message: only how long addresses are is read from it.
    pattern: Box<libc::msghdr>,
    socket: Arc<Socket>,
    is_standing: bool,
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
            ring,
            buffers,
            pattern,
            socket,
            is_standing: false,
        })
    }

    pub fn receive<'a>(
        &mut self,
        rooms: impl Iterator<Item = &'a mut [u8]>,
        arrived: &mut impl FnMut(Arrival),
    ) -> usize {
        if !self.is_standing && !self.stand() {
            return 0;
        }
        if self.ring.completion().is_empty() {
            self.let_the_kernel_work();
        }
        let mut count = 0;
        let mut rooms = rooms.peekable();
        let mut results = self.ring.completion();
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
            let bytes = self.buffers.bytes(index, len);
            if let Ok(message) = types::RecvMsgOut::parse(bytes, &self.pattern) {
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
            self.buffers.give(index);
        }
        drop(results);
        self.buffers.publish();
        count
    }

    /// Makes the request that stays until an error, or until no buffer is left.
    #[cold]
    fn stand(&mut self) -> bool {
        let entry = opcode::RecvMsgMulti::new(types::Fixed(0), &raw const *self.pattern, GROUP)
            .build()
            .user_data(STANDING);
        // SAFETY: the pattern is boxed and outlives the ring; the buffers are those registered as this group.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            return false;
        }
        self.is_standing = self.ring.submit().is_ok();
        self.is_standing
    }

    /// Takes the request back: otherwise the kernel would keep the socket, and its port, for some time after we are gone.
    fn withdraw(&mut self) {
        if !std::mem::take(&mut self.is_standing) {
            return;
        }
        let entry = opcode::AsyncCancel::new(STANDING).build().user_data(CANCEL);
        // SAFETY: the entry points to nothing.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            return;
        }
        let mut open = 2;
        for _ in 0..WITHDRAWAL_LOOKS {
            if open == 0 || self.ring.submit_and_wait(1).is_err() {
                break;
            }
            for result in self.ring.completion() {
                open -= i32::from(result.user_data() == CANCEL || !cqueue::more(result.flags()));
            }
        }
    }

    fn let_the_kernel_work(&mut self) {
        if self.ring.submission().taskrun() {
            // SAFETY: no argument is passed.
            let _ = unsafe {
                self.ring
                    .submitter()
                    .enter::<libc::sigset_t>(0, 0, GETEVENTS, None)
            };
        }
    }
}

impl Drop for RingReceiver {
    fn drop(&mut self) {
        self.withdraw();
        let _ = self.ring.submitter().unregister_files();
    }
}
