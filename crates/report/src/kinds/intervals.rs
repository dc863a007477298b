//! A file of intervals alone: of the older dpdk-project, or of a run that did not end. No run directory, no verdict.

use maud::Markup;
use serde::{Serialize, Serializer};

use super::{capture, forward, reflect, send};
use crate::compare::metrics;
use crate::kind::{Entry, Kind, Standing, Tile, Verdict};
use crate::load::series::{Origin, Point, Untold};
use crate::load::{Channel, Series};
use crate::number::{count, counted, loss, pps, share, time};
use crate::sheet::Sheet;
use crate::style::Style;

/// What all intervals of a file come to.
#[derive(Clone, Debug)]
pub struct Intervals {
    origin: Origin,
    whole: Point,
    sent: f64,
    received: f64,
    /// Nothing where the rows do not tell.
    lost: Option<f64>,
    /// What of that came, and was not received.
    missed: f64,
    /// What of the losses nobody knows.
    untold: Option<Untold>,
}

impl Intervals {
    /// What was lost is a part of these: of what arrived, or else of what was sent.
    fn due(&self) -> f64 {
        if self.origin.is_of_arrivals() {
            // Of frames of the host's own more may be lost than came.
            (self.received + self.missed).max(self.lost.unwrap_or(0.0))
        } else {
            self.sent
        }
    }

    /// Whether nothing was awaited: nothing came back, and none of it is lost (`--tx-only`).
    fn is_one_way(&self) -> bool {
        self.origin == Origin::Send && self.sent > 0.0 && self.received + self.lost.unwrap_or(0.0) <= 0.0
    }

    /// Of all that was read.
    pub fn of(series: &Series) -> Self {
        Self {
            origin: series.origin,
            whole: series.whole.clone(),
            sent: series.totals.sent,
            received: series.totals.received,
            lost: series.lost(),
            missed: series.totals.missed,
            untold: series.untold,
        }
    }
}

/// There is no result.
impl Serialize for Intervals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl Kind for Intervals {
    fn entry(&self) -> Option<&'static Entry> {
        None
    }

    fn verdict(&self) -> Verdict {
        let all = format!("{} {}", counted(self.sent as u64, "packet"), self.origin.out());
        let (standing, outcome) = match (self.lost.map(|lost| lost as u64), self.untold) {
            (None, _) => {
                let back = count(self.received as u64);
                (
                    Standing::Plain,
                    format!("{all}, {back} came back: what was lost nobody knows"),
                )
            }
            _ if self.is_one_way() => (Standing::Clean, format!("{all}, none expected back")),
            (Some(lost), Some(untold)) => {
                let standing = if lost > 0 {
                    Standing::of_exit(1)
                } else {
                    Standing::Plain
                };
                let (lost, untold) = (count(lost), untold.words());
                (
                    standing,
                    format!("{all}, {lost} dropped; {untold} is not in the file"),
                )
            }
            (Some(lost), None) => {
                let part = share(lost, self.due() as u64);
                let standing = Standing::of_exit(u8::from(lost > 0));
                (standing, format!("{all}, {} lost ({part})", count(lost)))
            }
        };
        Verdict {
            standing,
            mark: None,
            outcome,
            reasons: vec![
                "Intervals alone: no ledger says where packets went, and nobody has judged the run."
                    .to_owned(),
            ],
        }
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let span = |channel| self.whole.span(channel);
        match name {
            // What a capture kept it did not send.
            "rate_tx" | "sent" if self.origin == Origin::Capture => None,
            "captured" if self.origin == Origin::Capture => Some(self.sent),
            "rate_rx" | "received" | "loss" | "lost" if self.is_one_way() => None,
            // What was dropped is not all that was lost.
            "loss" | "lost" if self.untold.is_some() => None,
            "rate_tx" => span(Channel::Sent).mean(),
            "rate_rx" => span(Channel::Received).mean(),
            "sent" => Some(self.sent),
            "received" => Some(self.received),
            "loss" => self
                .lost
                .filter(|_| self.due() > 0.0)
                .map(|lost| lost / self.due()),
            "lost" => self.lost,
            "latency_mean" => span(Channel::Mean).mean(),
            "latency_max" => span(Channel::Max).mean().map(|_| span(Channel::Max).max),
            _ => None,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("sent", value("rate_tx").map(pps)),
            ("captured", value("captured").map(|packets| count(packets as u64))),
            ("received", value("rate_rx").map(pps)),
            ("lost", value("loss").map(loss)),
            ("slowest", value("latency_max").map(time)),
            ("mean latency", value("latency_mean").map(time)),
            ("lasted", Some(time(self.whole.length_ms * 1e6))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        let known = metrics::all().filter_map(|metric| Some((metric, self.figure(metric.name)?)));
        Sheet::of(known)
            .always()
            .name("", |(metric, _)| metric.label.to_owned())
            .number("", |(metric, value)| metric.unit.show(*value))
            .terminal("Intervals", style)
    }

    fn headline(&self, _style: &Style) -> String {
        String::new()
    }

    fn page(&self, _named: &str, _id: &str) -> Markup {
        Markup::default()
    }

    fn compared_with(&self) -> &'static str {
        match self.origin {
            Origin::Reflect => reflect::KIND.command,
            Origin::Capture => capture::KIND.command,
            Origin::Forward => forward::KIND.command,
            Origin::Send | Origin::Older => send::KIND.command,
        }
    }
}
