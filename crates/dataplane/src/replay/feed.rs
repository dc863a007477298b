//! The way of packets from whoever reads a capture to the worker that sends them: chunks of memory, made once, that go
//! round between the two. Neither ever waits for the other here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::ArrayQueue;

/// The smallest frame, bytes: of shorter ones a chunk may list fewer than it has room for.
const FRAME_MIN: usize = 60;

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it is due, ticks after the first packet.
    pub at: u64,
    /// How much of the input had been read before it, bytes.
    pub position: u64,
    /// The input has only its beginning.
    pub is_snapped: bool,
}

/// A packet of a chunk.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    position: u64,
    /// Where its bytes begin.
    offset: u32,
    /// How many there are.
    len: u16,
    is_snapped: bool,
}

/// Packets in a row, and when each is due.
#[derive(Debug)]
pub struct Chunk {
    bytes: Vec<u8>,
    packets: Vec<Entry>,
}

impl Chunk {
    /// Of `len` bytes of memory, for the bytes of packets and for what is known of them.
    fn new(len: usize) -> Self {
        let packets = len / (FRAME_MIN + size_of::<Entry>());
        Self {
            bytes: Vec::with_capacity(len - packets * size_of::<Entry>()),
            packets: Vec::with_capacity(packets),
        }
    }

    /// How many packets are in it.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Packet `index`, and its bytes.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(Planned, &[u8])> {
        let packet = self.packets.get(index)?;
        let planned = Planned {
            at: packet.at,
            position: packet.position,
            is_snapped: packet.is_snapped,
        };
        let begin = packet.offset as usize;
        Some((planned, self.bytes.get(begin..begin + usize::from(packet.len))?))
    }

    /// How many packets from `first` on are due by `ended_at`, if anything is, and how many are not.
    pub(super) fn due_by(&self, first: usize, ended_at: Option<u64>) -> [u64; 2] {
        let left = self.packets.get(first..).unwrap_or_default();
        let due = left
            .iter()
            .filter(|packet| ended_at.is_some_and(|ended_at| packet.at <= ended_at));
        let due = due.count();
        [due as u64, (left.len() - due) as u64]
    }

    /// Appends a packet, if there is room for it: a chunk never grows.
    fn push(&mut self, planned: Planned, bytes: &[u8]) -> bool {
        let Ok(len) = u16::try_from(bytes.len()) else {
            return false;
        };
        let has_room = self.bytes.capacity() - self.bytes.len() >= bytes.len()
            && self.packets.len() < self.packets.capacity();
        if has_room {
            self.packets.push(Entry {
                at: planned.at,
                position: planned.position,
                offset: self.bytes.len() as u32,
                len,
                is_snapped: planned.is_snapped,
            });
            self.bytes.extend_from_slice(bytes);
        }
        has_room
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }
}

#[derive(Debug)]
struct Shared {
    filled: ArrayQueue<Box<Chunk>>,
    empty: ArrayQueue<Box<Chunk>>,
    is_primed: AtomicBool,
    has_ended: AtomicBool,
}

/// The end that is filled.
#[derive(Debug)]
pub struct Filler {
    shared: Arc<Shared>,
    open: Option<Box<Chunk>>,
}

/// The end that is sent from.
#[derive(Debug)]
pub struct Feed(Arc<Shared>);

/// A feed of `count` chunks of `len` bytes of memory each, below 4 GiB. Seven tenths of them are for the bytes of packets.
pub fn feed(count: usize, len: usize) -> (Filler, Feed) {
    let count = count.max(2);
    let shared = Arc::new(Shared {
        filled: ArrayQueue::new(count),
        empty: ArrayQueue::new(count),
        is_primed: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
    });
    for _ in 0..count {
        let _ = shared.empty.push(Box::new(Chunk::new(len)));
    }
    let filler = Filler {
        shared: Arc::clone(&shared),
        open: None,
    };
    (filler, Feed(shared))
}

