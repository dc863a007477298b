//! Interarrival jitter as RFC 3550, section 6.4.1, defines it.

/// A smoothed mean of how much the latency of a packet differs from that of the packet before it.
///
/// `J += (|D| - J) / 16`, D the difference of two consecutive packets' latencies.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jitter {
    smoothed_ns: f64,
    last_ns: f64,
    packets: u64,
}

/// `(15/16)^n` for runs up to a burst, so that the hot path needs no `powf`.
const DECAY: [f64; 129] = decay_table();

/// Fills [`DECAY`].
const fn decay_table() -> [f64; 129] {
    let mut table = [1.0; 129];
    let mut n = 1;
    while n < table.len() {
        table[n] = table[n - 1] * 15.0 / 16.0;
        n += 1;
    }
    table
}

impl Jitter {
    /// No packet yet.
    pub fn new() -> Jitter {
        Jitter::default()
    }

    /// Records `n` consecutive packets of one latency: the first may differ from its predecessor, the others
    /// do not, so that J shrinks by 15/16 for each of them.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        // Exact: 2^53 ns are 104 days. Known to be below 2^63 it is made a float by one instruction.
        let latency_ns = (latency_ns & (u64::MAX >> 1)) as f64;
        if self.packets > 0 {
            let difference = (latency_ns - self.last_ns).abs();
            self.smoothed_ns += (difference - self.smoothed_ns) / 16.0;
        }
        if n > 1 {
            self.decay(n - 1);
        }
        self.last_ns = latency_ns;
        self.packets += n;
    }

    #[inline]
    fn decay(&mut self, equal: u64) {
        self.smoothed_ns *= match DECAY.get(equal as usize) {
            Some(factor) => *factor,
            // (15/16)^1024 is 2e-29: beyond, nothing is left.
            None => {
                DECAY[128].powi(i32::try_from((equal / 128).min(8)).unwrap_or(8))
                    * DECAY[(equal % 128) as usize]
            }
        };
    }

    /// The jitter in ns; `None` before the second packet.
    pub fn ns(&self) -> Option<f64> {
        (self.packets > 1).then_some(self.smoothed_ns)
    }

    /// Packets recorded.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The mean of several lanes' jitter, weighted by their packets.
    pub fn mean<'a>(lanes: impl IntoIterator<Item = &'a Jitter>) -> Option<f64> {
        let mut sum = 0.0;
        let mut packets = 0.0;
        for lane in lanes {
            if let Some(jitter_ns) = lane.ns() {
                sum += jitter_ns * lane.packets as f64;
                packets += lane.packets as f64;
            }
        }
        (packets > 0.0).then(|| sum / packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_run_equals_its_packets_one_by_one(
            runs in prop::collection::vec((0u64..10_000_000, 1u64..700), 1..50),
        ) {
            let (mut by_run, mut by_packet) = (Jitter::new(), Jitter::new());
            for (latency_ns, n) in runs {
                by_run.record(latency_ns, n);
                for _ in 0..n {
                    by_packet.record(latency_ns, 1);
                }
            }
            prop_assert_eq!(by_run.packets(), by_packet.packets());
            let (a, b) = (by_run.ns().unwrap_or(0.0), by_packet.ns().unwrap_or(0.0));
            prop_assert!((a - b).abs() <= 1e-9 * b.max(1.0), "{} against {}", a, b);
        }
    }

    #[test]
    fn the_example_of_a_step() {
        let mut jitter = Jitter::new();
        jitter.record(1_000, 1);
        assert_eq!(jitter.ns(), None);
        jitter.record(2_600, 1);
        assert_eq!(jitter.ns(), Some(100.0));
        jitter.record(2_600, 0);
        assert_eq!(jitter.ns(), Some(100.0));
        jitter.record(2_600, 1);
        assert_eq!(jitter.ns(), Some(93.75));
    }

    #[test]
    fn lanes_are_weighted_by_packets() {
        let (mut a, mut b) = (Jitter::new(), Jitter::new());
        a.record(0, 1);
        a.record(160, 1);
        b.record(0, 1);
        assert_eq!(Jitter::mean([&a, &b]), Some(10.0));
        assert_eq!(Jitter::mean([&b]), None);
    }
}
