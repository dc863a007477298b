//! One point of a series: what each channel was over one interval, or over several.

use super::thin::Merge;

/// What a series has a value of for each interval; rates in packets per second, loss in percent, times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Rate sent.
    Sent,
    /// Rate received.
    Received,
    /// Loss in percent of what was sent in the interval.
    Loss,
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// 99th percentile of the latency.
    P99,
    /// 99.9th percentile.
    P999,
    /// Largest latency.
    Max,
}

/// All channels, in the order of `Point::spans`, and their names in the page.
pub const CHANNELS: [(Channel, &str); 8] = [
    (Channel::Sent, "sent"),
    (Channel::Received, "received"),
    (Channel::Loss, "loss"),
    (Channel::Mean, "mean"),
    (Channel::P50, "p50"),
    (Channel::P99, "p99"),
    (Channel::P999, "p999"),
    (Channel::Max, "max"),
];

/// Smallest, largest and weighted mean of a channel over some intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Smallest and largest; meaningless where `weight` is 0.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// When the interval ended that had it, in ms since the start.
    pub max_ms: f64,
    sum: f64,
    weight: f64,
}

impl Span {
    /// Of one interval, which ended at `end_ms`.
    pub(super) fn of(value: Option<f64>, weight: f64, end_ms: f64) -> Self {
        // A value of no weight still is one: 1e-9 leaves the mean to those that have some.
        let weight = weight.max(1e-9);
        value.map_or_else(Self::default, |value| Self {
            min: value,
            max: value,
            max_ms: end_ms,
            sum: value * weight,
            weight,
        })
    }

    /// The mean; `None` where no interval has a value.
    pub fn mean(&self) -> Option<f64> {
        // Rounding must not carry the mean out of its own span.
        (self.weight > 0.0).then(|| (self.sum / self.weight).clamp(self.min, self.max))
    }

    pub(super) fn merge(&mut self, later: &Self) {
        if self.weight == 0.0 {
            *self = *later;
        } else if later.weight > 0.0 {
            self.min = self.min.min(later.min);
            if later.max >= self.max {
                (self.max, self.max_ms) = (later.max, later.max_ms);
            }
            self.sum += later.sum;
            self.weight += later.weight;
        }
    }
}

/// One interval, or several that became one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// End, in ms since the start.
    pub end_ms: f64,
    /// Length of all, in ms.
    pub length_ms: f64,
    /// Packets sent, received, lost, and due but not sent.
    pub counts: Counts,
    pub(super) spans: [Span; CHANNELS.len()],
}

/// Packets of some intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Sent (of a reflector: returned).
    pub sent: f64,
    /// Received.
    pub received: f64,
    /// Lost (of what arrived: dropped, or missed).
    pub lost: f64,
    /// What of that came, and was not received.
    pub missed: f64,
    /// Due and not sent.
    pub unsent: f64,
}

impl Counts {
    pub(super) fn add(&mut self, more: &Self) {
        self.sent += more.sent;
        self.received += more.received;
        self.lost += more.lost;
        self.missed += more.missed;
        self.unsent += more.unsent;
    }
}

impl Point {
    /// The values of a channel.
    pub fn span(&self, channel: Channel) -> &Span {
        &self.spans[channel as usize]
    }
}

impl Merge for Point {
    fn merge(&mut self, later: Self) {
        self.end_ms = later.end_ms;
        self.length_ms += later.length_ms;
        self.counts.add(&later.counts);
        for (span, more) in self.spans.iter_mut().zip(&later.spans) {
            span.merge(more);
        }
    }
}
