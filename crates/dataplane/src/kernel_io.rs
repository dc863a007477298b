//! UDP sockets behind the I/O traits: the baseline. Here, and here only, a poll makes system calls: they are what is measured.
//!
//! Sockets carry payloads, the loops whole frames. What arrives gets headers that say what the kernel told of it
//! ([`wire::envelope`]); of what is sent the payload goes to where the frame's headers point.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use measure::Counter;
use sockets::{Receiver, Sender};
use wire::envelope;

use crate::BURST_MAX;
use crate::io::{Allocate, Blank, Frames, FramesMut, FreshFrames, NicStamp, Receive, Transmit};

/// One buffer.
struct Slot {
    bytes: Box<[u8]>,
    len: usize,
}

/// The buffers of one queue. Whoever frees one puts it back.
#[derive(Clone)]
pub struct SlotPool {
    free: Arc<ArrayQueue<Slot>>,
    room: usize,
}

impl SlotPool {
    /// `count` buffers of `room` bytes.
    pub fn new(count: usize, room: usize) -> Self {
        let free = ArrayQueue::new(count.max(1));
        for _ in 0..count.max(1) {
            let bytes = vec![0; room].into_boxed_slice();
            let _ = free.push(Slot { bytes, len: 0 });
        }
        Self {
            free: Arc::new(free),
            room,
        }
    }

    /// Bytes of a buffer.
    pub fn room(&self) -> usize {
        self.room
    }
}

/// A batch of frames on their way from or to a socket.
pub struct SocketFrames {
    slots: VecDeque<Slot>,
    home: SlotPool,
}

/// A frame taken out of its batch.
pub struct SocketFrame {
    slot: Option<Slot>,
    home: SlotPool,
}

impl Drop for SocketFrame {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let _ = self.home.free.push(slot);
        }
    }
}

impl SocketFrames {
    fn new(home: &SlotPool) -> Self {
        Self {
            slots: VecDeque::with_capacity(BURST_MAX),
            home: home.clone(),
        }
    }

    fn free_first(&mut self, count: usize) {
        for slot in self.slots.drain(..count) {
            let _ = self.home.free.push(slot);
        }
    }
}

impl Drop for SocketFrames {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Frames for SocketFrames {
    fn len(&self) -> usize {
        self.slots.len()
    }
    fn bytes(&self, index: usize) -> &[u8] {
        &self.slots[index].bytes[..self.slots[index].len]
    }
    fn each(&self) -> impl ExactSizeIterator<Item = (&[u8], usize)> {
        self.slots.iter().map(|slot| (&slot.bytes[..slot.len], slot.len))
    }
    fn is_segmented(&self, _index: usize) -> bool {
        false
    }
    fn segments(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.bytes(index))
    }
    fn whole_len(&self, index: usize) -> usize {
        self.slots[index].len
    }
    fn stamp(&self, _index: usize) -> Option<NicStamp> {
        None
    }
    fn clear(&mut self) {
        self.free_first(self.slots.len());
    }
}

impl FramesMut for SocketFrames {
    type Frame = SocketFrame;

    fn each_mut(&mut self) -> impl Iterator<Item = (&mut [u8], u16)> {
        self.slots.iter_mut().map(|slot| (&mut slot.bytes[..slot.len], 1))
    }
    fn room_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.slots[index].bytes
    }
    fn set_len(&mut self, index: usize, len: usize) {
        let slot = &mut self.slots[index];
        slot.len = len.min(slot.bytes.len());
    }
    fn retain(&mut self, keep: &[bool]) {
        let mut kept = 0;
        for index in 0..self.slots.len() {
            if keep.get(index).copied().unwrap_or(false) {
                self.slots.swap(kept, index);
                kept += 1;
            }
        }
        for slot in self.slots.drain(kept..) {
            let _ = self.home.free.push(slot);
        }
    }
    fn distribute(&mut self, to: &[u8], into: &mut [Self]) {
        let mut places = to.iter();
        for _ in 0..self.slots.len() {
            let Some(slot) = self.slots.pop_front() else { break };
            let batch = places.next().and_then(|to| into.get_mut(usize::from(*to)));
            match batch.filter(|batch| batch.slots.len() < BURST_MAX) {
                Some(batch) => batch.slots.push_back(slot),
                None => self.slots.push_back(slot),
            }
        }
    }
    fn pop_front(&mut self) -> Option<SocketFrame> {
        let slot = self.slots.pop_front()?;
        Some(SocketFrame {
            slot: Some(slot),
            home: self.home.clone(),
        })
    }
    fn push(&mut self, mut frame: SocketFrame) -> Result<(), SocketFrame> {
        if self.slots.len() == BURST_MAX {
            return Err(frame);
        }
        self.slots.extend(frame.slot.take());
        Ok(())
    }
}

impl FreshFrames for SocketFrames {
    fn write(&mut self, index: usize, len: usize) -> &mut [u8] {
        self.set_len(index, len);
        self.room_mut(index)
    }
    fn blanks(&mut self, first: usize, count: usize) -> impl Iterator<Item = impl Blank<'_>> {
        self.slots.iter_mut().skip(first).take(count)
    }
    fn request_udp_checksum(&mut self, _index: usize, _l2_len: usize, _l3_len: usize, _ipv6: bool) {}
}

impl Allocate for SlotPool {
    type Frames = SocketFrames;

    fn batch(&self) -> SocketFrames {
        SocketFrames::new(self)
    }

    fn allocate(&mut self, into: &mut SocketFrames, count: usize) -> usize {
        let count = count.min(BURST_MAX - into.slots.len());
        let fresh = std::iter::from_fn(|| self.free.pop()).take(count);
        let before = into.slots.len();
        into.slots.extend(fresh);
        into.slots.len() - before
    }
}

