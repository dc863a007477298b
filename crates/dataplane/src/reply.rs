//! Replies (ARP, NDP, echo) on their way from a receiving task to a sending task of the same port.

use crossbeam_queue::ArrayQueue;

/// The largest reply carried: an echo of a full Ethernet frame with two VLAN tags.
pub const REPLY_MAX: usize = 1522;
const REPLIES_MAX: usize = 64;

/// One reply frame, without FCS.
pub struct Reply {
    len: u16,
    bytes: [u8; REPLY_MAX],
}

impl Reply {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A bounded queue of replies; full means that the asker must ask again, as ARP, NDP and ping all do.
pub struct ReplyQueue(ArrayQueue<Reply>);

impl Default for ReplyQueue {
    fn default() -> Self {
        Self(ArrayQueue::new(REPLIES_MAX))
    }
}

impl ReplyQueue {
    /// Whether nothing waits. Two loads of lines that nobody writes while no replies are about.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers `frame` for `me` and queues the reply; false if there is nothing to answer or no place.
    #[cold]
    pub fn answer(&self, frame: &[u8], me: &wire::Addresses) -> bool {
        if frame.len() > REPLY_MAX || self.0.is_full() {
            return false;
        }
        let mut reply = Reply {
            len: 0,
            bytes: [0; REPLY_MAX],
        };
        reply.bytes[..frame.len()].copy_from_slice(frame);
        let Some(len) = wire::answer(&mut reply.bytes, frame.len(), me) else {
            return false;
        };
        reply.len = len.min(REPLY_MAX) as u16;
        self.0.push(reply).is_ok()
    }

    /// Queues a frame of control's own; false if there is no place.
    pub fn push(&self, frame: &[u8]) -> bool {
        let mut reply = Reply {
            len: frame.len().min(REPLY_MAX) as u16,
            bytes: [0; REPLY_MAX],
        };
        frame.len() <= REPLY_MAX && {
            reply.bytes[..frame.len()].copy_from_slice(frame);
            self.0.push(reply).is_ok()
        }
    }

    /// The oldest reply.
    pub fn pop(&self) -> Option<Reply> {
        self.0.pop()
    }
}
