//! Links of memory: the in-memory packet I/O that tests run the real loops over, with a virtual clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use wire::checksum;

use crate::BURST_MAX;
use crate::io::{Allocate, Blank, Frames, FramesMut, FreshFrames, NicStamp, Receive, Transmit};

/// The room of one memory frame, bytes.
pub const ROOM: usize = 2048;

/// A frame of memory.
#[derive(Clone)]
pub struct MemoryFrame {
    bytes: Box<[u8; ROOM]>,
    len: usize,
    /// What further buffers hold.
    chained: Vec<Vec<u8>>,
    stamp: Option<NicStamp>,
}

impl MemoryFrame {
    /// A frame of these bytes, in as many buffers as it needs.
    pub fn new(bytes: &[u8]) -> Self {
        Self::in_segments(bytes.chunks(ROOM))
    }

    /// A frame of these bytes, each part in a buffer of its own; the first is cut where it is longer than [`ROOM`].
    pub fn in_segments<'s>(segments: impl IntoIterator<Item = &'s [u8]>) -> Self {
        let mut segments = segments.into_iter();
        let mut frame = Self::blank(0);
        let first = segments.next().unwrap_or_default();
        frame.len = first.len().min(ROOM);
        frame.bytes[..frame.len].copy_from_slice(&first[..frame.len]);
        frame.chained = segments.map(<[u8]>::to_vec).collect();
        frame
    }

    /// The same, stamped by its NIC.
    #[must_use]
    pub fn stamped(mut self, stamp: NicStamp) -> Self {
        self.stamp = Some(stamp);
        self
    }

    fn blank(fill: u8) -> Self {
        Self {
            bytes: Box::new([fill; ROOM]),
            len: 0,
            chained: Vec::new(),
            stamp: None,
        }
    }

    fn set_len(&mut self, len: usize) {
        self.len = len.min(ROOM);
        self.chained.clear();
    }

    fn whole_len(&self) -> usize {
        self.len + self.chained.iter().map(Vec::len).sum::<usize>()
    }
}

/// A batch of memory frames.
#[derive(Default)]
pub struct MemoryFrames(VecDeque<MemoryFrame>);

impl Frames for MemoryFrames {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn bytes(&self, index: usize) -> &[u8] {
        &self.0[index].bytes[..self.0[index].len]
    }
    fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)> {
        self.0
            .iter()
            .map(|frame| (&frame.bytes[..frame.len], frame.whole_len()))
    }
    fn is_segmented(&self, index: usize) -> bool {
        !self.0[index].chained.is_empty()
    }
    fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.bytes(index)).chain(self.0[index].chained.iter().map(Vec::as_slice))
    }
    fn whole_len(&self, index: usize) -> usize {
        self.0[index].whole_len()
    }
    fn stamp(&self, index: usize) -> Option<NicStamp> {
        self.0[index].stamp
    }
    fn clear(&mut self) {
        self.0.clear();
    }
}

impl FramesMut for MemoryFrames {
    type Frame = MemoryFrame;

    fn each_mut(&mut self) -> impl Iterator<Item = (&mut [u8], u16)> {
        // What is chained is in one piece here.
        self.0.iter_mut().map(|frame| {
            let count = 1 + u16::from(!frame.chained.is_empty());
            (&mut frame.bytes[..frame.len], count)
        })
    }
    fn room_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.0[index].bytes[..]
    }
    fn set_len(&mut self, index: usize, len: usize) {
        self.0[index].set_len(len);
    }
    fn retain(&mut self, keep: &[bool]) {
        let mut flags = keep.iter();
        self.0.retain(|_| *flags.next().unwrap_or(&false));
    }
    fn distribute(&mut self, to: &[u8], into: &mut [Self]) {
        let mut places = to.iter();
        for frame in std::mem::take(&mut self.0) {
            let batch = places.next().and_then(|to| into.get_mut(usize::from(*to)));
            match batch.filter(|batch| batch.0.len() < BURST_MAX) {
                Some(batch) => batch.0.push_back(frame),
                None => self.0.push_back(frame),
            }
        }
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

impl FreshFrames for MemoryFrames {
    fn write(&mut self, index: usize, len: usize) -> &mut [u8] {
        self.set_len(index, len);
        self.room_mut(index)
    }
    fn blanks(&mut self, first: usize, count: usize) -> impl Iterator<Item = impl Blank<'_>> {
        self.0.iter_mut().skip(first).take(count)
    }
    /// Does what a NIC would.
    fn request_udp_checksum(&mut self, index: usize, l2_len: usize, l3_len: usize, _ipv6: bool) {
        let frame = &mut self.0[index];
        let Some(udp) = frame.bytes.get_mut(l2_len + l3_len..frame.len) else {
            return;
        };
        // Its field holds the sum of the pseudo header.
        let sum = checksum::sum(udp);
        if let Some(field) = udp.get_mut(6..8) {
            field.copy_from_slice(&checksum::udp_field(sum));
        }
    }
}

