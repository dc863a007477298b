//! Links of memory: the in-memory packet I/O that tests run the real loops over, with a virtual clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::BURST_MAX;
use crate::io::{Blank, Frames, Receive, Transmit};

/// The room of one memory frame, bytes.
pub const ROOM: usize = 2048;

/// A frame of memory.
#[derive(Clone)]
pub struct MemoryFrame {
    bytes: Box<[u8; ROOM]>,
    len: usize,
}

/// A batch of memory frames.
#[derive(Default)]
pub struct MemoryFrames(VecDeque<MemoryFrame>);

impl Frames for MemoryFrames {
    type Frame = MemoryFrame;

    fn len(&self) -> usize {
        self.0.len()
    }
    fn bytes(&self, index: usize) -> &[u8] {
        &self.0[index].bytes[..self.0[index].len]
    }
    fn room_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.0[index].bytes[..]
    }
    fn set_len(&mut self, index: usize, len: usize) {
        self.0[index].len = len.min(ROOM);
    }
    fn is_segmented(&self, _index: usize) -> bool {
        false
    }
    fn write(&mut self, index: usize, len: usize) -> &mut [u8] {
        self.set_len(index, len);
        self.room_mut(index)
    }
    fn blanks(&mut self, count: usize) -> impl Iterator<Item = impl Blank<'_>> {
        self.0.iter_mut().take(count)
    }
    fn request_udp_checksum(&mut self, _index: usize, _l2_len: usize, _l3_len: usize, _ipv6: bool) {}
    fn each(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.0.iter().map(|frame| (&frame.bytes[..frame.len], false))
    }
    fn each_mut(&mut self) -> impl Iterator<Item = (&mut [u8], bool)> {
        self.0
            .iter_mut()
            .map(|frame| (&mut frame.bytes[..frame.len], false))
    }
    fn clear(&mut self) {
        self.0.clear();
    }
    fn retain(&mut self, keep: &[bool]) {
        let mut flags = keep.iter();
        self.0.retain(|_| *flags.next().unwrap_or(&false));
    }
    fn pop_front(&mut self) -> Option<MemoryFrame> {
        self.0.pop_front()
    }
    fn push(&mut self, frame: MemoryFrame) -> Result<(), MemoryFrame> {
        if self.0.len() == BURST_MAX {
            return Err(frame);
        }
        self.0.push_back(frame);
        Ok(())
    }
}

impl<'b> Blank<'b> for &'b mut MemoryFrame {
    fn write(self, len: usize) -> &'b mut [u8] {
        self.len = len.min(ROOM);
        &mut self.bytes[..]
    }
}

/// One direction of a wire: a bounded queue; full means that the sender keeps its frames.
#[derive(Clone)]
pub struct MemoryLink {
    queue: Arc<Mutex<VecDeque<MemoryFrame>>>,
    capacity: usize,
}

impl MemoryLink {
    /// A link that holds up to `capacity` frames.
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: Arc::default(),
            capacity,
        }
    }

    /// Frames under way.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no frame is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a frame of these bytes on the wire.
    pub fn inject(&self, bytes: &[u8]) {
        let mut frame = MemoryFrame {
            bytes: Box::new([0; ROOM]),
            len: bytes.len().min(ROOM),
        };
        frame.bytes[..frame.len].copy_from_slice(&bytes[..frame.len]);
        self.lock().push_back(frame);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<MemoryFrame>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receive for MemoryLink {
    type Frames = MemoryFrames;

    fn batch(&self) -> MemoryFrames {
        MemoryFrames::default()
    }
    fn receive(&mut self, into: &mut MemoryFrames, max: usize) -> usize {
        let mut queue = self.lock();
        let count = max.min(queue.len()).min(BURST_MAX - into.len());
        into.0.extend(queue.drain(..count));
        count
    }
}

impl Transmit for MemoryLink {
    type Frames = MemoryFrames;

    fn batch(&self) -> MemoryFrames {
        MemoryFrames::default()
    }
    fn allocate(&mut self, into: &mut MemoryFrames, count: usize) -> usize {
        let count = count.min(BURST_MAX - into.len());
        // Old bytes stay in a real buffer: so here, a pattern that no frame may rely on.
        into.0.extend((0..count).map(|_| MemoryFrame {
            bytes: Box::new([0xA5; ROOM]),
            len: 0,
        }));
        count
    }
    fn transmit(&mut self, from: &mut MemoryFrames, count: usize) -> usize {
        let mut queue = self.lock();
        let count = count
            .min(from.len())
            .min(self.capacity.saturating_sub(queue.len()));
        queue.extend(from.0.drain(..count));
        count
    }
}
