//! `intervals.csv` of `send`, of `reflect` and of the older dpdk-project, read row by row into a series of bounded length.

use std::path::Path;

use super::heat::{Heat, Slice};
use super::lines::Lines;
pub use super::point::{CHANNELS, Channel, Counts, Point, Span};
use super::thin::{Merge as _, Thinned};
use crate::csv::split;
use crate::read::ReadError;

/// Points of a series at most: more than a screen has columns, few enough for a page to open at once.
pub const POINTS_MAX: usize = 4000;

/// Who wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `dropless send`: loss is that of the packets sent in the interval.
    Send,
    /// `dropless reflect`: frames received, returned and dropped.
    Reflect,
    /// The older dpdk-project: five columns.
    Older,
}

/// What the intervals of one run say.
#[derive(Clone, Debug)]
pub struct Series {
    /// Who wrote it.
    pub origin: Origin,
    /// Intervals in the file.
    pub rows: u64,
    /// Intervals in which more came back than was sent.
    pub more_back: u64,
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

    /// Whether any interval has a value of this channel.
    pub fn has(&self, channel: Channel) -> bool {
        self.whole.span(channel).mean().is_some()
    }
}

/// Reads the file `path` of any of the three kinds, plain or packed.
pub fn read(path: &Path) -> Result<Series, ReadError> {
    let mut lines = Lines::open(path)?;
    let header = lines
        .next_line()?
        .unwrap_or_default()
        .trim_start_matches('\u{feff}')
        .to_owned();
    let columns = Columns::of(&header).map_err(|what| ReadError::Foreign {
        path: path.to_owned(),
        what,
    })?;
    let mut reading = Reading::new(&columns);
    while let Some(line) = lines.next_line()? {
        if line.is_empty() && columns.origin == Origin::Older {
            continue;
        }
        let row = columns.row(line);
        if let Err(what) = row.and_then(|row| reading.add(&row)) {
            return Err(lines.damaged(&what));
        }
        if !lines.is_ended() && columns.origin != Origin::Older {
            return Err(lines.damaged("the file ends in the middle of it"));
        }
    }
    Ok(reading.end())
}

/// The columns that count here, in the order of [`Row::values`].
const NAMES: [&str; 15] = [
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
];
const OLDER: [&str; 5] = ["time", "tx_packets", "rx_packets", "drop_rate", "avg_latency"];
const REFLECT: [&str; 4] = ["time", "rx_packets", "tx_packets", "dropped"];

/// Which field of a line is what.
struct Columns {
    origin: Origin,
    /// For each field its place in [`NAMES`], or nothing where it does not matter.
    places: Vec<Option<usize>>,
    names: Vec<String>,
}

/// The values of one line by [`NAMES`]; those that are empty or NaN are none.
struct Row {
    values: [Option<f64>; NAMES.len()],
}

impl Row {
    fn get(&self, name: &str) -> Option<f64> {
        NAMES
            .iter()
            .position(|known| *known == name)
            .and_then(|place| self.values[place])
    }

    fn ask(&self, name: &str) -> Result<f64, String> {
        self.get(name).ok_or_else(|| format!("{name} is empty"))
    }
}

impl Columns {
    fn of(header: &str) -> Result<Self, String> {
        let names: Vec<String> = split(header).iter().map(|name| name.trim().to_owned()).collect();
        let has = |wanted: &[&str]| wanted.iter().all(|name| names.iter().any(|found| found == name));
        let origin = if has(&OLDER) && has(&["lost", "duration"]) {
            Origin::Send
        } else if has(&OLDER) {
            Origin::Older
        } else if has(&REFLECT) {
            Origin::Reflect
        } else {
            let shown: String = header.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(format!(
                "its first line is `{shown}`, and that of intervals begins with {}",
                OLDER.join(",")
            ));
        };
        let places = names
            .iter()
            .map(|name| NAMES.iter().position(|known| known == name))
            .collect();
        Ok(Self {
            origin,
            places,
            names,
        })
    }

    fn row(&self, line: &str) -> Result<Row, String> {
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
            if value.is_infinite() || (value < 0.0 && *place != 3) {
                return Err(format!("{name} is {field}, which cannot be"));
            }
            values[*place] = Some(value).filter(|value| !value.is_nan());
        }
        if count == self.places.len() {
            Ok(Row { values })
        } else {
            Err(format!("{count} fields under {} columns", self.places.len()))
        }
    }
}

