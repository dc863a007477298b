//! How latency was spread over time: for each slice of time, which share of its packets took how long.

use super::thin::{Merge, merged};

/// Slices of time at most.
pub const SLICES_MAX: usize = 400;
/// Bands of latency to a doubling.
pub const BANDS_A_DOUBLING: u32 = 4;
/// From 1 ns to 2^53 ns, above which no number is read (`NUMBER_MAX`): none lies outside.
const BANDS: usize = (53 * BANDS_A_DOUBLING) as usize;
/// The packets between two neighbouring percentiles of a row (min, p50, p90, p99, p99.9, max), in thousandths of all: these
/// add up without rounding.
const PARTS: [f64; 5] = [500.0, 400.0, 90.0, 9.0, 1.0];

/// Packets by bands of latency, in some intervals.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    start_ms: f64,
    end_ms: f64,
    received: f64,
    /// What is painted, in thousandths of a packet. Empty where nothing came back.
    packets: Vec<f32>,
    /// The same with each part in the band of its slowest packet, so that no sum from below holds more than there were.
    slowest: Vec<f64>,
}

impl Slice {
    /// The slice of one interval. Where a percentile lies there is a packet; of those between two of them nothing is known,
    /// and so half are counted with the one, half with the other.
    pub fn new(end_ms: f64, length_ms: f64, received: f64, quantiles: [Option<f64>; 6]) -> Self {
        let (mut packets, mut slowest) = (Vec::new(), Vec::new());
        if received > 0.0 && quantiles.iter().all(Option::is_some) {
            packets.resize(BANDS, 0.0);
            slowest.resize(BANDS, 0.0);
            let bands = quantiles.map(|value| band(value.unwrap_or(0.0)));
            for (part, ends) in PARTS.iter().zip(bands.windows(2)) {
                let (low, high) = (ends[0], ends[1].max(ends[0]));
                let half = (received * part / 2.0) as f32;
                packets[low] += half;
                packets[high] += half;
                slowest[high] += received * part;
            }
        }
        Self {
            start_ms: end_ms - length_ms,
            end_ms,
            received,
            packets,
            slowest,
        }
    }

    /// The upper edge in ns of the band in which `share` of the packets are reached, at the latest.
    fn within(&self, share: f64) -> Option<f64> {
        let all: f64 = self.slowest.iter().sum();
        let mut sum = 0.0;
        let reached = self.slowest.iter().position(|packets| {
            sum += packets;
            *packets > 0.0 && sum >= share * all
        });
        reached.map(|band| edge(band + 1))
    }

    /// The same of the slowest packet: few beside very many are lost in a sum.
    fn within_all(&self) -> Option<f64> {
        let slowest = self.slowest.iter().rposition(|packets| *packets > 0.0);
        slowest.map(|band| edge(band + 1))
    }
}

/// The lower edge of a band in ns.
fn edge(band: usize) -> f64 {
    (band as f64 / f64::from(BANDS_A_DOUBLING)).exp2()
}

fn band(latency_ns: f64) -> usize {
    let doublings = latency_ns.max(1.0).log2();
    ((doublings * f64::from(BANDS_A_DOUBLING)) as usize).min(BANDS - 1)
}

impl Merge for Slice {
    fn merge(&mut self, later: Self) {
        self.end_ms = later.end_ms;
        self.received += later.received;
        if self.packets.is_empty() {
            (self.packets, self.slowest) = (later.packets, later.slowest);
        } else {
            for (band, more) in self.packets.iter_mut().zip(&later.packets) {
                *band += more;
            }
            for (band, more) in self.slowest.iter_mut().zip(&later.slowest) {
                *band += more;
            }
        }
    }
}

/// Some slices of the picture in words: what its colours say of a stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Where it begins and ends, in ms.
    pub ends_ms: (f64, f64),
    /// Packets received.
    pub packets: f64,
    /// Upper edges in ns of the bands within which half, 99 % and all of them are, at the latest; nothing where none was received.
    pub within_ns: Option<[f64; 3]>,
}

/// Stretches of a picture at most.
const STRETCHES_MAX: usize = 24;

