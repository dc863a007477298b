//! The wall clock beside the stamps of packets.
//!
//! Packets are stamped by the run's clock, which goes on from where the wall clock stood at the beginning: so a file stays in
//! the order of its stamps, whoever sets the wall clock meanwhile. How far the two are apart then is told.

use measure::units::format_duration;
use measure::{Clock, Note};

use crate::run::clock::{now, unix_ns};

/// What is less is what the clocks of two machines differ by.
const TOLD_NS: u64 = 1_000_000;
/// At the beginning, of which the quickest counts.
const READINGS: usize = 8;
/// Between both readings of the run's clock, ns: whoever lost his core there knows nothing of the wall clock.
const READ_MAX: u64 = 100_000;

pub struct Wall {
    clock: Clock,
    /// From the run's clock (`CLOCK_MONOTONIC`) to the epoch of Unix, as of the beginning; ns.
    pub epoch_ns: u64,
    /// How far the wall clock was ahead of the stamps when that was most, ns; behind them below 0.
    furthest_ns: i64,
    /// Packets are stamped by the run's clock at all.
    is_asked: bool,
    is_said: bool,
}

impl Wall {
    pub fn begin(clock: &Clock, is_asked: bool) -> Self {
        Self {
            clock: *clock,
            epoch_ns: (0..READINGS)
                .map(|_| reading(clock))
                .min_by_key(|(_, took_ns)| *took_ns)
                .map_or(0, |(epoch_ns, _)| epoch_ns),
            furthest_ns: 0,
            is_asked,
            is_said: false,
        }
    }

    /// One look at both clocks.
    pub fn look(&mut self) {
        if self.is_asked {
            self.compare(reading(&self.clock));
        }
    }

    fn compare(&mut self, (epoch_ns, took_ns): (u64, u64)) {
        let apart_ns = 0_i64.wrapping_add_unsigned(epoch_ns.wrapping_sub(self.epoch_ns));
        if took_ns <= READ_MAX && apart_ns.unsigned_abs() > self.furthest_ns.unsigned_abs() {
            self.furthest_ns = apart_ns;
        }
    }

    /// That they are apart, for the result.
    pub fn note(&self) -> Option<Note> {
        let apart_ns = self.furthest_ns.unsigned_abs();
        (apart_ns > TOLD_NS).then(|| {
            let way = if self.furthest_ns > 0 { "ahead of" } else { "behind" };
            let text = format!(
                "the wall clock was set, or ran at another rate, since the capture began: it was up to {} {way} the stamps of packets, which go on from where it stood then; fix: begin when it has been set (systemd: After=time-sync.target), or begin anew",
                format_duration(apart_ns)
            );
            Note::new("wall_clock_moved", text)
        })
    }

    /// The same at once, and once.
    pub fn says(&mut self) -> Option<String> {
        let note = self.note().filter(|_| !self.is_said)?;
        self.is_said = true;
        Some(format!("note: {}\n", note.text))
    }
}

/// From the run's clock to the epoch of Unix, and how long it took to know it; ns.
fn reading(clock: &Clock) -> (u64, u64) {
    let before = clock.ns(now()).0;
    let unix = unix_ns();
    let took = clock.ns(now()).0 - before;
    (unix.wrapping_sub(before + took / 2), took)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

    fn told(readings: &[(i64, u64)]) -> Option<String> {
        let clock = Clock::from_calibration(0, 0, 1e9);
        let mut wall = Wall {
            epoch_ns: EPOCH_NS,
            ..Wall::begin(&clock, true)
        };
        for (apart_ns, took_ns) in readings {
            wall.compare((EPOCH_NS.wrapping_add_signed(*apart_ns), *took_ns));
        }
        assert!(wall.note().is_none_or(|note| note.code == "wall_clock_moved"));
        let note = wall.note().map(|note| note.text);
        assert_eq!(wall.says().is_some(), note.is_some());
        assert_eq!(wall.says(), None, "it is said once");
        note
    }

    #[test]
    fn a_wall_clock_that_was_set_is_told_also_where_it_was_set_back() {
        assert_eq!(told(&[(0, 50), (900_000, 50), (-900_000, 50)]), None);
        assert_eq!(
            told(&[(3_600_000_000_000, 200_000)]),
            None,
            "nobody knows when that was read"
        );
        let ahead = told(&[(5_000_000, 50), (3_600_000_000_000, 50), (0, 50)]);
        assert!(ahead.is_some_and(|text| text.contains("up to 3600.0 s ahead of the stamps")));
        let behind = told(&[(-2_000_000, 50)]);
        assert!(behind.is_some_and(|text| text.contains("up to 2.000 ms behind the stamps")));
    }
}
