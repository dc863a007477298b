//! Packets of several receive queues in the order of their time stamps.
//!
//! A queue hands over its packets in the order of their stamps, and says by a *watermark* that whatever it hands over
//! later is stamped at or after it: the time at which its last poll ended. An empty poll is proof, so an idle queue
//! holds nobody up. A packet may go once no queue can hand over an earlier one.

/// What is done about a queue that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// It is waited for: the stream is sorted, whatever that costs.
    #[default]
    Strict,
    /// It is waited for this long after its last watermark, in the unit of the stamps; what it then hands over too late
    /// is marked and counted.
    Bounded(u64),
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The queue.
    pub queue: usize,
    /// All of its packets that are stamped at this time or earlier may go.
    pub until: u64,
    /// They come too late: a later packet has gone.
    pub is_late: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    /// The stamp of its first packet that has not gone.
    head: Option<u64>,
    watermark: u64,
}

/// Decides whose turn it is. Queues are numbered in the order in which equal stamps go.
#[derive(Debug)]
pub struct Merge {
    queues: Box<[Queue]>,
    order: Order,
    /// The latest stamp that has gone.
    gone: u64,
}

impl Merge {
    /// Of this many queues, which have said nothing yet.
    pub fn new(queues: usize, order: Order) -> Self {
        Self {
            queues: vec![Queue::default(); queues].into_boxed_slice(),
            order,
            gone: 0,
        }
    }

    /// The stamp of the first packet of `queue` that has not gone; `None` where it has none.
    #[inline]
    pub fn set_head(&mut self, queue: usize, head: Option<u64>) {
        self.queues[queue].head = head;
    }

    /// Whatever `queue` hands over from now on is stamped at `watermark` or later. To be said after what came before it
    /// was handed over.
    #[inline]
    pub fn set_watermark(&mut self, queue: usize, watermark: u64) {
        self.queues[queue].watermark = watermark;
    }

    /// No queue hands over any more: everything may go.
    pub fn end(&mut self) {
        self.queues
            .iter_mut()
            .for_each(|queue| queue.watermark = u64::MAX);
    }

    /// Whose turn it is at `now`; `None` while somebody may still hand over an earlier packet.
    #[inline]
    pub fn turn(&mut self, now: u64) -> Option<Turn> {
        let (queue, head) = self.first()?;
        if head < self.gone {
            let until = self.gone - 1;
            return Some(Turn {
                queue,
                until,
                is_late: true,
            });
        }
        let until = self.until(queue, now);
        if until < head {
            return None;
        }
        Some(Turn {
            queue,
            until,
            is_late: false,
        })
    }

    /// A packet with this stamp has gone.
    #[inline]
    pub fn went(&mut self, stamp: u64) {
        self.gone = self.gone.max(stamp);
    }

    /// The queue with the earliest packet, and its stamp.
    #[inline]
    fn first(&self) -> Option<(usize, u64)> {
        let heads = self.queues.iter().enumerate();
        let heads = heads.filter_map(|(index, queue)| Some((queue.head?, index)));
        heads.min().map(|(head, index)| (index, head))
    }

    /// The latest stamp of a packet of `first` that goes before all that others have or may still hand over.
    #[inline]
    fn until(&self, first: usize, now: u64) -> u64 {
        let mut until = u64::MAX;
        for (index, queue) in self.queues.iter().enumerate() {
            if index == first {
                continue;
            }
            let next = match (queue.head, self.order) {
                (Some(head), _) => head,
                (None, Order::Bounded(patience)) if now.saturating_sub(queue.watermark) > patience => {
                    continue;
                }
                (None, _) => queue.watermark,
            };
            // Of equal stamps that of the lower queue goes first.
            let before = if first < index {
                next
            } else {
                next.saturating_sub(1)
            };
            until = until.min(before);
        }
        until
    }
}
