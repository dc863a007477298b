//! How often a sample is taken, so that they stay few.

/// Samples a second that are aimed at when there are too many.
const AIM: f64 = 25_000.0;
/// Above this there are too many.
const MANY: f64 = 50_000.0;
/// Below this, too few.
const FEW: f64 = 5_000.0;
/// One of so many at least.
const EVERY_MAX: u32 = 1 << 16;
/// Between two looks at the rate.
const LOOK_NS: u64 = 100_000_000;
/// One of more packets is taken at once, one of fewer when there were few for so long.
const CALM_NS: u64 = 2_000_000_000;
/// One in so many at first: a flood may be there already.
pub const FIRST: u32 = 8;

/// Looks at how many samples come.
pub struct Pace {
    looked: (u64, u64),
    busy_ns: u64,
}

impl Pace {
    pub fn new() -> Self {
        Self {
            looked: (0, 0),
            busy_ns: 0,
        }
    }

    /// One of how many should be taken from now on, if that is another number than `current`; so many samples were taken or
    /// missed in all.
    pub fn wanted(&mut self, now_ns: u64, count: u64, current: u32) -> Option<u32> {
        let (then_ns, before) = self.looked;
        let passed_ns = now_ns.saturating_sub(then_ns);
        if passed_ns < LOOK_NS {
            return None;
        }
        self.looked = (now_ns, count);
        if then_ns == 0 {
            return None;
        }
        let rate = count.saturating_sub(before) as f64 * 1e9 / passed_ns as f64;
        if rate >= FEW {
            self.busy_ns = now_ns;
        }
        let wanted = if rate > MANY {
            let times = (rate / AIM).ceil() as u32;
            current.saturating_mul(times).min(EVERY_MAX)
        } else if now_ns.saturating_sub(self.busy_ns) > CALM_NS {
            self.busy_ns = now_ns;
            (current / 2).max(1)
        } else {
            current
        };
        (wanted != current).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_taken_at_once_and_more_when_it_has_been_calm() {
        let (mut pace, mut count, mut every) = (Pace::new(), 0, FIRST);
        let mut go = |ms: u64, rate: u64, every: &mut u32| {
            count += rate / 10;
            let wanted = pace.wanted(ms * 1_000_000, count, *every);
            *every = wanted.unwrap_or(*every);
            wanted
        };
        assert_eq!(go(100, 0, &mut every), None);
        // A million packets a second.
        assert_eq!(go(200, 1_000_000 / 8, &mut every), Some(40));
        assert_eq!(go(300, 1_000_000 / 40, &mut every), None);
        // Silence: by half every two seconds.
        let calm: Vec<u32> = (4..100)
            .filter_map(|tick| go(tick * 100, 0, &mut every))
            .collect();
        assert_eq!(calm, [20, 10, 5, 2]);
    }
}
