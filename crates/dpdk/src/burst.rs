//! A burst of owned packets: filled by a receive queue or a pool, emptied by a transmit queue or by freeing.

use std::{fmt, marker::PhantomData, ptr};

use crate::{
    Blank, Eal, Mbuf,
    raw::{self, RawMbuf},
};

/// How many packets a [`Burst`] holds.
pub const BURST_CAPACITY: usize = 128;

/// Up to [`BURST_CAPACITY`] packets, each owned by this burst alone; what is left when it is dropped is freed.
pub struct Burst<'e> {
    /// Packets are at `start..start + len`; sending removes from the front by moving `start`.
    mbufs: [RawMbuf; BURST_CAPACITY],
    start: usize,
    len: usize,
    /// When all packets came straight from pools: the shortest room of those pools, bytes; else 0. Such packets are
    /// plain (one owner, one segment, their own buffer), so [`Burst::write`] need not read them first.
    plain_room: usize,
    /// Whether its packets were last in another core's cache.
    is_far: bool,
    eal: PhantomData<&'e Eal>,
}

// SAFETY: a burst is the one owner of its packets, and pools may be used from any thread.
unsafe impl Send for Burst<'_> {}

impl<'e> Burst<'e> {
    /// An empty burst.
    pub fn new(_eal: &'e Eal) -> Self {
        Self {
            mbufs: [ptr::null_mut(); BURST_CAPACITY],
            start: 0,
            len: 0,
            plain_room: 0,
            is_far: false,
            eal: PhantomData,
        }
    }

    /// The same for packets that another core had last.
    #[must_use]
    pub fn from_afar(mut self, is_far: bool) -> Self {
        self.is_far = is_far;
        self
    }

