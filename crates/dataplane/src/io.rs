//! The narrow waist between the loops and whatever carries packets: DPDK queues, or memory in tests.

/// An ordered batch of frames that a task owns. Dropping it gives every buffer back.
pub trait Frames {
    /// One owned frame, taken out of a batch.
    type Frame: Send;

    /// How many frames are in the batch.
    fn len(&self) -> usize;
    /// Whether the batch is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes of frame `index`: its first segment where a driver chained several.
    fn bytes(&self, index: usize) -> &[u8];
    /// The whole room of frame `index`, at least as long as its bytes.
    fn room_mut(&mut self, index: usize) -> &mut [u8];
    /// Sets the length of frame `index`, within its room.
    fn set_len(&mut self, index: usize, len: usize);
    /// Whether frame `index` is a chain of buffers, of which [`Frames::bytes`] shows only the first.
    fn is_segmented(&self, index: usize) -> bool;
    /// Makes the freshly allocated buffer `index` a frame of `len` bytes and returns its room to write into.
    fn write(&mut self, index: usize, len: usize) -> &mut [u8];
    /// The first `count` freshly allocated buffers, to be written one after the other: what [`Frames::write`] does,
    /// without looking each one up.
    fn blanks(&mut self, count: usize) -> impl Iterator<Item = impl Blank<'_>>;
    /// Asks the NIC to fill in the UDP checksum of frame `index` on its way out.
    fn request_udp_checksum(&mut self, index: usize, l2_len: usize, l3_len: usize, ipv6: bool);
    /// Every frame's bytes, and whether a driver chained further buffers to them, in order.
    fn each(&self) -> impl Iterator<Item = (&[u8], bool)>;
    /// Every frame's bytes, to be changed in place, and whether further buffers are chained to them, in order.
    fn each_mut(&mut self) -> impl Iterator<Item = (&mut [u8], bool)>;
    /// Frees every frame.
    fn clear(&mut self);
    /// Frees the frames whose flag is false; the others keep their order. `keep` is as long as the batch.
    fn retain(&mut self, keep: &[bool]);
    /// Takes the first frame out.
    fn pop_front(&mut self) -> Option<Self::Frame>;
    /// Appends a frame; a full batch gives it back.
    fn push(&mut self, frame: Self::Frame) -> Result<(), Self::Frame>;
}

/// A freshly allocated buffer, to be written once.
pub trait Blank<'b> {
    /// Makes it a frame of `len` bytes and returns its room: `len` bytes, at least 64.
    fn write(self, len: usize) -> &'b mut [u8];
}

/// Where frames come from.
pub trait Receive: Send {
    /// The batch type.
    type Frames: Frames + Send;

    /// An empty batch for this queue.
    fn batch(&self) -> Self::Frames;
    /// Appends up to `max` frames and returns how many came. Never waits.
    fn receive(&mut self, into: &mut Self::Frames, max: usize) -> usize;
}

/// Where frames go.
pub trait Transmit: Send {
    /// The batch type.
    type Frames: Frames + Send;

    /// An empty batch for this queue.
    fn batch(&self) -> Self::Frames;
    /// Appends up to `count` fresh buffers (their bytes are undefined until [`Frames::write`]) and returns how many.
    fn allocate(&mut self, into: &mut Self::Frames, count: usize) -> usize;
    /// Offers the first `count` frames, removes those accepted, and returns how many those were. Never waits.
    fn transmit(&mut self, from: &mut Self::Frames, count: usize) -> usize;
}
