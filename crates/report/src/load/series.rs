//! `intervals.csv` of every kind of run and of the older dpdk-project, read row by row into a series of bounded length.

use std::path::Path;

use super::columns::{Columns, NAMES, Row, plain, possible};
pub use super::columns::{Origin, Untold};
use super::heat::{Heat, Slice};
use super::lines::Lines;
pub use super::point::{CHANNELS, Channel, Counts, Point, Span};
use super::thin::{Merge as _, Thinned};
use crate::read::ReadError;

/// Points of a series at most: more than a screen has columns, few enough for a page to open at once.
pub const POINTS_MAX: usize = 4000;
/// How often a rest fits into an interval, at least ([`IntervalRow::is_rest`](measure::IntervalRow::is_rest)).
const REST_PARTS: f64 = measure::collect::REST_PARTS as f64;
/// No file is of more than 30 years, in ms.
pub const TIME_MAX_MS: f64 = 1e12;
/// No interval is shorter than what the clock of the older files tells apart, in ms (1 us; the rest is for rounding).
const STEP_MIN_MS: f64 = 0.000_999;
/// A network a thousand times as fast as any does not carry more, packets/s.
const RATE_MAX_PPS: f64 = 1e12;
/// Empty lines between two rows, or at the end.
const EMPTY_LINES_MAX: u32 = 1000;
/// What a drop rate may be off from its own row before that is told, in percentage points: it may be rounded.
const DROP_RATE_OFF_MAX: f64 = 1.0;

/// In how many intervals a file contradicts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contradictions {
    /// More came back than was sent: packets that were under way at the edge of an interval, or copies.
    pub more_back: u64,
    /// The drop rate is not what the packets of its row make.
    pub other_rate: u64,
}

/// What the intervals of one run say.
#[derive(Clone, Debug)]
pub struct Series {
    /// Who wrote it.
    pub origin: Origin,
    /// Intervals in the file.
    pub rows: u64,
    /// What its rows say against each other.
    pub contradictions: Contradictions,
    /// What of the losses is not in the rows.
    pub untold: Option<Untold>,
    /// Sums over all.
    pub totals: Counts,
    /// Shortest and longest interval in ms.
    pub step_ms: (f64, f64),
    /// Extremes and means over all intervals.
    pub whole: Point,
    /// How latency was spread over time; nothing where the file has no percentiles.
    pub heat: Option<Heat>,
    points: Thinned<Point>,
}

impl Series {
    /// The points, in the order of time.
    pub fn points(&self) -> &[Point] {
        self.points.points()
    }

    /// Intervals in each point but the last.
    pub fn rows_a_point(&self) -> u64 {
        self.points.rows_a_point()
    }

    /// Packets lost; nothing where more came back in all than was sent: some of these are not of this run, or were counted
    /// twice, and how many were lost beside them nobody knows.
    pub fn lost(&self) -> Option<f64> {
        let Counts {
            sent, received, lost, ..
        } = self.totals;
        (self.origin.is_of_arrivals() || received <= sent).then_some(lost)
    }

    /// Whether any interval has a value of this channel.
    pub fn has(&self, channel: Channel) -> bool {
        self.whole.span(channel).mean().is_some()
    }
}

/// Reads the file `path` of any of the three kinds, plain or packed.
pub fn read(path: &Path) -> Result<Series, ReadError> {
    let mut lines = Lines::open(path)?;
    let header = header(&mut lines)?;
    rows(path, &mut lines, &header, true)
}

/// Reads what a run that was killed has written of its file `path`, whose last line may be cut off; nothing where there
/// is no whole row.
pub fn so_far(path: &Path) -> Result<Option<Series>, ReadError> {
    let mut lines = Lines::open(path)?;
    let header = header(&mut lines)?;
    if header.is_empty() || !lines.is_ended() {
        return Ok(None);
    }
    let series = rows(path, &mut lines, &header, false)?;
    Ok((series.rows > 0).then_some(series))
}

fn header(lines: &mut Lines) -> Result<String, ReadError> {
    let line = lines.next_line()?.unwrap_or_default();
    Ok(line.trim_start_matches('\u{feff}').to_owned())
}