impl<'b> Blank<'b> for &'b mut Slot {
    fn write(self, len: usize) -> &'b mut [u8] {
        self.len = len.min(self.bytes.len());
        &mut self.bytes
    }
}

/// What a queue of sockets counts, as a driver would. Each counter has one writer: the worker of its direction.
#[derive(Debug, Default)]
pub struct SocketCounters {
    /// Packets received.
    pub rx_packets: Counter,
    /// Bytes received, with the headers put before them.
    pub rx_bytes: Counter,
    /// Packets longer than their buffer.
    pub rx_errors: Counter,
    /// Packets that the kernel took.
    pub tx_packets: Counter,
    /// Bytes of these, with their headers.
    pub tx_bytes: Counter,
    /// Packets that the kernel will never send: forbidden, unroutable, too long.
    pub tx_errors: Counter,
}

/// The receiving side of a socket.
pub struct KernelReceive {
    receiver: Receiver,
    local: SocketAddr,
    sealed: bool,
    pool: SlotPool,
    /// Empty buffers to receive into: an empty poll must not go through the pool.
    spare: VecDeque<Slot>,
    counters: Arc<SocketCounters>,
}

impl KernelReceive {
    /// Receives what comes to `local`. `sealed` puts true checksums into the headers of probes as well.
    pub fn new(
        receiver: Receiver,
        local: SocketAddr,
        sealed: bool,
        pool: SlotPool,
        counters: Arc<SocketCounters>,
    ) -> Self {
        Self {
            receiver,
            local,
            sealed,
            pool,
            spare: VecDeque::with_capacity(BURST_MAX),
            counters,
        }
    }
}

impl KernelReceive {
    /// Before another thread goes on to receive; what came meanwhile may be thrown away.
    pub fn rest(&mut self) {
        self.receiver.rest();
    }
}

impl Receive for KernelReceive {
    type Frames = SocketFrames;

    fn batch(&self) -> SocketFrames {
        SocketFrames::new(&self.pool)
    }

    fn receive(&mut self, into: &mut SocketFrames, max: usize) -> usize {
        let max = max.min(BURST_MAX - into.slots.len());
        while self.spare.len() < max {
            let Some(slot) = self.pool.free.pop() else { break };
            self.spare.push_back(slot);
        }
        let head = envelope::envelope_len(self.local.is_ipv6());
        let rooms = self
            .spare
            .iter_mut()
            .take(max)
            .map(|slot| &mut slot.bytes[head..]);
        let mut arrivals = [None; BURST_MAX];
        let mut next = arrivals.iter_mut();
        let count = self.receiver.receive(rooms, |arrival| {
            if let Some(place) = next.next() {
                *place = Some(arrival);
            }
        });
        let (mut bytes, mut good) = (0, 0);
        for arrival in arrivals.into_iter().take(count).flatten() {
            let Some(mut slot) = self.spare.pop_front() else {
                break;
            };
            let frame = envelope::wrap(
                &mut slot.bytes,
                arrival.from,
                self.local,
                arrival.len,
                self.sealed,
            );
            if let Some(len) = frame.filter(|_| !arrival.cut) {
                slot.len = len;
                bytes += len as u64;
                good += 1;
                into.slots.push_back(slot);
            } else {
                self.counters.rx_errors.add(1);
                let _ = self.pool.free.push(slot);
            }
        }
        if good > 0 {
            self.counters.rx_packets.add(good as u64);
            self.counters.rx_bytes.add(bytes);
        }
        good
    }
}

impl Drop for KernelReceive {
    fn drop(&mut self) {
        for slot in self.spare.drain(..) {
            let _ = self.pool.free.push(slot);
        }
    }
}

/// The sending side of a socket.
pub struct KernelTransmit {
    sender: Sender,
    pool: SlotPool,
    counters: Arc<SocketCounters>,
}

impl KernelTransmit {
    /// Sends what lies in buffers of `pool`.
    pub fn new(sender: Sender, pool: SlotPool, counters: Arc<SocketCounters>) -> Self {
        Self {
            sender,
            pool,
            counters,
        }
    }

    /// The buffers that it sends from.
    pub fn buffers(&self) -> SlotPool {
        self.pool.clone()
    }
}

impl Transmit for KernelTransmit {
    type Frames = SocketFrames;

    fn batch(&self) -> SocketFrames {
        SocketFrames::new(&self.pool)
    }

    fn transmit(&mut self, from: &mut SocketFrames, count: usize) -> usize {
        // What is no UDP has no place in a socket; it is an error once it is first in line.
        let is_foreign = |slot: &Slot| envelope::unwrap(&slot.bytes[..slot.len]).is_none();
        let foreign = from
            .slots
            .iter()
            .take(count)
            .take_while(|slot| is_foreign(slot))
            .count();
        let packets = from
            .slots
            .iter()
            .take(count)
            .skip(foreign)
            .map_while(|slot| envelope::unwrap(&slot.bytes[..slot.len]));
        let sent = self.sender.send(packets);
        let taken = foreign + sent.taken;
        let failed = foreign + sent.failed;
        if failed > 0 {
            self.counters.tx_errors.add(failed as u64);
        }
        let bytes: usize = from.slots.iter().take(taken).map(|slot| slot.len).sum();
        self.counters.tx_packets.add((taken - failed) as u64);
        self.counters.tx_bytes.add(bytes as u64);
        from.free_first(taken);
        taken
    }
}

#[cfg(test)]
mod tests;