impl Filler {
    /// Appends a packet. False while there is no room: the worker still has all chunks. One longer than the bytes of a chunk,
    /// or than any frame (65,535 bytes), never finds room.
    pub fn push(&mut self, planned: Planned, bytes: &[u8]) -> bool {
        let push =
            |open: &mut Option<Box<Chunk>>| open.as_mut().is_some_and(|chunk| chunk.push(planned, bytes));
        if push(&mut self.open) {
            return true;
        }
        self.flush();
        if self.open.is_none() {
            self.open = self.shared.empty.pop();
            match &mut self.open {
                Some(chunk) => chunk.clear(),
                // The worker need not wait any longer for a full feed.
                None => self.prime(),
            }
        }
        push(&mut self.open)
    }

    /// Whether less than half of the chunks wait for the worker.
    pub fn is_low(&self) -> bool {
        self.shared.filled.len() < self.shared.filled.capacity() / 2
    }

    /// Hands over what has been filled, before whoever fills it waits for more.
    pub fn flush(&mut self) {
        if let Some(chunk) = self.open.take_if(|chunk| !chunk.is_empty()) {
            // Never full: there are no more chunks than it holds.
            let _ = self.shared.filled.push(chunk);
        }
    }

    /// The worker may begin with what there is.
    pub fn prime(&self) {
        self.shared.is_primed.store(true, Ordering::Release);
    }
}

/// Hands over what has been filled; nothing will follow.
impl Drop for Filler {
    fn drop(&mut self) {
        self.flush();
        self.shared.has_ended.store(true, Ordering::Release);
        self.prime();
    }
}

impl Feed {
    /// Whether the worker may begin: it was full once, or will not be.
    #[inline]
    pub fn is_primed(&self) -> bool {
        self.0.is_primed.load(Ordering::Acquire)
    }

    /// The worker need not wait any longer for a full feed.
    pub fn prime(&self) {
        self.0.is_primed.store(true, Ordering::Release);
    }

    /// Whether nothing will follow but what [`Feed::next`] still gives.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }

    /// The next chunk, if there is one.
    #[inline]
    pub fn next(&self) -> Option<Box<Chunk>> {
        self.0.filled.pop()
    }

    /// Gives a chunk back.
    #[inline]
    pub fn give_back(&self, chunk: Box<Chunk>) {
        // Never full: there are no more chunks than it holds.
        let _ = self.0.empty.push(chunk);
    }

    /// Another hold of the same end, for whoever counts what is left when the worker has ended.
    #[must_use]
    pub fn hold(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Takes all that is left, and counts it: what was due by `ended_at`, if anything was, and what was not.
    pub fn count_left(&self, ended_at: Option<u64>) -> [u64; 2] {
        std::iter::from_fn(|| self.next())
            .map(|chunk| chunk.due_by(0, ended_at))
            .fold([0; 2], |[due, rest], [more, further]| {
                [due + more, rest + further]
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a chunk may take is what it is said to take, and it is of use for short packets and long ones.
    #[test]
    fn a_chunk_has_the_memory_that_it_is_said_to_have() {
        let planned = Planned {
            at: 0,
            position: 0,
            is_snapped: false,
        };
        for len in [13_750, 65_536, 1 << 20] {
            let chunk = Chunk::new(len);
            let memory = chunk.bytes.capacity() + chunk.packets.capacity() * size_of::<Entry>();
            assert!(memory <= len && memory > len - 100, "{memory} of {len}");
            for frame in [FRAME_MIN, 1514, 9618] {
                let mut chunk = Chunk::new(len);
                while chunk.push(planned, &vec![0; frame]) {}
                let used = chunk.len() * (frame + size_of::<Entry>());
                assert!(
                    used > len * 7 / 10 - frame,
                    "{} packets of {frame} bytes in {len}",
                    chunk.len()
                );
            }
        }
    }
}