/// The rows below `header`. A last one that is cut off is damage, but where nobody says that the file `is_whole`.
fn rows(path: &Path, lines: &mut Lines, header: &str, is_whole: bool) -> Result<Series, ReadError> {
    let columns = Columns::of(header).map_err(|what| ReadError::Foreign(path.to_owned(), what))?;
    let mut reading = Reading::new(&columns);
    let mut empty_lines = 0;
    while let Some(line) = lines.next_line()? {
        if line.is_empty() && columns.origin == Origin::Older {
            empty_lines += 1;
            if empty_lines > EMPTY_LINES_MAX {
                return Err(lines.damaged(&format!("{EMPTY_LINES_MAX} empty lines before it")));
            }
            continue;
        }
        empty_lines = 0;
        let row = columns.row(line);
        if !is_whole && !lines.is_ended() {
            break;
        }
        if let Err(what) = row.and_then(|row| reading.add(&row)) {
            return Err(lines.damaged(&what));
        }
        if !lines.is_ended() && columns.origin != Origin::Older {
            return Err(lines.damaged("the file ends in the middle of it"));
        }
    }
    reading.end().map_err(|what| lines.damaged(&what))
}

/// What has been read so far.
struct Reading {
    origin: Origin,
    untold: Option<Untold>,
    points: Thinned<Point>,
    heat: Thinned<Slice>,
    whole: Option<Point>,
    rows: u64,
    contradictions: Contradictions,
    step_ms: (f64, f64),
    /// The first row of a file without lengths waits for the second: its length is that between the two.
    first: Option<(f64, [Option<f64>; NAMES.len()])>,
    last_ms: Option<f64>,
    /// The interval before this one: a rest after it belongs to it.
    held: Option<Interval>,
}

/// The names of `Interval::quantiles`.
const QUANTILES: [&str; 6] = ["min", "p50", "p90", "p99", "p999", "max"];

/// One interval as it is drawn.
struct Interval {
    end_ms: f64,
    length_ms: f64,
    counts: Counts,
    drop_percent: Span,
    mean_ns: Span,
    quantiles: [Option<f64>; QUANTILES.len()],
    heat: Slice,
}

impl Interval {
    /// Takes in what is left of the run after the last whole interval: packets that were late leave in no time, and
    /// would look like a rate that nobody sent at.
    fn extend(&mut self, rest: Self) {
        self.drop_percent.merge(&rest.drop_percent);
        self.mean_ns.merge(&rest.mean_ns);
        // Of percentiles there is no sum, but the larger is at least that of both (the smallest of all is not drawn).
        for (one, other) in self.quantiles.iter_mut().zip(rest.quantiles) {
            *one = one.map_or(other, |one| Some(other.map_or(one, |other| one.max(other))));
        }
        self.end_ms = rest.end_ms;
        self.length_ms += rest.length_ms;
        self.counts.add(&rest.counts);
        self.heat.merge(rest.heat);
    }

    fn point(&self) -> Point {
        let Counts { sent, received, .. } = self.counts;
        let per_second = |packets: f64| (self.length_ms > 0.0).then(|| packets * 1000.0 / self.length_ms);
        let span = |value, weight| Span::of(value, weight, self.end_ms);
        let [p50, p99, p999, max] = [1, 3, 4, 5].map(|at| span(self.quantiles[at], received));
        Point {
            end_ms: self.end_ms,
            length_ms: self.length_ms,
            counts: self.counts,
            spans: [
                span(per_second(sent.max(0.0)), self.length_ms),
                span(per_second(received), self.length_ms),
                self.drop_percent,
                self.mean_ns,
                p50,
                p99,
                p999,
                max,
            ],
        }
    }
}

impl Reading {
    fn new(columns: &Columns) -> Self {
        Self {
            origin: columns.origin,
            untold: columns.untold(),
            points: Thinned::new(POINTS_MAX),
            heat: Thinned::new(super::heat::SLICES_MAX),
            whole: None,
            rows: 0,
            contradictions: Contradictions::default(),
            step_ms: (f64::INFINITY, 0.0),
            first: None,
            last_ms: None,
            held: None,
        }
    }

    fn add(&mut self, row: &Row) -> Result<(), String> {
        let time_ms = row.ask("time")?;
        if time_ms > TIME_MAX_MS {
            return Err(format!("time is {} ms, more than 30 years", plain(time_ms)));
        }
        let before = self.last_ms.replace(time_ms);
        // Versions up to November 2026 wrote a rest of less than a microsecond as a row of no length.
        let has_no_length = row.get("duration").is_some_and(|length| length <= 0.0);
        let grows = |before: &f64| *before < time_ms || (has_no_length && *before <= time_ms);
        if let Some(before) = before.filter(|before| !grows(before)) {
            return Err(format!(
                "time goes from {} to {} ms; it must grow",
                plain(before),
                plain(time_ms)
            ));
        }
        possible(self.origin, row)?;
        match (row.get("duration"), before, self.first.take()) {
            (Some(length), ..) => self.take(time_ms, length, row),
            (None, None, _) => {
                self.first = Some((time_ms, row.values));
                Ok(())
            }
            (None, Some(before), first) => {
                let length = time_ms - before;
                if length < STEP_MIN_MS {
                    return Err(format!(
                        "time goes from {} to {} ms; a step is 1 us or more",
                        plain(before),
                        plain(time_ms)
                    ));
                }
                if let Some((first_ms, values)) = first {
                    self.take(first_ms, length, &Row { values })?;
                }
                self.take(time_ms, length, row)
            }
        }
    }

