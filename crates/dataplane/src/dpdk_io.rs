//! DPDK queues behind the I/O traits. All of it is inlined: the loops see through to the driver's burst call.
#![allow(clippy::inline_always, reason = "per packet: must vanish into the loops")]

use dpdk::{Blank as DpdkBlank, Burst, Eal, Mbuf, Pool, RxQueue, TxQueue};

use crate::io::{Allocate, Blank, Frames, FramesMut, FreshFrames, NicStamp, Receive, Transmit};

/// The receiving side of a DPDK port's queue.
pub struct DpdkReceive<'e> {
    eal: &'e Eal,
    queue: RxQueue<'e>,
    cold: bool,
}

impl<'e> DpdkReceive<'e> {
    /// Receives from `queue`. `cold` says that a device or another core writes its frames, so that they are worth
    /// being fetched ahead, which costs a core that has them already: where the driver copies them on this core, they are here.
    pub fn new(eal: &'e Eal, queue: RxQueue<'e>, cold: bool) -> Self {
        Self { eal, queue, cold }
    }
}

/// The sending side of a DPDK port's queue.
pub struct DpdkTransmit<'e> {
    eal: &'e Eal,
    queue: TxQueue<'e>,
    is_shared: bool,
}

impl<'e> DpdkTransmit<'e> {
    /// Sends to `queue`. `is_shared` says that another process copies the frames from where they lie, and waits for each as it
    /// does, so that short ones are worth being moved to where its core finds them sooner.
    pub fn new(eal: &'e Eal, queue: TxQueue<'e>, is_shared: bool) -> Self {
        Self {
            eal,
            queue,
            is_shared,
        }
    }
}

/// Fresh buffers of a pool.
#[derive(Clone, Copy)]
pub struct DpdkBuffers<'p, 'e> {
    eal: &'e Eal,
    pool: &'p Pool<'e>,
    is_far: bool,
}

impl<'p, 'e> DpdkBuffers<'p, 'e> {
    /// Takes them from `pool`. `is_far` says that another core reads what is written into them, so that they are worth being
    /// fetched back ahead.
    pub fn new(eal: &'e Eal, pool: &'p Pool<'e>, is_far: bool) -> Self {
        Self { eal, pool, is_far }
    }
}

impl<'e> Receive for DpdkReceive<'e> {
    type Frames = Burst<'e>;

    fn batch(&self) -> Burst<'e> {
        Burst::new(self.eal)
    }
    #[inline]
    fn receive(&mut self, into: &mut Burst<'e>, max: usize) -> usize {
        let count = self.queue.receive(into, max);
        if self.cold {
            into.prefetch_all();
        }
        count
    }
    #[inline]
    fn is_far(&self) -> bool {
        self.cold
    }
}

impl<'e> Transmit for DpdkTransmit<'e> {
    type Frames = Burst<'e>;

    fn batch(&self) -> Burst<'e> {
        Burst::new(self.eal)
    }
    #[inline]
    fn transmit(&mut self, from: &mut Burst<'e>, count: usize) -> usize {
        if self.is_shared {
            from.demote_short(count);
        }
        self.queue.transmit(from, count)
    }
}

impl<'e> Allocate for DpdkBuffers<'_, 'e> {
    type Frames = Burst<'e>;

    fn batch(&self) -> Burst<'e> {
        Burst::new(self.eal).from_afar(self.is_far)
    }
    #[inline]
    fn allocate(&mut self, into: &mut Burst<'e>, count: usize) -> usize {
        self.pool.allocate(into, count)
    }
}

impl<'b> Blank<'b> for DpdkBlank<'b> {
    #[inline(always)]
    fn write(self, len: usize) -> &'b mut [u8] {
        DpdkBlank::write(self, len)
    }
}

impl Frames for Burst<'_> {
    #[inline]
    fn len(&self) -> usize {
        Burst::len(self)
    }
    #[inline(always)]
    fn bytes(&self, index: usize) -> &[u8] {
        Burst::bytes(self, index)
    }
    #[inline(always)]
    fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)> {
        Burst::each(self)
    }
    #[inline]
    fn is_segmented(&self, index: usize) -> bool {
        Burst::is_segmented(self, index)
    }
    #[inline]
    fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        Burst::segments(self, index)
    }
    #[inline]
    fn whole_len(&self, index: usize) -> usize {
        Burst::packet_len(self, index)
    }
    #[inline]
    fn stamp(&self, index: usize) -> Option<NicStamp> {
        Burst::rx_timestamp(self, index).map(NicStamp)
    }
    #[inline]
    fn prefetch_rest(&self, index: usize) {
        Burst::prefetch_rest(self, index);
    }
    #[inline]
    fn clear(&mut self) {
        Burst::clear(self);
    }
}

impl<'e> FramesMut for Burst<'e> {
    type Frame = Mbuf<'e>;

    #[inline(always)]
    fn each_mut(&mut self) -> impl Iterator<Item = (&mut [u8], u16)> {
        Burst::each_mut(self)
    }
    #[inline]
    fn room_mut(&mut self, index: usize) -> &mut [u8] {
        Burst::room_mut(self, index)
    }
    #[inline]
    fn set_len(&mut self, index: usize, len: usize) {
        Burst::set_len(self, index, len);
    }
    #[inline]
    fn retain(&mut self, keep: &[bool]) {
        Burst::retain(self, keep);
    }
    #[inline]
    fn distribute(&mut self, to: &[u8], into: &mut [Self]) {
        Burst::distribute(self, to, into);
    }
    #[inline]
    fn pop_front(&mut self) -> Option<Mbuf<'e>> {
        Burst::pop_front(self)
    }
    #[inline]
    fn push(&mut self, frame: Mbuf<'e>) -> Result<(), Mbuf<'e>> {
        Burst::push(self, frame)
    }
}

impl FreshFrames for Burst<'_> {
    #[inline]
    fn write(&mut self, index: usize, len: usize) -> &mut [u8] {
        Burst::write(self, index, len)
    }
    #[inline(always)]
    fn blanks(&mut self, first: usize, count: usize) -> impl Iterator<Item = impl Blank<'_>> {
        Burst::blanks(self, first, count)
    }
    #[inline]
    fn is_far(&self) -> bool {
        Burst::is_far(self)
    }
    #[inline]
    fn prefetch_rest_to_write(&self, index: usize, len: usize) {
        Burst::prefetch_rest_to_write(self, index, len);
    }
    fn request_udp_checksum(&mut self, index: usize, l2_len: usize, l3_len: usize, ipv6: bool) {
        Burst::request_udp_checksum(self, index, l2_len as u16, l3_len as u16, ipv6);
    }
}

impl<'e> DpdkReceive<'e> {
    /// Gives the queue back.
    pub fn into_queue(self) -> RxQueue<'e> {
        self.queue
    }
}

impl<'e> DpdkTransmit<'e> {
    /// Gives the queue back.
    pub fn into_queue(self) -> TxQueue<'e> {
        self.queue
    }
}
