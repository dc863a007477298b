//! Receive and transmit queues: created once with their port, owned by one thread at a time.

use std::{cell::Cell, marker::PhantomData, sync::Arc};

use dpdk_sys as sys;

use crate::{Burst, Eal, gate::Gate};

/// What both directions share.
#[derive(Debug)]
struct Queue<'e> {
    gate: Arc<Gate>,
    port: u16,
    index: u16,
    eal: PhantomData<&'e Eal>,
    /// Not Sync: DPDK allows one thread at a time.
    cell: PhantomData<Cell<()>>,
}

impl Queue<'_> {
    fn new(gate: Arc<Gate>, port: u16, index: u16) -> Self {
        Self {
            gate,
            port,
            index,
            eal: PhantomData,
            cell: PhantomData,
        }
    }
}

/// One receive queue. While its port is stopped it gives nothing.
#[derive(Debug)]
pub struct RxQueue<'e> {
    queue: Queue<'e>,
    received: u64,
    polls: u64,
}

impl<'e> RxQueue<'e> {
    pub(crate) fn new(gate: Arc<Gate>, port: u16, index: u16) -> Self {
        Self {
            queue: Queue::new(gate, port, index),
            received: 0,
            polls: 0,
        }
    }

    /// Appends at most `max` packets to `burst`: how many.
    #[inline]
    pub fn receive(&mut self, burst: &mut Burst<'e>, max: usize) -> usize {
        let max = max.min(burst.room());
        if max == 0 {
            // Not every driver can be asked for nothing.
            return 0;
        }
        let room = burst.spare(max);
        let (pointer, room) = (room.as_mut_ptr(), room.len() as u16);
        let Queue {
            port,
            index,
            ref gate,
            ..
        } = self.queue;
        // SAFETY: the queue exists (made by `Device::configure`) and its gate is open, so its port runs; `&mut self`
        // of the only handle makes this the only caller; `room` places are writable.
        let count = gate.pass(|| unsafe { sys::dl_rx_burst(port, index, pointer, room) });
        // SAFETY: the driver wrote `count` packets, which are ours from now on; nothing is said of them.
        unsafe { burst.grow(usize::from(count), 0) };
        self.received += u64::from(count);
        self.polls += 1;
        usize::from(count)
    }

    /// The queue's number on its port.
    pub fn index(&self) -> u16 {
        self.queue.index
    }

    /// The port's DPDK id.
    pub fn port(&self) -> u16 {
        self.queue.port
    }

    /// Packets received since the queue was made.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Calls of [`RxQueue::receive`] since the queue was made.
    pub fn polls(&self) -> u64 {
        self.polls
    }
}

/// One transmit queue. While its port is stopped it accepts nothing.
#[derive(Debug)]
pub struct TxQueue<'e> {
    queue: Queue<'e>,
    offered: u64,
    accepted: u64,
}

impl<'e> TxQueue<'e> {
    pub(crate) fn new(gate: Arc<Gate>, port: u16, index: u16) -> Self {
        Self {
            queue: Queue::new(gate, port, index),
            offered: 0,
            accepted: 0,
        }
    }

    /// Offers the first `count` packets of `burst` once and removes those the driver took: how many. The others
    /// stay at the front.
    #[inline]
    pub fn transmit(&mut self, burst: &mut Burst<'e>, count: usize) -> usize {
        let front = burst.front_mut(count);
        let (pointer, offered) = (front.as_mut_ptr(), front.len() as u16);
        let Queue {
            port,
            index,
            ref gate,
            ..
        } = self.queue;
        // SAFETY: the queue exists (made by `Device::configure`) and its gate is open, so its port runs; `&mut self`
        // of the only handle makes this the only caller; the `offered` packets are ours.
        let accepted = gate.pass(|| unsafe { sys::dl_tx_burst(port, index, pointer, offered) });
        // SAFETY: a driver takes a prefix and owns it from then on; it never takes more than it was offered.
        unsafe { burst.shrink_front(usize::from(accepted)) };
        self.offered += u64::from(offered);
        self.accepted += u64::from(accepted);
        usize::from(accepted)
    }

    /// The queue's number on its port.
    pub fn index(&self) -> u16 {
        self.queue.index
    }

    /// The port's DPDK id.
    pub fn port(&self) -> u16 {
        self.queue.port
    }

    /// Packets offered to the driver since the queue was made; one that was refused counts at each offer.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Packets handed in: taken by the driver since the queue was made.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }
}
