//! The columns of a file of intervals, and one row of it: which figures it has, and which of them cannot be.

use crate::csv::split;
use crate::sane::NUMBER_MAX;

/// Who wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `dropless send`: loss is that of the packets sent in the interval.
    Send,
    /// `dropless reflect`: frames received, returned, dropped of these, missed before, and taken by a port that did not send them.
    Reflect,
    /// `dropless capture`: frames received, captured, dropped of these, and missed before.
    Capture,
    /// `dropless forward`: frames received, handed on, and dropped; those that a rule denied; and missed or not sent as above.
    Forward,
    /// The older dpdk-project: five columns, of which `drop_rate` is a share (1 - rx/tx).
    Older,
}

impl Origin {
    /// What became of packets that are counted as they leave.
    pub fn out(self) -> &'static str {
        match self {
            Self::Send | Self::Older => "sent",
            Self::Reflect => "returned",
            Self::Capture => "captured",
            Self::Forward => "forwarded",
        }
    }

    /// Whether its rows are of what arrived, and of what was dropped of that.
    pub fn is_of_arrivals(self) -> bool {
        matches!(self, Self::Reflect | Self::Capture | Self::Forward)
    }
}

/// What the rows of `reflect` and `forward` once did not say of what was lost: that is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// Neither what was missed before it was received, nor what was not sent.
    Missed,
    /// What ports took and did not send.
    TxLost,
}

impl Untold {
    /// It in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Missed => "what its ports missed or did not send",
            Self::TxLost => "what its ports took and did not send",
        }
    }
}

/// The columns that count here, in the order of [`Row::values`].
pub(super) const NAMES: [&str; 17] = [
    "time",
    "tx_packets",
    "rx_packets",
    "drop_rate",
    "avg_latency",
    "duration",
    "lost",
    "unsent",
    "latency_min_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_max_ns",
    "dropped",
    "missed",
    "tx_lost",
];
const OLDER: [&str; 5] = ["time", "tx_packets", "rx_packets", "drop_rate", "avg_latency"];
const CAPTURE: [&str; 4] = ["time", "rx_packets", "captured", "dropped"];
const REFLECT: [&str; 4] = ["time", "rx_packets", "tx_packets", "dropped"];
const FORWARD: [&str; 5] = ["time", "rx_packets", "tx_packets", "dropped", "denied"];

/// Which field of a line is what.
pub(super) struct Columns {
    pub(super) origin: Origin,
    /// For each field its place in [`NAMES`], or nothing where it does not matter.
    places: Vec<Option<usize>>,
    names: Vec<String>,
}

/// The values of one line by [`NAMES`]; those that are empty or NaN are none.
pub(super) struct Row {
    pub(super) values: [Option<f64>; NAMES.len()],
}

impl Row {
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        NAMES
            .iter()
            .position(|known| *known == name)
            .and_then(|place| self.values[place])
    }

    pub(super) fn ask(&self, name: &str) -> Result<f64, String> {
        self.get(name).ok_or_else(|| format!("{name} is empty"))
    }
}

impl Columns {
    pub(super) fn of(header: &str) -> Result<Self, String> {
        let names: Vec<String> = split(header).iter().map(|name| name.trim().to_owned()).collect();
        let has = |wanted: &[&str]| wanted.iter().all(|name| names.iter().any(|found| found == name));
        let origin = if has(&OLDER) && has(&["lost", "duration"]) {
            Origin::Send
        } else if has(&OLDER) {
            Origin::Older
        } else if has(&FORWARD) {
            Origin::Forward
        } else if has(&REFLECT) {
            Origin::Reflect
        } else if has(&CAPTURE) {
            Origin::Capture
        } else {
            let shown: String = header.chars().take(60).collect();
            return Err(format!(
                "its first line is `{shown}`, and that of intervals begins with {}",
                OLDER.join(",")
            ));
        };
        // What a capture kept is what left it.
        let alias = |name: &str| if name == "captured" { "tx_packets" } else { name }.to_owned();
        let places = names
            .iter()
            .map(|name| NAMES.iter().position(|known| *known == alias(name)))
            .collect();
        Ok(Self {
            origin,
            places,
            names,
        })
    }

    /// What the rows do not say of what was lost. What is sent can be missed by nobody before.
    pub(super) fn untold(&self) -> Option<Untold> {
        let lacks = |wanted: &str| !self.names.iter().any(|name| name == wanted);
        match self.origin {
            Origin::Reflect | Origin::Forward if lacks("missed") => Some(Untold::Missed),
            Origin::Reflect | Origin::Forward if lacks("tx_lost") => Some(Untold::TxLost),
            _ => None,
        }
    }

    pub(super) fn row(&self, line: &str) -> Result<Row, String> {
        let mut values = [None; NAMES.len()];
        let mut count = 0;
        for field in line.split(',') {
            let Some(place) = self.places.get(count) else {
                count += 1;
                continue;
            };
            let name = &self.names[count];
            count += 1;
            let field = field.trim();
            let Some(place) = place else { continue };
            if field.is_empty() {
                continue;
            }
            let value: f64 = field
                .parse()
                .map_err(|_| format!("{name} is `{field}`, not a number"))?;
            // Where more came back than was sent, the older drop_rate is below 0.
            let least = if NAMES[*place] == "drop_rate" {
                -NUMBER_MAX
            } else {
                0.0
            };
            if !value.is_nan() && !(least..=NUMBER_MAX).contains(&value) {
                return Err(format!("{name} is {field}, which cannot be"));
            }
            let is_share = self.origin == Origin::Older && NAMES[*place] == "drop_rate";
            let value = if is_share { value * 100.0 } else { value };
            values[*place] = Some(value).filter(|value| !value.is_nan());
        }
        if count == self.places.len() {
            Ok(Row { values })
        } else {
            Err(format!("{count} fields under {} columns", self.places.len()))
        }
    }
}

/// What no row can say of its packets.
pub(super) fn possible(origin: Origin, row: &Row) -> Result<(), String> {
    let (sent, received) = (row.ask("tx_packets")?, row.ask("rx_packets")?);
    if let Some(percent) = row.get("drop_rate").filter(|percent| *percent > 100.0) {
        return Err(format!("drop_rate is {} %, more than 100 %", plain(percent)));
    }
    if let Some(percent) = row.get("drop_rate").filter(|percent| *percent < 0.0) {
        if received <= sent {
            return Err(format!(
                "drop_rate is {} %, and not more came back ({received}) than was sent ({sent})",
                plain(percent)
            ));
        }
    }
    match row.get("lost").filter(|lost| *lost > sent) {
        Some(lost) if origin == Origin::Send => {
            Err(format!("lost is {} of {} sent", plain(lost), plain(sent)))
        }
        _ => Ok(()),
    }
}

/// A figure in a sentence; one with hundreds of digits is written with its power of ten.
pub(super) fn plain(value: f64) -> String {
    if value == 0.0 || (1e-6..1e16).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}