fn stretches(slices: &[Slice]) -> Vec<Stretch> {
    let each = slices.len().div_ceil(STRETCHES_MAX).max(1);
    let stretch = |slice: Slice| Stretch {
        ends_ms: (slice.start_ms, slice.end_ms),
        packets: slice.received,
        within_ns: (|| Some([slice.within(0.5)?, slice.within(0.99)?, slice.within_all()?]))(),
    };
    slices.chunks(each).filter_map(merged).map(stretch).collect()
}

/// The finished picture: levels 0 to 63, those above 0 on a logarithmic scale from one in 100,000 up to all.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Where each slice begins, and where the last one ends, in ms.
    pub edges_ms: Vec<f64>,
    /// The lower edge of the lowest band, in ns.
    pub lowest_ns: f64,
    /// Bands, from the fastest up.
    pub bands: usize,
    /// Slice after slice, in each band after band.
    pub levels: Vec<u8>,
    /// The same in few rows.
    pub stretches: Vec<Stretch>,
}

/// The highest level.
pub const LEVEL_MAX: u8 = 63;

impl Heat {
    /// The picture of `slices`, cut to the bands that hold anything; nothing where none does.
    pub fn of(slices: &[Slice]) -> Option<Self> {
        let is_used = |band: &usize| {
            slices
                .iter()
                .any(|slice| slice.packets.get(*band).is_some_and(|n| *n > 0.0))
        };
        let low = (0..BANDS).find(is_used)?;
        let high = (0..BANDS).rev().find(is_used)?;
        let mut edges_ms: Vec<f64> = slices.iter().map(|slice| slice.start_ms).collect();
        edges_ms.extend(slices.last().map(|slice| slice.end_ms));
        let mut levels = Vec::with_capacity(slices.len() * (high - low + 1));
        for slice in slices {
            let all: f32 = slice.packets.iter().sum();
            levels.extend((low..=high).map(|band| slice.packets.get(band).map_or(0, |n| level(*n / all))));
        }
        Some(Self {
            edges_ms,
            lowest_ns: edge(low),
            bands: high - low + 1,
            levels,
            stretches: stretches(slices),
        })
    }
}

