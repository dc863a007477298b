//! Which faults are wanted, as users write them.

use measure::fields::given_twice;
use serde::{Deserialize, Serialize};

use super::RateLimit;

/// Which share of the probes suffers what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultSpec {
    /// What gets through at all; `None`: everything.
    pub limit: Option<RateLimit>,
    /// Share dropped, 0 to 1.
    pub drop: f64,
    /// Share sent twice.
    pub duplicate: f64,
    /// Share sent only after a later probe of the same lane.
    pub reorder: f64,
    /// Share with one bit flipped in UDP header or payload.
    pub corrupt: f64,
    /// Share sent later by `delay_ns`.
    pub delay: f64,
    /// How much later, ns.
    pub delay_ns: u64,
}

/// Why a fault specification cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// No such fault.
    #[error(
        "there is no fault `{0}`; use drop, duplicate, reorder, corrupt, delay or limit, e.g. drop=0.1%,delay=1%:5ms,limit=10kpps"
    )]
    Name(String),
    /// An item is not `name=share`.
    #[error(
        "fault `{0}` is not NAME=VALUE; use drop, duplicate, reorder, corrupt, delay or limit, e.g. drop=0.1%,delay=1%:5ms,limit=10kpps"
    )]
    Item(String),
    /// Two shares for one fault.
    #[error("fault `{0}` is given twice; give each once")]
    Twice(String),
    /// A share is not a number in 0..=100 %.
    #[error("fault share `{0}` is not between 0 and 100%; write it as 0.1% or 0.001")]
    Share(String),
    /// Not a duration.
    #[error("fault delay `{0}` is not a duration; write delay=1%:5ms")]
    Delay(String),
    /// Not a rate of packets, or no burst.
    #[error(
        "fault limit `{0}` is not a rate of packets; write limit=10kpps, or limit=10kpps:200 with a burst"
    )]
    Limit(String),
    /// The shares add up to more than one.
    #[error(
        "the fault shares add up to {0:.1}%; a packet suffers one fault at most, so keep the sum at or below 100%"
    )]
    Sum(f64),
}

impl std::str::FromStr for FaultSpec {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut spec = Self {
            delay_ns: 1_000_000,
            ..Self::default()
        };
        if let Some(name) = given_twice(text.split(',')) {
            return Err(FaultError::Twice(name.into()));
        }
        for item in text.split(',') {
            let (name, value) = item
                .split_once('=')
                .ok_or_else(|| FaultError::Item(item.into()))?;
            match name {
                "drop" => spec.drop = share(value)?,
                "duplicate" => spec.duplicate = share(value)?,
                "reorder" => spec.reorder = share(value)?,
                "corrupt" => spec.corrupt = share(value)?,
                "delay" => {
                    let (part, time) = value.split_once(':').unwrap_or((value, "1ms"));
                    spec.delay = share(part)?;
                    let time =
                        measure::units::parse_duration(time).map_err(|_| FaultError::Delay(value.into()))?;
                    spec.delay_ns = time.as_nanos() as u64;
                }
                "limit" => {
                    let limit = RateLimit::parse(value);
                    spec.limit = Some(limit.ok_or_else(|| FaultError::Limit(value.into()))?);
                }
                _ => return Err(FaultError::Name(name.into())),
            }
        }
        let sum = spec.drop + spec.duplicate + spec.reorder + spec.corrupt + spec.delay;
        if sum > 1.0 + 1e-9 {
            Err(FaultError::Sum(sum * 100.0))
        } else {
            Ok(spec)
        }
    }
}

fn share(text: &str) -> Result<f64, FaultError> {
    let (number, scale) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |number| (number, 0.01));
    let value = number
        .parse::<f64>()
        .map_err(|_| FaultError::Share(text.into()))?
        * scale;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(FaultError::Share(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_given_once_and_none_is_empty() {
        let error = |text: &str| text.parse::<FaultSpec>().map_err(|error| error.to_string());
        let refused = |text, words| error(text).is_err_and(|error| error.contains(words));
        assert!(refused("drop=0.5,delay=1%:2ms,drop=0.1", "`drop` is given twice"));
        assert!(refused("limit=1kpps,limit=2kpps", "`limit` is given twice"));
        assert!(refused("", "not NAME=VALUE") && refused("drop=1%,", "not NAME=VALUE"));
        assert!(error("drop=0.5,duplicate=0.1").is_ok());
    }
}
