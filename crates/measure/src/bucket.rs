//! What stalls cost in packets: a receive ring as a leaky bucket.

/// A receiver works its ring off this much faster than packets come, where nobody says how much.
pub const SERVICE: f64 = 1.25;

/// A receiver and its ring.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ring {
    /// Packets that arrive, 1/s.
    pub rate_pps: f64,
    /// Packets that the receiver takes while it runs, 1/s; above `rate_pps`, or it never catches up.
    pub service_pps: f64,
    /// Free descriptors when it keeps up.
    pub free: f64,
}

/// The ring over time. Stalls that follow each other closely add up.
#[derive(Debug, Clone)]
pub struct Bucket {
    ring: Ring,
    waiting: f64,
    until: f64,
    lost: f64,
}

impl Bucket {
    /// An empty ring at time 0.
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            waiting: 0.0,
            until: 0.0,
            lost: 0.0,
        }
    }

    /// A ring that holds all, at a packet a second: what waits is the time in which that came, s, which the receiver works off
    /// `service` times as fast. A real ring loses nothing up to the rate that fills it in the longest such time.
    pub fn of_time(service: f64) -> Self {
        Self::new(Ring {
            rate_pps: 1.0,
            service_pps: service,
            free: f64::INFINITY,
        })
    }

    /// Packets that wait at a time `now` since the last stall, s, while the receiver runs.
    pub fn waiting(&self, now: f64) -> f64 {
        let ran = (now - self.until).max(0.0);
        let drained = (self.ring.service_pps - self.ring.rate_pps) * ran;
        (self.waiting - drained).clamp(0.0, self.ring.free)
    }

    /// The receiver is away from `from` to `to`, s; stalls come in their order. Returns the packets that this one costs.
    pub fn stall(&mut self, from: f64, to: f64) -> f64 {
        self.waiting = self.waiting(from);
        self.waiting += (to - from).max(0.0) * self.ring.rate_pps;
        let lost = (self.waiting - self.ring.free).max(0.0);
        self.waiting -= lost;
        self.until = to;
        self.lost += lost;
        lost
    }

    /// All that was lost so far, packets.
    pub fn lost(&self) -> f64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RING: Ring = Ring {
        rate_pps: 30e6,
        service_pps: 40e6,
        free: 8192.0,
    };

    #[test]
    fn a_short_stall_costs_nothing() {
        // 100 us at 30 Mpps are 3000 packets.
        let mut bucket = Bucket::new(RING);
        assert!(bucket.stall(0.0, 100e-6) <= 0.0);
        assert!((bucket.waiting - 3000.0).abs() < 1e-6);
    }

    #[test]
    fn short_gaps_add_up() {
        let mut bucket = Bucket::new(RING);
        for stall in 0..3 {
            let from = f64::from(stall) * 110e-6;
            bucket.stall(from, from + 100e-6);
        }
        // 3 x 3000 arrived, 2 x 100 drained between them, 8192 fit.
        assert!((bucket.lost() - 608.0).abs() < 1e-6, "{bucket:?}");
    }

    proptest! {
        /// The rate that fills the ring in the longest time that waits loses nothing, and a little more does.
        #[test]
        fn the_longest_time_that_waits_is_the_limit(
            stalls in prop::collection::vec((1e-6..1e-3, 1e-6..1e-3), 1..50),
            service in 1.01..2.0,
            room in 64.0..16384.0,
        ) {
            let mut now = 0.0;
            let spans: Vec<(f64, f64)> = stalls.iter().map(|(run, stall)| {
                let from = now + run;
                now = from + stall;
                (from, now)
            }).collect();
            let mut time = Bucket::of_time(service);
            let waits = spans.iter().map(|(from, to)| {
                time.stall(*from, *to);
                time.waiting(*to)
            });
            let rate = room / waits.fold(0.0, f64::max);
            let lost = |rate_pps: f64| {
                let mut bucket = Bucket::new(Ring { rate_pps, service_pps: rate_pps * service, free: room });
                for (from, to) in &spans {
                    bucket.stall(*from, *to);
                }
                bucket.lost()
            };
            prop_assert!(lost(rate * 0.999_999) <= 0.0 && lost(rate * 1.001) > 0.0);
        }

        /// A ring never loses more than arrived, nor less than the longest stall alone would cost.
        #[test]
        fn loss_is_bounded(
            stalls in prop::collection::vec((1e-6..1e-3, 1e-6..1e-3), 1..50),
            rate in 1e5..4e7,
            room in 64.0..16384.0,
        ) {
            let ring = Ring { rate_pps: rate, service_pps: rate * 1.2, free: room };
            let mut bucket = Bucket::new(ring);
            let (mut now, mut away, mut longest) = (0.0, 0.0, 0.0_f64);
            for (run, stall) in stalls {
                now += run;
                bucket.stall(now, now + stall);
                now += stall;
                away += stall;
                longest = longest.max(stall);
            }
            prop_assert!(bucket.lost() <= away * rate + 1e-3);
            prop_assert!(bucket.lost() + 1e-3 >= longest * rate - room);
        }
    }
}