    /// Whether its packets were last in another core's cache, so that long ones are worth being fetched before they are
    /// written.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.is_far
    }

    /// Starts fetching the bytes of packet `index`, if there is one, behind their first line, to be written as a frame of `len`
    /// bytes.
    #[inline]
    pub fn prefetch_rest_to_write(&self, index: usize, len: usize) {
        if index < self.len {
            raw::prefetch_rest_to_write(self.at(index), len);
        }
    }

    /// How many packets it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many packets it can hold.
    #[inline]
    pub const fn capacity(&self) -> usize {
        BURST_CAPACITY
    }

    /// How many more packets fit.
    #[inline]
    pub fn room(&self) -> usize {
        BURST_CAPACITY - self.len
    }

    /// The packet at `index`.
    /// # Panics
    /// Beyond the burst's length, as slices do.
    #[inline]
    fn at(&self, index: usize) -> RawMbuf {
        assert!(index < self.len, "packet {index} of {}", self.len);
        // SAFETY: start + len <= BURST_CAPACITY always.
        unsafe { *self.mbufs.get_unchecked(self.start + index) }
    }

    /// The first segment's bytes of packet `index`.
    #[inline]
    pub fn bytes(&self, index: usize) -> &[u8] {
        // SAFETY: this burst owns the packet; the result borrows the burst.
        unsafe { raw::bytes(self.at(index)) }
    }

    /// The first segment's bytes of packet `index`, to be changed in place.
    #[inline]
    pub fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: this burst owns the packet; the result borrows the burst uniquely.
        unsafe { raw::bytes_mut(self.at(index)) }
    }

    /// The room of packet `index`, from the frame's first byte to the end of its buffer.
    #[inline]
    pub fn room_mut(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: this burst owns the packet; the result borrows the burst uniquely.
        unsafe { raw::room_mut(self.at(index)) }
    }

    /// The length of the whole packet, all segments, bytes without FCS.
    #[inline]
    pub fn packet_len(&self, index: usize) -> usize {
        // SAFETY: this burst owns the packet.
        unsafe { raw::packet_len(self.at(index)) }
    }

    /// Sets the length of packet `index`, bytes without FCS; further segments are freed.
    /// # Panics
    /// When it is longer than the packet's room.
    #[inline]
    pub fn set_len(&mut self, index: usize, len: usize) {
        // SAFETY: this burst owns the packet.
        unsafe { raw::set_len(self.at(index), len) }
    }

    /// Whether the packet lies in more than one buffer, so that [`Burst::bytes`] is only its beginning.
    #[inline]
    pub fn is_segmented(&self, index: usize) -> bool {
        // SAFETY: this burst owns the packet.
        unsafe { raw::is_segmented(self.at(index)) }
    }

    /// The bytes of packet `index`, buffer by buffer.
    #[inline]
    pub fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        // SAFETY: this burst owns the packet, all of it; the result borrows the burst.
        unsafe { raw::segments(self.at(index)) }
    }

    /// When the NIC received packet `index`, by its own clock and in its unit; `None` where it did not say.
    #[inline]
    pub fn rx_timestamp(&self, index: usize) -> Option<u64> {
        // SAFETY: this burst owns the packet.
        unsafe { raw::rx_timestamp(self.at(index)) }
    }

    /// Makes packet `index` a fresh frame of `len` bytes (without FCS) and returns the room to write it: `len`
    /// bytes, at least 64. A packet of [`crate::Pool::allocate`] holds leftovers until it is written.
    /// # Panics
    /// When the pool's room is shorter.
    #[inline]
    pub fn write(&mut self, index: usize, len: usize) -> &mut [u8] {
        let mbuf = self.at(index);
        // SAFETY: the packet is this burst's, which the result borrows uniquely; what is known of it is `plain_room`.
        unsafe { Blank::new(mbuf, self.plain_room) }.write(len)
    }

    /// `count` packets from `first` on, each to be written as by [`Burst::write`], but faster: nothing of the burst has
    /// to be read again for each of them.
    #[inline]
    pub fn blanks(&mut self, first: usize, count: usize) -> impl ExactSizeIterator<Item = Blank<'_>> {
        let plain_room = self.plain_room;
        let mbufs = self.mbufs[self.start..self.start + self.len][first..first + count].iter();
        // SAFETY: the packets are this burst's, which the blanks borrow uniquely, each packet once.
        mbufs.map(move |mbuf| unsafe { Blank::new(*mbuf, plain_room) })
    }

    /// Every packet's first segment, and the length of all its segments, in order.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the per-packet loops must see through it")]
    pub fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)> {
        let mbufs = self.mbufs[self.start..self.start + self.len].iter();
        // SAFETY: these places hold packets of this burst, which the slices borrow.
        mbufs.map(|mbuf| unsafe { (raw::bytes(*mbuf), raw::packet_len(*mbuf)) })
    }

    /// Every packet's first segment, to be changed in place, and how many there are, in order.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the per-packet loops must see through it")]
    pub fn each_mut(&mut self) -> impl ExactSizeIterator<Item = (&mut [u8], u16)> {
        let mbufs = self.mbufs[self.start..self.start + self.len].iter();
        // SAFETY: these places hold packets of this burst, each there once, which the slices borrow uniquely.
        mbufs.map(|mbuf| unsafe { (raw::bytes_mut(*mbuf), raw::segment_count(*mbuf)) })
    }

    /// Starts fetching the header of every packet and the first line of its bytes.
    #[inline]
    pub fn prefetch_all(&self) {
        for mbuf in &self.mbufs[self.start..self.start + self.len] {
            raw::prefetch_header(*mbuf);
            raw::prefetch_data(*mbuf);
        }
    }

    /// Starts fetching the bytes of packet `index`, if there is one, behind their first line.
    #[inline]
    pub fn prefetch_rest(&self, index: usize) {
        if index < self.len {
            // SAFETY: this burst owns the packet.
            unsafe { raw::prefetch_rest(self.at(index)) }
        }
    }

    /// Moves those of the first `count` packets that are no longer than a line to where another core, which is to read them
    /// next, finds them sooner than in this core's caches. To move longer ones takes longer than it saves.
    #[inline]
    pub fn demote_short(&self, count: usize) {
        for mbuf in &self.mbufs[self.start..self.start + count.min(self.len)] {
            // SAFETY: this burst owns the packet.
            unsafe { raw::demote_short(*mbuf) }
        }
    }

    /// Asks the NIC for the UDP checksum of packet `index`, whose checksum field holds the sum of the pseudo-header.
    /// `l2_len` and `l3_len` are the lengths of its headers, bytes. The port must have been configured so.
    #[inline]
    pub fn request_udp_checksum(&mut self, index: usize, l2_len: u16, l3_len: u16, ipv6: bool) {
        // SAFETY: this burst owns the packet.
        unsafe { raw::request_udp_checksum(self.at(index), l2_len, l3_len, ipv6) }
    }

    /// Frees all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Frees the packets from `len` on.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            let from = self.start + len;
            let to = self.start + self.len;
            self.len = len;
            // SAFETY: these were the burst's packets until `len` was lowered.
            unsafe { raw::free(&mut self.mbufs[from..to]) };
        }
        if self.len == 0 {
            self.start = 0;
        }
    }

    /// Keeps the packets whose flag is set, in order, and frees the others at once. Packets beyond the flags stay.
    pub fn retain(&mut self, keep: &[bool]) {
        let mut freed = [ptr::null_mut(); BURST_CAPACITY];
        let mut freed_count = 0;
        let mut kept = 0;
        for index in 0..self.len {
            let mbuf = self.at(index);
            if keep.get(index).copied().unwrap_or(true) {
                self.mbufs[self.start + kept] = mbuf;
                kept += 1;
            } else {
                freed[freed_count] = mbuf;
                freed_count += 1;
            }
        }
        self.len = kept;
        if kept == 0 {
            self.start = 0;
        }
        if freed_count > 0 {
            // SAFETY: each of these was taken out of the burst above.
            unsafe { raw::free(&mut freed[..freed_count]) };
        }
    }

    /// Moves every packet to the end of that burst of `into` which its place in `to` names. What names none stays, and
    /// what finds its burst full; all keep their order.
    pub fn distribute(&mut self, to: &[u8], into: &mut [Self]) {
        let mut kept = 0;
        for index in 0..self.len {
            let mbuf = self.at(index);
            let burst = to.get(index).and_then(|to| into.get_mut(usize::from(*to)));
            if let Some(burst) = burst.filter(|burst| burst.room() > 0) {
                burst.spare(1)[0] = mbuf;
                // SAFETY: the place was just written with a packet that this burst gives up below; it is as plain as
                // all of this burst.
                unsafe { burst.grow(1, self.plain_room) };
            } else {
                self.mbufs[self.start + kept] = mbuf;
                kept += 1;
            }
        }
        self.len = kept;
        if kept == 0 {
            self.start = 0;
        }
    }

    /// Takes packet `index` out; the later ones move up.
    /// # Panics
    /// Beyond the burst's length.
    pub fn take(&mut self, index: usize) -> Mbuf<'e> {
        let mbuf = self.at(index);
        let at = self.start + index;
        self.mbufs.copy_within(at + 1..self.start + self.len, at);
        self.len -= 1;
        // SAFETY: the packet is no longer in the burst.
        unsafe { Mbuf::from_raw(mbuf) }
    }

    /// Takes the first packet out.
    pub fn pop_front(&mut self) -> Option<Mbuf<'e>> {
        (self.len > 0).then(|| {
            let mbuf = self.at(0);
            self.start += 1;
            self.len -= 1;
            // SAFETY: the packet is no longer in the burst.
            unsafe { Mbuf::from_raw(mbuf) }
        })
    }

    /// Takes the last packet out.
    pub fn pop(&mut self) -> Option<Mbuf<'e>> {
        (self.len > 0).then(|| self.take(self.len - 1))
    }

    /// Appends a packet, or gives it back when the burst is full.
    pub fn push(&mut self, packet: Mbuf<'e>) -> Result<(), Mbuf<'e>> {
        if self.room() == 0 {
            return Err(packet);
        }
        self.spare(1)[0] = packet.into_raw();
        // SAFETY: the place was just written; nothing is said of the packet.
        unsafe { self.grow(1, 0) };
        Ok(())
    }

    /// Moves up to `count` packets from the front of `other` to the end of this burst: how many.
    pub fn append(&mut self, other: &mut Burst<'e>, count: usize) -> usize {
        let count = count.min(other.len).min(self.room());
        let from = other.start;
        self.spare(count)
            .copy_from_slice(&other.mbufs[from..from + count]);
        // SAFETY: `count` places were just written with packets that `other` gives up in the next statement.
        unsafe {
            self.grow(count, other.plain_room);
            other.shrink_front(count);
        }
        count
    }

    /// `count` free places behind the last packet, `count` being at most [`Burst::room`].
    #[inline]
    pub(crate) fn spare(&mut self, count: usize) -> &mut [RawMbuf] {
        if self.start + self.len + count > BURST_CAPACITY {
            self.mbufs.copy_within(self.start..self.start + self.len, 0);
            self.start = 0;
        }
        let end = self.start + self.len;
        &mut self.mbufs[end..end + count]
    }

    /// # Safety
    /// The first `count` places of [`Burst::spare`] hold packets that this burst owns from now on. They are plain
    /// and have a room of `plain_room` bytes, which is 0 when that is not known.
    #[inline]
    pub(crate) unsafe fn grow(&mut self, count: usize, plain_room: usize) {
        debug_assert!(
            self.start + self.len + count <= BURST_CAPACITY,
            "a burst too long"
        );
        self.plain_room = if self.len == 0 {
            plain_room
        } else {
            self.plain_room.min(plain_room)
        };
        self.len += count;
    }

    /// The packets, to be offered to a driver.
    #[inline]
    pub(crate) fn front_mut(&mut self, count: usize) -> &mut [RawMbuf] {
        let count = count.min(self.len);
        &mut self.mbufs[self.start..self.start + count]
    }

    /// # Safety
    /// The first `count` packets have another owner now, and the burst has as many.
    #[inline]
    pub(crate) unsafe fn shrink_front(&mut self, count: usize) {
        debug_assert!(count <= self.len, "more sent than there were");
        self.len -= count;
        self.start = if self.len == 0 { 0 } else { self.start + count };
    }
}

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Burst<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Burst")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