    fn take(&mut self, end_ms: f64, length_ms: f64, row: &Row) -> Result<(), String> {
        let get = |name: &str| row.get(name);
        let count = |name: &str| get(name).unwrap_or(0.0);
        let (sent, received) = (count("tx_packets"), count("rx_packets"));
        if sent.max(received) * 1000.0 > RATE_MAX_PPS * length_ms.max(STEP_MIN_MS) {
            let packets = sent.max(received);
            return Err(format!(
                "{} packets in {} ms are more than any network carries",
                plain(packets),
                plain(length_ms)
            ));
        }
        self.contradictions.add(self.origin, row, sent, received);
        // In older files a packet is received in one interval and may have been sent in the one before: only the sum
        // over all tells what was lost.
        let (missed, tx_lost) = (count("missed"), count("tx_lost"));
        let dropped = get("dropped").map(|dropped| dropped + missed + tx_lost);
        let lost = get("lost").or(dropped).unwrap_or(sent - received);
        // What a port missed came, too, but was not received; what is not sent may have come an interval before.
        let came = (received + missed).max(lost);
        let (drop_percent, of) = match self.origin {
            Origin::Reflect | Origin::Capture | Origin::Forward => {
                ((came > 0.0).then(|| 100.0 * lost / came), came)
            }
            Origin::Send | Origin::Older => (get("drop_rate"), sent),
        };
        // Older files have a mean of nearly nothing where nothing came: no packet takes less than a nanosecond.
        let mean_ns = get("avg_latency").map(|ms| ms * 1e6).filter(|ns| *ns >= 1.0);
        let quantiles = QUANTILES.map(|name| get(&format!("latency_{name}_ns")));
        let interval = Interval {
            end_ms,
            length_ms,
            counts: Counts {
                // That may be less than none, for the same reason: only the sum over all is right.
                sent: sent - tx_lost,
                received,
                lost,
                missed,
                unsent: count("unsent"),
            },
            drop_percent: Span::of(drop_percent, of, end_ms),
            mean_ns: Span::of(mean_ns, received, end_ms),
            quantiles,
            heat: Slice::new(end_ms, length_ms, received, quantiles),
        };
        match &mut self.held {
            Some(held) if self.origin == Origin::Send && length_ms * REST_PARTS < held.length_ms => {
                held.extend(interval);
            }
            _ => {
                if let Some(before) = self.held.replace(interval) {
                    self.push(before);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, interval: Interval) {
        let length_ms = interval.length_ms;
        self.rows += 1;
        self.step_ms = (self.step_ms.0.min(length_ms), self.step_ms.1.max(length_ms));
        let point = interval.point();
        match &mut self.whole {
            Some(whole) => whole.merge(point.clone()),
            None => self.whole = Some(point.clone()),
        }
        self.heat.push(interval.heat);
        self.points.push(point);
    }

    fn end(mut self) -> Result<Series, String> {
        if let Some((time_ms, values)) = self.first.take() {
            // One row alone: it began with the run, as far as anybody can tell.
            self.take(time_ms, time_ms, &Row { values })?;
        }
        if let Some(last) = self.held.take() {
            self.push(last);
        }
        let whole = self.whole.unwrap_or_default();
        let totals = Counts {
            sent: whole.counts.sent.max(0.0),
            lost: whole.counts.lost.max(0.0),
            ..whole.counts
        };
        Ok(Series {
            origin: self.origin,
            rows: self.rows,
            contradictions: self.contradictions,
            untold: self.untold,
            totals,
            step_ms: self.step_ms,
            whole,
            heat: Heat::of(self.heat.points()),
            points: self.points,
        })
    }
}

impl Contradictions {
    fn add(&mut self, origin: Origin, row: &Row, sent: f64, received: f64) {
        if origin.is_of_arrivals() {
            return;
        }
        if received > sent {
            self.more_back += 1;
        } else if let Some(percent) = row.get("drop_rate").filter(|_| sent > 0.0) {
            let own = 100.0 * (sent - received) / sent;
            self.other_rate += u64::from((percent - own).abs() > DROP_RATE_OFF_MAX);
        }
    }
}
