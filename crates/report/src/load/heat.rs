//! How latency was spread over time: for each slice of time, which share of its packets took how long.

use super::thin::Merge;

/// Slices of time at most.
pub const SLICES_MAX: usize = 400;
/// Bands of latency to a doubling.
pub const BANDS_A_DOUBLING: u32 = 4;
/// The lowest band begins at 2 to this power, in ns.
const LOWEST: u32 = 5;
/// Up to 2^37 ns, more than two minutes.
const BANDS: usize = ((37 - LOWEST) * BANDS_A_DOUBLING) as usize;
/// The part of the packets between two neighbouring percentiles of a row: min, p50, p90, p99, p99.9, max.
const PARTS: [f64; 5] = [0.5, 0.4, 0.09, 0.009, 0.001];

/// Packets by bands of latency, in some intervals.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    start_ms: f64,
    end_ms: f64,
    /// Empty where nothing came back.
    packets: Vec<f32>,
}

impl Slice {
    /// The slice of one interval. Between two percentiles packets are taken to be spread evenly over the bands.
    pub fn new(end_ms: f64, length_ms: f64, received: f64, quantiles: [Option<f64>; 6]) -> Self {
        let mut packets = Vec::new();
        if received > 0.0 && quantiles.iter().all(Option::is_some) {
            packets.resize(BANDS, 0.0);
            let bands = quantiles.map(|value| band(value.unwrap_or(0.0)));
            for (part, ends) in PARTS.iter().zip(bands.windows(2)) {
                let (low, high) = (ends[0], ends[1].max(ends[0]));
                let each = (received * part / (high - low + 1) as f64) as f32;
                packets[low..=high].iter_mut().for_each(|band| *band += each);
            }
        }
        Self {
            start_ms: end_ms - length_ms,
            end_ms,
            packets,
        }
    }
}

fn band(latency_ns: f64) -> usize {
    let doublings = latency_ns.max(1.0).log2() - f64::from(LOWEST);
    ((doublings * f64::from(BANDS_A_DOUBLING)).max(0.0) as usize).min(BANDS - 1)
}

impl Merge for Slice {
    fn merge(&mut self, later: Self) {
        self.end_ms = later.end_ms;
        if self.packets.is_empty() {
            self.packets = later.packets;
        } else {
            for (band, more) in self.packets.iter_mut().zip(&later.packets) {
                *band += more;
            }
        }
    }
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
        let lowest_ns = (f64::from(LOWEST) + low as f64 / f64::from(BANDS_A_DOUBLING)).exp2();
        Some(Self {
            edges_ms,
            lowest_ns,
            bands: high - low + 1,
            levels,
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

    #[test]
    fn nothing_received_is_no_picture() {
        assert!(Heat::of(&[Slice::new(1.0, 1.0, 0.0, [None; 6])]).is_none());
        assert!(Heat::of(&[]).is_none());
    }
}
