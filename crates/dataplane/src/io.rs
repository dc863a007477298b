//! The narrow waist between the loops and whatever carries packets: DPDK queues, sockets, or memory in tests.
//!
//! A batch can be read ([`Frames`]); where its kind allows it, it can be changed in place and handed on
//! ([`FramesMut`]), and what was freshly allocated can be written ([`FreshFrames`]). A loop asks for no more than it
//! uses: who only receives or forwards needs no [`Allocate`].

/// Time by the clock of the NIC that received a frame, in that clock's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicStamp(pub u64);

/// An ordered batch of frames that a task owns, to be read. Dropping it gives every buffer back.
pub trait Frames {
    /// How many frames are in the batch.
    fn len(&self) -> usize;
    /// Whether the batch is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes of frame `index`: those in its first buffer, where a driver chained several.
    fn bytes(&self, index: usize) -> &[u8];
    /// Every frame's bytes in its first buffer, and the length of all of it, in order.
    fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)>;
    /// Whether frame `index` is a chain of buffers, of which [`Frames::bytes`] shows only the first.
    fn is_segmented(&self, index: usize) -> bool;
    /// All bytes of frame `index`, buffer by buffer.
    fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]>;
    /// The length of all of frame `index`, bytes without FCS.
    fn whole_len(&self, index: usize) -> usize;
    /// When the NIC received frame `index`, where it says so.
    fn stamp(&self, index: usize) -> Option<NicStamp>;
    /// Starts fetching frame `index`, if there is one, behind its first line.
    #[inline]
    fn prefetch_rest(&self, _index: usize) {}
    /// Frees every frame.
    fn clear(&mut self);

    /// All of frame `index` in one piece, copied to the beginning of `room`; `None` where it is too long for that.
    fn copy_whole<'r>(&self, index: usize, room: &'r mut [u8]) -> Option<&'r [u8]> {
        let mut end = 0;
        for segment in self.segments(index) {
            let begin = end;
            end += segment.len();
            room.get_mut(begin..end)?.copy_from_slice(segment);
        }
        room.get(..end)
    }
}

/// A batch whose frames may be changed in place, thrown away one by one, and handed on.
pub trait FramesMut: Frames + Sized {
    /// One owned frame, taken out of a batch.
    type Frame: Send;

    /// Every frame's bytes, to be changed in place, and how many buffers it has, in order.
    fn each_mut(&mut self) -> impl Iterator<Item = (&mut [u8], u16)>;
    /// The whole room of frame `index`, at least as long as its bytes.
    fn room_mut(&mut self, index: usize) -> &mut [u8];
    /// Sets the length of frame `index`, within its room; further buffers are freed.
    fn set_len(&mut self, index: usize, len: usize);
    /// Frees the frames whose flag is false; the others keep their order. `keep` is as long as the batch.
    fn retain(&mut self, keep: &[bool]);
    /// Appends every frame to that batch of `into` which its place in `to` names. What names none stays, and what
    /// finds its batch full; all keep their order.
    fn distribute(&mut self, to: &[u8], into: &mut [Self]);
    /// Takes the first frame out.
    fn pop_front(&mut self) -> Option<Self::Frame>;
    /// Appends a frame; a full batch gives it back.
    fn push(&mut self, frame: Self::Frame) -> Result<(), Self::Frame>;
}

/// A batch of buffers that were just allocated, to be written.
pub trait FreshFrames: Frames {
    /// Makes buffer `index` a frame of `len` bytes and returns its room to write into.
    fn write(&mut self, index: usize, len: usize) -> &mut [u8];
    /// Whether the buffers were last in another core's cache, so that long ones are worth being fetched before they are written.
    #[inline]
    fn is_far(&self) -> bool {
        false
    }
    /// Starts fetching buffer `index`, if there is one, behind its first line, to be written as a frame of `len` bytes.
    #[inline]
    fn prefetch_rest_to_write(&self, _index: usize, _len: usize) {}
    /// `count` buffers from `first` on, to be written one after the other: what [`FreshFrames::write`] does, without
    /// looking each one up.
    fn blanks(&mut self, first: usize, count: usize) -> impl Iterator<Item = impl Blank<'_>>;
    /// Asks the NIC to fill in the UDP checksum of frame `index` on its way out.
    fn request_udp_checksum(&mut self, index: usize, l2_len: usize, l3_len: usize, ipv6: bool);
}

/// A freshly allocated buffer, to be written once.
pub trait Blank<'b> {
    /// Makes it a frame of `len` bytes and returns its room: `len` bytes, at least 64.
    fn write(self, len: usize) -> &'b mut [u8];
}

/// A longer frame has more than its first line, bytes: the rest of it may be worth being fetched ahead.
pub(crate) const LINE: usize = 64;
/// So many frames before it is read or written, it is fetched.
pub(crate) const AHEAD: usize = 2;

/// Where frames come from.
pub trait Receive: Send {
    /// The batch type.
    type Frames: Frames + Send;

    /// An empty batch for this queue.
    fn batch(&self) -> Self::Frames;
    /// Appends up to `max` frames and returns how many came. Never waits.
    fn receive(&mut self, into: &mut Self::Frames, max: usize) -> usize;
    /// Whether long frames are worth being fetched whole, by [`Frames::prefetch_rest`].
    #[inline]
    fn is_far(&self) -> bool {
        false
    }
    /// Takes what control has left for the queue, as [`crate::Task::renew`] has it.
    fn renew(&mut self) {}
}

/// Where frames go.
pub trait Transmit: Send {
    /// The batch type.
    type Frames: Frames + Send;

    /// An empty batch for this queue.
    fn batch(&self) -> Self::Frames;
    /// Offers the first `count` frames, removes those accepted, and returns how many those were. Never waits.
    fn transmit(&mut self, from: &mut Self::Frames, count: usize) -> usize;
    /// Takes what control has left for the queue, as [`crate::Task::renew`] has it.
    fn renew(&mut self) {}
}

/// Where fresh buffers come from.
pub trait Allocate: Send {
    /// The batch type.
    type Frames: FreshFrames + Send;

    /// An empty batch for these buffers.
    fn batch(&self) -> Self::Frames;
    /// Appends up to `count` fresh buffers (their bytes are undefined until [`FreshFrames::write`]) and returns how
    /// many. Never waits.
    fn allocate(&mut self, into: &mut Self::Frames, count: usize) -> usize;
}