impl<'b> Blank<'b> for &'b mut MemoryFrame {
    fn write(self, len: usize) -> &'b mut [u8] {
        self.set_len(len);
        &mut self.bytes[..]
    }
}

/// As many fresh frames as anybody wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBuffers;

impl Allocate for MemoryBuffers {
    type Frames = MemoryFrames;

    fn batch(&self) -> MemoryFrames {
        MemoryFrames::default()
    }
    fn allocate(&mut self, into: &mut MemoryFrames, count: usize) -> usize {
        let count = count.min(BURST_MAX - into.len());
        // Old bytes stay in a real buffer: so here, a pattern that no frame may rely on.
        into.0.extend((0..count).map(|_| MemoryFrame::blank(0xA5)));
        count
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
        self.inject_frame(MemoryFrame::new(bytes));
    }

    /// Puts a frame on the wire.
    pub fn inject_frame(&self, frame: MemoryFrame) {
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
    fn transmit(&mut self, from: &mut MemoryFrames, count: usize) -> usize {
        let mut queue = self.lock();
        let count = count
            .min(from.len())
            .min(self.capacity.saturating_sub(queue.len()));
        queue.extend(from.0.drain(..count));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(lens: impl IntoIterator<Item = usize>) -> MemoryFrames {
        let frame = |len: usize| MemoryFrame::new(&vec![len as u8; len]);
        MemoryFrames(lens.into_iter().map(frame).collect())
    }

    fn lens(batch: &MemoryFrames) -> Vec<usize> {
        (0..batch.len()).map(|index| batch.whole_len(index)).collect()
    }

    #[test]
    fn a_chained_frame_is_read_whole() {
        let bytes: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
        let mut frames = MemoryFrames::default();
        let chained = MemoryFrame::new(&bytes).stamped(NicStamp(7));
        assert!(frames.push(chained).is_ok());
        assert!(frames.is_segmented(0) && frames.each().all(|(_, whole_len)| whole_len == 5000));
        assert_eq!((frames.bytes(0).len(), frames.whole_len(0)), (ROOM, 5000));
        assert_eq!(frames.stamp(0), Some(NicStamp(7)));
        let mut room = [0; 5000];
        assert_eq!(frames.copy_whole(0, &mut room[..4999]), None);
        assert_eq!(frames.copy_whole(0, &mut room), Some(&bytes[..]));
        frames.set_len(0, 100);
        assert!(!frames.is_segmented(0));
        assert_eq!((frames.whole_len(0), frames.segments(0).count()), (100, 1));
    }

    #[test]
    fn frames_go_where_their_index_says_and_the_others_stay() {
        let mut frames = batch([1, 2, 3, 4, 5, 6]);
        let mut into = [batch(1..BURST_MAX), batch([])];
        frames.distribute(&[1, 0, 2, 0, 1], &mut into);
        assert_eq!(lens(&frames), [3, 4, 6], "no such batch, a full one, no index");
        assert_eq!(into[0].len(), BURST_MAX);
        assert_eq!(lens(&into[0])[BURST_MAX - 1], 2);
        assert_eq!(lens(&into[1]), [1, 5]);
    }
}
