//! Whether the probes of a lane are all of one sender: what it numbered later it also sent later.

use crate::sequence::SEQUENCE_MASK;
use crate::time::{Nanos, sign_extend_48};

/// The last number that was seen of a lane, and when it was sent. On the way packets may change their order, but none
/// changes its number or its stamp: two that contradict each other were not numbered by the same run.
#[derive(Debug, Clone, Copy)]
pub struct SendOrder {
    sequence: u64,
    time: u64,
}

impl SendOrder {
    /// Of a lane that sends from `start` on.
    pub fn new(start: Nanos) -> Self {
        Self {
            // The one before the first.
            sequence: SEQUENCE_MASK,
            time: start.0,
        }
    }

    /// Whether a number above all that came before goes with the one before: as [`SendOrder::goes_with`], with less to ask.
    #[inline]
    pub fn goes_on_with(&mut self, sequence: u64, time: u64) -> bool {
        let times = sign_extend_48(time.wrapping_sub(self.time));
        *self = Self { sequence, time };
        times >= 0
    }

    /// Whether number `sequence`, sent at `time` (ns), goes with the one before; both modulo 2^48.
    #[inline]
    pub fn goes_with(&mut self, sequence: u64, time: u64) -> bool {
        let numbers = sign_extend_48(sequence.wrapping_sub(self.sequence));
        let times = sign_extend_48(time.wrapping_sub(self.time));
        *self = Self { sequence, time };
        // One stamp serves a burst; a number has one stamp.
        times == 0 || (numbers != 0 && (numbers ^ times) >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agree(packets: &[(u64, u64)]) -> Vec<bool> {
        let mut order = SendOrder::new(Nanos(1000));
        packets
            .iter()
            .map(|(sequence, time)| order.goes_with(*sequence, *time))
            .collect()
    }

    #[test]
    fn whatever_the_order_of_arrival_one_sender_agrees_with_itself() {
        let packets = [
            (0, 1000),
            (1, 1000),
            (9, 1010),
            (2, 1001),
            (2, 1001),
            (8, 1010),
            (9, 1010),
        ];
        assert_eq!(agree(&packets), [true; 7]);
        let end = SEQUENCE_MASK;
        assert_eq!(
            agree(&[(end - 1, end), (2, end + 9), (end, end + 1)]),
            [true; 3],
            "both wrap"
        );
    }

    proptest! {
        /// Where numbers only grow, there is less to ask.
        #[test]
        fn numbers_that_grow_need_only_their_times(
            steps in prop::collection::vec((1_u64..1 << 40, -1_000_i64..1_000), 1..50),
        ) {
            let (mut all, mut grown) = (SendOrder::new(Nanos(1000)), SendOrder::new(Nanos(1000)));
            let (mut sequence, mut time) = (SEQUENCE_MASK, 1000_u64);
            for (more, later) in steps {
                sequence = sequence.wrapping_add(more) & SEQUENCE_MASK;
                time = time.wrapping_add_signed(later) & SEQUENCE_MASK;
                prop_assert_eq!(all.goes_with(sequence, time), grown.goes_on_with(sequence, time));
            }
        }
    }

    #[test]
    fn two_senders_contradict_each_other() {
        assert_eq!(agree(&[(5, 1010), (4, 1020), (6, 1011)]), [true, false, false]);
        assert_eq!(agree(&[(5, 1010), (5, 1011)]), [true, false]);
    }
}
