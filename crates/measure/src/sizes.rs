//! The mix of frame sizes of a stream.

use std::fmt;
use std::str::FromStr;

use crate::schedule::gcd;
use crate::units::UnitError;

/// The largest frame, with FCS, that is sent, or that sockets are made for: a jumbo frame. Ports may allow less.
pub const FRAME_SIZE_MAX: usize = 9618;

/// Frame sizes with FCS, and how often each is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeMix {
    /// Every listed size equally often (`64` or `64,512,1518`).
    List(Vec<usize>),
    /// 64 (or more, where the headers need it), 594 and 1518 bytes, 7:4:1.
    Imix(usize),
    /// Every size from the first to the second, both included, equally often (`64-1518`).
    Range(usize, usize),
}

impl SizeMix {
    /// The sizes and the weight of each, in the order in which they are sent where their weights are equal. That of a range
    /// begins with the smallest and mixes them: any stretch of it has about the mean.
    pub fn sizes(&self) -> Vec<(usize, u32)> {
        match self {
            SizeMix::List(sizes) => sizes.iter().map(|&size| (size, 1)).collect(),
            SizeMix::Imix(small) => vec![(*small, 7), (594, 4), (1518, 1)],
            SizeMix::Range(low, high) => mixed(high - low + 1).map(|further| (low + further, 1)).collect(),
        }
    }

    /// The mean frame size with FCS, in bytes.
    pub fn mean(&self) -> f64 {
        let sizes = self.sizes();
        let weights: f64 = sizes.iter().map(|&(_, weight)| f64::from(weight)).sum();
        let weighted = sizes
            .iter()
            .map(|&(size, weight)| size as f64 * f64::from(weight));
        weighted.sum::<f64>() / weights
    }

    /// The largest frame size with FCS, in bytes.
    pub fn largest(&self) -> usize {
        self.sizes().iter().map(|&(size, _)| size).max().unwrap_or(0)
    }
}

/// Each number below `count` once, from 0 on by about the golden section round and round: what spreads the numbers of every
/// stretch best.
fn mixed(count: usize) -> impl Iterator<Item = usize> {
    let section = (count as f64 * 0.618_034).round() as usize;
    let step = (section..=count)
        .find(|step| gcd(*step as u64, count as u64) == 1)
        .unwrap_or(1);
    (0..count).map(move |turn| turn * step % count)
}

/// Reads one size in bytes.
fn size(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.strip_suffix('B').unwrap_or(text);
    let size = digits.parse().ok();
    size.filter(|size| (1..=FRAME_SIZE_MAX).contains(size))
}

impl FromStr for SizeMix {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<SizeMix, UnitError> {
        let wanted = "64, 64,512,1518, 64-1518 or imix (bytes with FCS, up to 9618)";
        let wrong = || UnitError::new("frame size", text, wanted);
        if text.trim().eq_ignore_ascii_case("imix") {
            return Ok(SizeMix::Imix(64));
        }
        if let Some((low, high)) = text.split_once('-') {
            let (low, high) = (size(low).ok_or_else(wrong)?, size(high).ok_or_else(wrong)?);
            return (low <= high)
                .then_some(SizeMix::Range(low, high))
                .ok_or_else(wrong);
        }
        let sizes: Option<Vec<usize>> = text.split(',').map(size).collect();
        sizes.map(SizeMix::List).ok_or_else(wrong)
    }
}

impl fmt::Display for SizeMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeMix::Imix(_) => write!(f, "imix"),
            SizeMix::Range(low, high) => write!(f, "{low}-{high}"),
            SizeMix::List(sizes) => {
                let texts: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                write!(f, "{}", texts.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_parse_and_print() {
        for text in ["64", "64,512,1518", "imix", "64-1518"] {
            let mix: SizeMix = text.parse().unwrap();
            assert_eq!(mix.to_string(), text);
        }
        let error = "9619".parse::<SizeMix>().unwrap_err().to_string();
        assert!(error.contains(&format!("up to {FRAME_SIZE_MAX})")), "{error}");
    }

    #[test]
    fn wrong_mixes_are_refused() {
        for text in [
            "", "0", "64,", "1518-64", "-", "64-", "abc", "70000", "64;128", "-64",
        ] {
            let error = text.parse::<SizeMix>().unwrap_err().to_string();
            assert!(error.contains("imix"), "{error}");
        }
    }

    #[test]
    fn imix_has_its_mean() {
        assert!((SizeMix::Imix(64).mean() - (7.0 * 64.0 + 4.0 * 594.0 + 1518.0) / 12.0).abs() < 1e-9);
        assert_eq!(SizeMix::Range(64, 66).sizes(), vec![(64, 1), (66, 1), (65, 1)]);
        assert_eq!(SizeMix::Imix(64).largest(), 1518);
    }

    /// Runs that end before every size was sent have the rate in bits that was asked for all the same.
    #[test]
    fn any_stretch_of_a_range_has_about_its_mean() {
        for (low, high) in [
            (64, 64),
            (64, 65),
            (64, 127),
            (64, 1518),
            (68, 9618),
            (1000, 1600),
        ] {
            let mix = SizeMix::Range(low, high);
            let mut sizes: Vec<usize> = mix.sizes().iter().map(|&(size, _)| size).collect();
            let cycle: Vec<usize> = sizes.iter().copied().cycle().take(2 * sizes.len()).collect();
            for stretch in [40, 310].into_iter().filter(|&stretch| stretch < sizes.len()) {
                for sent in cycle.windows(stretch).step_by(37) {
                    let mean = sent.iter().sum::<usize>() as f64 / stretch as f64;
                    let off = (mean - mix.mean()).abs() / (high - low) as f64;
                    assert!(off < 2.0 / stretch as f64, "{mix}: {mean} in {stretch}");
                }
            }
            assert_eq!(sizes[0], low);
            sizes.sort_unstable();
            assert!(sizes.into_iter().eq(low..=high), "{mix}: each once");
        }
    }
}
