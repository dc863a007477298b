//! When each packet of a capture is due: by its own times, at a rate, or at once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::pacer::{Pacer, Rate};
use crate::time::Ticks;
use crate::units::{LAYER1_OVERHEAD_BYTES, RateSpec, UnitError, frame_on_wire};

/// The highest number of times faster than a capture, and the highest number of times slower.
const SPEED_MAX: f64 = 1e6;

/// How fast a capture is sent again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayRate {
    /// By its own times, so many times faster.
    Times(f64),
    /// At a rate, whatever its times.
    Rate(RateSpec),
}

impl FromStr for ReplayRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wanted = "original, x2, x0.5, 1Mpps, 10Gbps, 10GbpsL2, 50% or max";
        let wrong = || UnitError::new("rate", text, wanted);
        let lower = text.trim().to_ascii_lowercase();
        if lower == "original" {
            return Ok(Self::Times(1.0));
        }
        if let Some(times) = lower.strip_prefix('x') {
            let times: f64 = times.parse().map_err(|_| wrong())?;
            return if (1.0 / SPEED_MAX..=SPEED_MAX).contains(&times) {
                Ok(Self::Times(times))
            } else {
                Err(UnitError::new("rate", text, "x0.000001 to x1000000"))
            };
        }
        let rate = text.parse().map(Self::Rate);
        rate.map_err(|error| {
            if RateSpec::is_of_bounds(&error) {
                error
            } else {
                wrong()
            }
        })
    }
}

impl fmt::Display for ReplayRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(1.0) => f.write_str("original"),
            Self::Times(times) => write!(f, "x{times}"),
            Self::Rate(rate) => rate.fmt(f),
        }
    }
}

/// What is due when.
#[derive(Debug, Clone)]
enum Pace {
    /// By the times of the file, so many times faster.
    Times(f64),
    /// A packet is due when those before it are over, each taking so many units: itself, or its bits and those of so many
    /// bytes more.
    Units { pacer: Pacer, bytes_more: Option<u64> },
    /// Everything at once.
    Max,
}

/// Packets of several queues and interfaces stand in a file a little out of order; what goes back further than this is a
/// clock that was set, or a stamp that is wrong.
const DISORDER_MAX_NS: u64 = 1_000_000_000;

/// What of the times of a file could not be taken as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TimesSummary {
    /// Packets with a time before that of the packet before them: they follow it at once.
    pub backwards: u64,
    /// Packets without a time: they follow the one before at once.
    pub untimed: u64,
    /// Gaps that were longer than allowed, and were cut.
    pub cut: u64,
    /// What was cut off them in all, in ns.
    pub cut_ns: u64,
}

/// Says when each packet of a capture is due, ns after the first one. Instants never go back.
#[derive(Debug, Clone)]
pub struct Timetable {
    pace: Pace,
    gap_max_ns: u64,
    loop_gap_ns: Option<u64>,
    /// The latest stamp so far, since the clock was set; none before the first packet of a loop.
    last_stamp: Option<i64>,
    /// The latest stamp before the clock was set back: whoever is beyond it again has not waited for all that lies between.
    peak: Option<i64>,
    /// Where the first packet of all that was to be sent stands in the file's own times: what was left out before it costs
    /// no time.
    first_ns: Option<u64>,
    /// Of the file's own times: ns since the first packet of all, before they are scaled.
    at_ns: u64,
    /// Where this loop began.
    loop_begun_ns: u64,
    /// Packets of this loop.
    packets: u64,
    /// Units that are due before the next packet.
    units: u64,
    summary: TimesSummary,
}

/// The gap between two loops of a file that has none of its own: of a single packet.
const LONELY_GAP_NS: u64 = 1_000_000_000;