/// Whatever is there is at least level 1: one packet in a million is seen.
fn level(share: f32) -> u8 {
    if share > 0.0 {
        let decades = share.log10().max(-5.0) + 5.0;
        1 + (decades / 5.0 * f32::from(LEVEL_MAX - 1)).round() as u8
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sane::NUMBER_MAX;

    #[test]
    fn one_slow_packet_of_many_is_seen() {
        let slice = |max: f64| {
            Slice::new(
                1.0,
                1.0,
                1e6,
                [1000.0, 1000.0, 1000.0, 1000.0, 1000.0, max].map(Some),
            )
        };
        let mut all = slice(1000.0);
        (0..100_000).for_each(|_| all.merge(slice(1000.0)));
        all.merge(slice(8e9));
        let heat = Heat::of(&[all]).unwrap();
        assert_eq!(heat.levels.first(), Some(&LEVEL_MAX));
        assert_eq!(heat.levels.last(), Some(&1));
        assert_eq!(heat.levels.len(), heat.bands);
    }

    /// The table beside the picture says what the picture shows: no packet fewer, and the slowest among them.
    #[test]
    fn stretches_hold_what_the_picture_holds() {
        let slice = |ms: u32, max: f64| {
            Slice::new(
                f64::from(ms),
                1.0,
                1000.0,
                [1000.0, 1000.0, 1000.0, 1000.0, 1000.0, max].map(Some),
            )
        };
        let mut slices: Vec<Slice> = (1..=100)
            .map(|ms| slice(ms, if ms == 50 { 8e6 } else { 1000.0 }))
            .collect();
        slices.push(Slice::new(101.0, 1.0, 0.0, [None; 6]));
        let heat = Heat::of(&slices).unwrap();
        assert!((2..=STRETCHES_MAX).contains(&heat.stretches.len()));
        let packets: f64 = heat.stretches.iter().map(|stretch| stretch.packets).sum();
        assert_eq!(packets as u64, 100_000);
        let slow: Vec<&Stretch> = heat
            .stretches
            .iter()
            .filter(|stretch| stretch.within_ns.is_some_and(|within| within[2] > 8e6))
            .collect();
        assert_eq!(slow.len(), 1);
        assert!(slow[0].ends_ms.0 < 50.0 && slow[0].ends_ms.1 >= 50.0);
        let [half, most, all] = slow[0].within_ns.unwrap();
        assert!((1000.0..1200.0).contains(&half) && (half..1200.0).contains(&most) && all < 8e6 * 1.2);
        assert_eq!(heat.stretches.last().unwrap().packets as u64 % 1000, 0);
    }

    /// Where most of the packets between two percentiles are slow, or few slow ones follow very many fast ones, the table
    /// tells no lower latency than there was.
    #[test]
    fn stretches_are_no_faster_than_their_packets() {
        let slice = |ms: u32, received: f64, us: [f64; 6]| {
            Slice::new(f64::from(ms), 1.0, received, us.map(|us| Some(us * 1e3)))
        };
        let mixed: Vec<Slice> = (1..=72)
            .map(|ms| {
                let p50 = if ms % 3 == 0 { 100.0 } else { 1.0 };
                slice(ms, 1000.0, [1.0, p50, 100.0, 100.0, 100.0, 100.0])
            })
            .collect();
        let stretches = Heat::of(&mixed).unwrap().stretches;
        assert_eq!(stretches.len(), 24);
        assert!(
            stretches
                .iter()
                .all(|stretch| stretch.within_ns.unwrap()[0] >= 100e3)
        );

        let mut fast: Vec<Slice> = (1..=72).map(|ms| slice(ms, 1e7, [1.0; 6])).collect();
        fast[70] = slice(71, 100.0, [1.0, 1.0, 1.0, 1.0, 1.0, 1.9e6]);
        let stretches = Heat::of(&fast).unwrap().stretches;
        let [half, most, all] = stretches.last().unwrap().within_ns.unwrap();
        assert!(
            half < 1.2e3 && most < 1.2e3 && all >= 1.9e9,
            "{half} {most} {all}"
        );

        let one = slice(1, 7.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        let [half, most, all] = Heat::of(&[one]).unwrap().stretches[0].within_ns.unwrap();
        assert!((2e3..2.4e3).contains(&half) && (8e3..9.6e3).contains(&most) && (32e3..39e3).contains(&all));
    }

    /// No cell says that a packet was faster than it was, nor slower than its band.
    #[test]
    fn every_latency_has_its_band() {
        for ns in [1.0, 20.0, 68e9, 138e9, 4e12, NUMBER_MAX / 1.01] {
            let heat = Heat::of(&[Slice::new(1.0, 1.0, 7.0, [Some(ns); 6])]).unwrap();
            let above = edge(1);
            assert_eq!(heat.bands, 1);
            assert!(
                heat.lowest_ns <= ns && ns < heat.lowest_ns * above,
                "{ns}: {heat:?}"
            );
            assert!(
                heat.stretches[0]
                    .within_ns
                    .unwrap()
                    .iter()
                    .all(|within| *within > ns)
            );
        }
    }

    /// Between the most of the packets and the slowest one nobody knows of any: nothing is painted there.
    #[test]
    fn only_where_packets_are_known_to_be_is_painted() {
        let quantiles = [1000.0, 1100.0, 1200.0, 1300.0, 1400.0, 1e9].map(Some);
        let heat = Heat::of(&[Slice::new(1.0, 1.0, 1e6, quantiles)]).unwrap();
        let painted: Vec<usize> = (0..heat.bands).filter(|band| heat.levels[*band] > 0).collect();
        let [first, .., last] = painted[..] else {
            panic!("{painted:?}")
        };
        assert_eq!((first, last), (0, heat.bands - 1));
        assert!(
            painted.len() <= 4 && heat.bands > 70,
            "{painted:?} of {}",
            heat.bands
        );
    }

    #[test]
    fn nothing_received_is_no_picture() {
        assert!(Heat::of(&[Slice::new(1.0, 1.0, 0.0, [None; 6])]).is_none());
        assert!(Heat::of(&[]).is_none());
    }
}