/// What has been read so far.
struct Reading {
    origin: Origin,
    points: Thinned<Point>,
    heat: Thinned<Slice>,
    whole: Option<Point>,
    rows: u64,
    more_back: u64,
    step_ms: (f64, f64),
    /// The first row of a file without lengths waits for the second: its length is that between the two.
    first: Option<(f64, [Option<f64>; NAMES.len()])>,
    last_ms: Option<f64>,
}

impl Reading {
    fn new(columns: &Columns) -> Self {
        Self {
            origin: columns.origin,
            points: Thinned::new(POINTS_MAX),
            heat: Thinned::new(super::heat::SLICES_MAX),
            whole: None,
            rows: 0,
            more_back: 0,
            step_ms: (f64::INFINITY, 0.0),
            first: None,
            last_ms: None,
        }
    }

    fn add(&mut self, row: &Row) -> Result<(), String> {
        let time_ms = row.ask("time")?;
        let before = self.last_ms.replace(time_ms);
        if let Some(before) = before.filter(|before| *before >= time_ms) {
            return Err(format!("time goes from {before} to {time_ms} ms; it must grow"));
        }
        if let Some(percent) = row.get("drop_rate").filter(|percent| *percent > 100.0) {
            return Err(format!("drop_rate is {percent}, more than 100 %"));
        }
        row.ask("tx_packets")?;
        row.ask("rx_packets")?;
        match (row.get("duration"), before, self.first.take()) {
            (Some(length), ..) => self.take(time_ms, length, row),
            (None, None, _) => self.first = Some((time_ms, row.values)),
            (None, Some(before), first) => {
                let length = time_ms - before;
                if let Some((first_ms, values)) = first {
                    self.take(first_ms, length, &Row { values });
                }
                self.take(time_ms, length, row);
            }
        }
        Ok(())
    }

    fn take(&mut self, end_ms: f64, length_ms: f64, row: &Row) {
        self.rows += 1;
        self.step_ms = (self.step_ms.0.min(length_ms), self.step_ms.1.max(length_ms));
        let get = |name: &str| row.get(name);
        let count = |name: &str| get(name).unwrap_or(0.0);
        let (sent, received) = (count("tx_packets"), count("rx_packets"));
        self.more_back += u64::from(self.origin != Origin::Reflect && received > sent);
        let lost = get("lost")
            .or(get("dropped"))
            .unwrap_or((sent - received).max(0.0));
        let per_second = |packets: f64| (length_ms > 0.0).then(|| packets * 1000.0 / length_ms);
        let drop_percent = match self.origin {
            Origin::Reflect => (received > 0.0).then(|| 100.0 * lost / received),
            Origin::Send | Origin::Older => get("drop_rate"),
        };
        let latency_ns = get("avg_latency").map(|ms| ms * 1e6);
        let values = [
            (per_second(sent), length_ms),
            (per_second(received), length_ms),
            (drop_percent, sent),
            (latency_ns, received),
            (get("latency_p50_ns"), received),
            (get("latency_p99_ns"), received),
            (get("latency_p999_ns"), received),
            (get("latency_max_ns"), received),
        ];
        let point = Point {
            end_ms,
            length_ms,
            counts: Counts {
                sent,
                received,
                lost,
                unsent: count("unsent"),
            },
            spans: values.map(|(value, weight)| Span::of(value, weight)),
        };
        match &mut self.whole {
            Some(whole) => whole.merge(point.clone()),
            None => self.whole = Some(point.clone()),
        }
        let quantiles =
            ["min", "p50", "p90", "p99", "p999", "max"].map(|name| get(&format!("latency_{name}_ns")));
        self.heat.push(Slice::new(end_ms, length_ms, received, quantiles));
        self.points.push(point);
    }

    fn end(mut self) -> Series {
        if let Some((time_ms, values)) = self.first.take() {
            // One row alone: it began with the run, as far as anybody can tell.
            self.take(time_ms, time_ms, &Row { values });
        }
        let whole = self.whole.unwrap_or_default();
        Series {
            origin: self.origin,
            rows: self.rows,
            more_back: self.more_back,
            totals: whole.counts,
            step_ms: self.step_ms,
            whole,
            heat: Heat::of(self.heat.points()),
            points: self.points,
        }
    }
}