impl Timetable {
    /// At `rate`, a share of it meaning one of `link_bps`. Gaps of the file longer than `gap_max_ns` are cut to that. From
    /// the last packet of a loop to the first of the next is `loop_gap_ns`, or the mean gap of the file.
    ///
    /// # Errors
    /// A share of a link whose speed is not known.
    pub fn new(
        rate: ReplayRate,
        link_bps: Option<f64>,
        gap_max_ns: Option<u64>,
        loop_gap_ns: Option<u64>,
    ) -> Result<Self, crate::units::RateError> {
        // On a clock of nanoseconds.
        let pacer = |units_per_s| Pacer::new(Rate::Pps(units_per_s), Ticks(0), 1e9);
        let bits = |bps, bytes_more| Pace::Units {
            pacer: pacer(bps),
            bytes_more: Some(bytes_more),
        };
        let layer_1 = LAYER1_OVERHEAD_BYTES as u64;
        let pace = match rate {
            ReplayRate::Times(times) => Pace::Times(times),
            ReplayRate::Rate(RateSpec::Max) => Pace::Max,
            ReplayRate::Rate(RateSpec::Pps(pps)) => Pace::Units {
                pacer: pacer(pps),
                bytes_more: None,
            },
            ReplayRate::Rate(RateSpec::BpsL1(bps)) => bits(bps, layer_1),
            ReplayRate::Rate(RateSpec::BpsL2(bps)) => bits(bps, 0),
            ReplayRate::Rate(share @ RateSpec::Percent(percent)) => {
                // Only asked whether the speed is known.
                share.resolve(1.0, link_bps)?;
                bits(link_bps.unwrap_or_default() * percent / 100.0, layer_1)
            }
        };
        Ok(Self {
            pace,
            gap_max_ns: gap_max_ns.unwrap_or(u64::MAX),
            loop_gap_ns,
            last_stamp: None,
            peak: None,
            first_ns: None,
            at_ns: 0,
            loop_begun_ns: 0,
            packets: 0,
            units: 0,
            summary: TimesSummary::default(),
        })
    }

    /// Whether there are instants at all.
    pub fn is_paced(&self) -> bool {
        !matches!(self.pace, Pace::Max)
    }

    /// The next packet of the file has this stamp, ns; it need not be sent.
    pub fn pass(&mut self, stamp: Option<i64>) {
        if self.packets == 0 {
            self.loop_begun_ns = self.at_ns;
        }
        self.packets += 1;
        match (stamp, self.last_stamp) {
            (Some(stamp), Some(last)) => {
                let gap = stamp.abs_diff(last);
                if stamp < last {
                    self.summary.backwards += 1;
                    if gap <= DISORDER_MAX_NS {
                        return;
                    }
                    self.peak = self.peak.max(Some(last));
                } else {
                    let beyond = self.peak.take_if(|peak| *peak <= stamp);
                    let gap = beyond.map_or(gap, |peak| gap.min(stamp.abs_diff(peak)));
                    let kept = gap.min(self.gap_max_ns);
                    self.summary.cut += u64::from(gap > kept);
                    self.summary.cut_ns = self.summary.cut_ns.saturating_add(gap - kept);
                    self.at_ns = self.at_ns.saturating_add(kept);
                }
            }
            (Some(_), None) => {}
            (None, _) => self.summary.untimed += 1,
        }
        self.last_stamp = stamp.or(self.last_stamp);
    }

