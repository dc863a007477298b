//! `hashlimit`: a rate for each source or destination.

use std::collections::HashMap;
use std::num::NonZeroU64;

use rules::{End, Layer, RATE_MAX, Rate};

use super::super::common::{lens, whole_per_second};
use super::super::conditions::{Read, unfit};
use super::Scope;

/// `hashlimit`, word by word.
#[derive(Default)]
pub struct Limit {
    above: Option<NonZeroU64>,
    burst: Option<NonZeroU64>,
    of: Option<End>,
    /// Both masks may be written; the other end's does nothing.
    source_len: Option<u8>,
    destination_len: Option<u8>,
    /// The rule has one.
    pub is_asked: bool,
}

impl Limit {
    /// Takes a word of it.
    pub fn take(&mut self, word: &str, value: &str, names: &HashMap<String, u32>) -> Read<()> {
        self.is_asked = true;
        let number = value.parse::<u64>().ok().and_then(NonZeroU64::new);
        match word {
            "--hashlimit-above" => self.above = Some(per_second(value)?),
            "--hashlimit-burst" if number.is_some_and(|burst| burst.get() <= RATE_MAX) => {
                self.burst = number;
            }
            "--hashlimit-mode" => {
                self.of = Some(match value {
                    "srcip" => End::Source,
                    "dstip" => End::Destination,
                    _ => return unfit("a rate for each of something that our language has not"),
                });
            }
            "--hashlimit-srcmask" | "--hashlimit-dstmask" => {
                let Ok(len) = value.parse() else {
                    return unfit(format!("the mask {value}"));
                };
                let place = if word == "--hashlimit-srcmask" {
                    &mut self.source_len
                } else {
                    &mut self.destination_len
                };
                *place = Some(len);
            }
            "--hashlimit-name" if names.get(value) == Some(&1) => {}
            "--hashlimit-name" => return unfit("a rate that several rules share"),
            // How much is remembered, and when what has not been seen is forgotten.
            "--hashlimit-htable-size" | "--hashlimit-htable-max" | "--hashlimit-htable-gcinterval" => {}
            _ => return unfit(format!("`{word} {value}`")),
        }
        Ok(())
    }

    /// The rate that its words describe.
    pub fn finish(&self, scope: &Scope<'_>) -> Read<Rate> {
        let (Some(per_second), Some(of)) = (self.above, self.of) else {
            return unfit("a rate that is not `above`, for each source or destination");
        };
        let whole = if scope.layer == Layer::V6 { 128 } else { 32 };
        let len = match of {
            End::Source => self.source_len,
            End::Destination => self.destination_len,
        };
        let len = len.unwrap_or(whole);
        if len == 0 {
            return unfit("a rate for all addresses together");
        }
        if len > whole {
            return unfit("a mask that is too long");
        }
        let (v4_len, v6_len) = lens(scope.layer, len);
        // The extension's own burst, where none is written (iptables-extensions(8)).
        let burst = self.burst.or(NonZeroU64::new(5)).unwrap_or(NonZeroU64::MIN);
        Ok(Rate {
            per_second,
            burst,
            of,
            v4_len,
            v6_len,
        })
    }
}

/// `100/sec`, or of longer times what makes a whole number.
fn per_second(text: &str) -> Read<NonZeroU64> {
    let rate = text.split_once('/').and_then(|(number, unit)| {
        let seconds = match unit {
            "sec" | "second" | "s" => 1,
            "min" | "minute" => 60,
            "hour" => 3600,
            "day" => 86400,
            _ => return None,
        };
        whole_per_second(number.parse().ok()?, seconds)
    });
    match rate {
        Some(rate) => Ok(rate),
        None => unfit("a rate that is no whole number of packets a second"),
    }
}