    /// When the packet that was passed last is due if it is sent, with so many bytes (without FCS), ns after the first.
    pub fn due_ns(&mut self, bytes: usize) -> u64 {
        match &self.pace {
            Pace::Max => 0,
            Pace::Times(times) => {
                let at_ns = self.at_ns - *self.first_ns.get_or_insert(self.at_ns);
                #[allow(
                    clippy::float_cmp,
                    reason = "as it was given: whole nanoseconds stay what they are"
                )]
                if *times == 1.0 {
                    at_ns
                } else {
                    (at_ns as f64 / times) as u64
                }
            }
            Pace::Units { pacer, bytes_more } => {
                let due = pacer.instant(self.units).0;
                let units = bytes_more.map_or(1, |more| (frame_on_wire(bytes as u64) + more) * 8);
                self.units = self.units.saturating_add(units);
                due
            }
        }
    }

    /// The file begins again.
    pub fn begin_again(&mut self) {
        let mean = match self.packets {
            0 | 1 => LONELY_GAP_NS,
            packets => (self.at_ns - self.loop_begun_ns) / (packets - 1),
        };
        self.at_ns = self.at_ns.saturating_add(self.loop_gap_ns.unwrap_or(mean));
        (self.last_stamp, self.peak, self.packets) = (None, None, 0);
    }

    /// What could not be taken as it is.
    pub fn summary(&self) -> TimesSummary {
        self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timetable(rate: &str, gap_max_ns: Option<u64>) -> Timetable {
        Timetable::new(rate.parse().unwrap(), Some(10e9), gap_max_ns, None).unwrap()
    }

    fn due(table: &mut Timetable, stamps: &[i64]) -> Vec<u64> {
        let due = |stamp: &i64| {
            table.pass(Some(*stamp));
            table.due_ns(60)
        };
        stamps.iter().map(due).collect()
    }

    #[test]
    fn its_own_times_are_kept_scaled_and_cut() {
        let stamps = [1_000, 1_300, 1_300, 9_300];
        assert_eq!(
            due(&mut timetable("original", None), &stamps),
            [0, 300, 300, 8300]
        );
        assert_eq!(due(&mut timetable("x2", None), &stamps), [0, 150, 150, 4150]);
        assert_eq!(due(&mut timetable("x0.5", None), &stamps), [0, 600, 600, 16_600]);
        let mut cut = timetable("original", Some(1_000));
        assert_eq!(due(&mut cut, &stamps), [0, 300, 300, 1300]);
        assert_eq!((cut.summary().cut, cut.summary().cut_ns), (1, 7000));
    }

    #[test]
    fn a_clock_that_stepped_back_costs_no_time_and_is_counted() {
        let mut table = timetable("original", None);
        let back = i64::try_from(DISORDER_MAX_NS).unwrap() + 1;
        let stamps = [back, back + 100, 99, 199];
        assert_eq!(due(&mut table, &stamps), [0, 100, 100, 200]);
        table.pass(None);
        assert_eq!(table.due_ns(60), 200);
        assert_eq!((table.summary().backwards, table.summary().untimed), (1, 1));
    }

    #[test]
    fn a_stamp_that_is_wrong_costs_no_time() {
        let now = 1_700_000_000_000_000_000;
        let stamps = [now, now + 10, 0, now + 30, now + 40];
        assert_eq!(
            due(&mut timetable("original", None), &stamps),
            [0, 10, 10, 30, 40]
        );
    }

    #[test]
    fn what_is_left_out_before_the_first_packet_costs_no_time() {
        for (rate, expected) in [("original", [0, 100]), ("x2", [0, 50])] {
            let mut table = timetable(rate, None);
            table.pass(Some(1_000));
            assert_eq!(due(&mut table, &[8_000, 8_100]), expected);
        }
    }

    #[test]
    fn packets_out_of_order_do_not_make_it_longer() {
        let mut table = timetable("original", None);
        assert_eq!(due(&mut table, &[10, 9, 12, 11, 14]), [0, 0, 2, 2, 4]);
        assert_eq!(table.summary().backwards, 2);
    }

    #[test]
    fn a_loop_follows_after_the_mean_gap() {
        let mut table = timetable("original", None);
        assert_eq!(due(&mut table, &[1_000, 1_100, 1_400]), [0, 100, 400]);
        table.begin_again();
        assert_eq!(due(&mut table, &[1_000, 1_100, 1_400]), [600, 700, 1000]);
        let mut lonely = timetable("original", None);
        assert_eq!(due(&mut lonely, &[5]), [0]);
        lonely.begin_again();
        assert_eq!(due(&mut lonely, &[5]), [LONELY_GAP_NS]);
    }

    #[test]
    fn a_rate_counts_packets_or_bits() {
        assert_eq!(due(&mut timetable("1Mpps", None), &[9, 8, 7]), [0, 1000, 2000]);
        // 64 bytes and 20 on layer 1 are 67.2 ns of 10 Gbit/s.
        assert_eq!(due(&mut timetable("10Gbps", None), &[0; 4]), [0, 67, 134, 201]);
        assert_eq!(due(&mut timetable("100%", None), &[0; 4]), [0, 67, 134, 201]);
        assert_eq!(due(&mut timetable("512bpsl2", None), &[0; 2]), [0, 1_000_000_000]);
        assert_eq!(due(&mut timetable("max", None), &[0, 5]), [0, 0]);
    }

    #[test]
    fn rates_are_read_as_they_are_shown() {
        for text in ["original", "x2", "x0.5", "1Mpps", "10Gbps", "max", "50%"] {
            assert_eq!(text.parse::<ReplayRate>().unwrap().to_string(), text);
        }
        for wrong in ["", "x", "x0", "x-1", "xNaN", "xinf", "2", "fast", "0pps"] {
            assert!(wrong.parse::<ReplayRate>().is_err(), "{wrong}");
        }
        let error = "1000Tpps".parse::<ReplayRate>().unwrap_err().to_string();
        assert!(
            error.contains("\"1000Tpps\"") && error.ends_with("to 1Tpps"),
            "{error}"
        );
        let share = Timetable::new("50%".parse().unwrap(), None, None, None);
        assert!(share.is_err());
    }

    proptest! {
        #[test]
        fn instants_never_go_back_whatever_the_stamps(
            loops in prop::collection::vec(prop::collection::vec(any::<Option<i64>>(), 1..20), 1..4),
            rate in prop::sample::select(vec!["original", "x3", "x0.3", "1Mpps", "3Gbps", "max"]),
            gap_max in any::<Option<u64>>(),
        ) {
            let mut table = timetable(rate, gap_max);
            let mut last = 0;
            for stamps in loops {
                for stamp in stamps {
                    table.pass(stamp);
                    let due = table.due_ns(100);
                    prop_assert!(due >= last);
                    last = due;
                }
                table.begin_again();
            }
        }
    }
}
