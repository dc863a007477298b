//! The course of a run that takes what others send: it has no schedule of its own, and ends when it was told to or when
//! nothing comes any more.

use std::fmt::Write as _;
use std::time::Duration;

use host::Medium;
use measure::{Clock, Note, Ticks};
use report::rows::RowWriter;
use report::rundir::{RunDir, file};

use super::clock::now;
use super::control::Look;
use super::open::OpenPort;
use super::queues::QueuePlace;
use crate::explain::Received;

/// A file of which nothing came for so long has come to its end.
const FILES_END: Duration = Duration::from_millis(200);

/// Rows that may wait for the disk.
const ROWS_WAITING: usize = 4096;

/// No row is shorter, since files tell times this finely.
const ROW_MIN: Duration = Duration::from_micros(1);

/// A column of rows: its name, and what is in it.
pub type Column<T> = (&'static str, fn(&T) -> u64);

/// What was counted up to a moment.
pub trait Counted: Copy + Default + 'static {
    /// The columns of its rows, after their time.
    const COLUMNS: &'static [Column<Self>];
}

/// The time in which `received` would have come at `rate_pps`, s: what came before the run is in no rate of its own. Where nothing
/// came it is all that the run had.
pub fn rated_s(received: u64, rate_pps: f64, duration_s: f64) -> f64 {
    if received == 0 {
        return duration_s;
    }
    received as f64 / rate_pps.max(1e-9)
}

/// The rows of a run: what was counted in each of its intervals.
pub struct Rows<T> {
    /// Without a file the run goes on; its directory keeps why.
    file: Option<RowWriter<String>>,
    /// Before the first one: in no row, and in no rate.
    pub early: T,
    /// Up to the last row.
    before: T,
    /// When that ended.
    ended: Duration,
}

impl<T: Counted> Rows<T> {
    pub fn create(dir: &RunDir) -> Self {
        let names = T::COLUMNS.iter().map(|(name, _)| *name);
        let header: Vec<&str> = ["time"].into_iter().chain(names).collect();
        let header = format!("{}\n", header.join(","));
        let file = RowWriter::create(&dir.file(file::INTERVALS), &header, ROWS_WAITING);
        Self {
            file: dir.keep(file).ok(),
            early: T::default(),
            before: T::default(),
            ended: Duration::ZERO,
        }
    }

    /// They begin, when so much has been `counted`.
    pub fn begin(&mut self, counted: T) {
        (self.early, self.before) = (counted, counted);
    }

    /// The rows that have ended, where `counted` is what was counted until now.
    pub fn look(&mut self, course: &mut Listening, counted: impl FnOnce() -> T) {
        if course.has_row() {
            let counted = counted();
            while let Some(at) = course.row() {
                self.push(at, counted);
            }
        }
    }

    /// The last row: what is left of the time, and all that came in it. Of silence only where that is longer than a look takes.
    pub fn end(&mut self, course: &Listening, counted: T, dir: &RunDir) {
        let left = course.elapsed.saturating_sub(self.ended);
        let mut columns = T::COLUMNS.iter();
        let is_new = columns.any(|(_, column)| column(&counted) > column(&self.before));
        if is_new || left > course.interval / 100 {
            self.push(self.ended + left.max(ROW_MIN), counted);
        }
        if let Some(file) = self.file.take() {
            let _ = dir.keep(file.finish());
        }
    }

    fn push(&mut self, at: Duration, counted: T) {
        let mut row = (at.as_secs_f64() * 1e3).to_string();
        for (_, column) in T::COLUMNS {
            // Some counters of drivers begin anew.
            let counted = column(&counted).saturating_sub(column(&self.before));
            let _ = write!(row, ",{counted}");
        }
        row.push('\n');
        if let Some(file) = &mut self.file {
            file.push(row);
        }
        (self.before, self.ended) = (counted, at);
    }
}

/// How long it goes, and when its rows are due.
pub struct Listening {
    /// How long it went.
    pub elapsed: Duration,
    /// When it began.
    pub begun: Ticks,
    /// How long anything came.
    active: Duration,
    /// What was received before it began.
    early: u64,
    /// What was received at the last look.
    seen: u64,
    /// For how long nothing came since that last rose, while every worker polled: what waits for one that is away is no silence.
    quiet: Duration,
    rounds: Vec<u64>,
    /// Rows are at exact times.
    interval: Duration,
    clock: Clock,
    next_row: Duration,
    lasts: Option<Duration>,
    idle_exit: Option<Duration>,
}

impl Listening {
    /// With a row every `interval_ns`; it ends after `duration_ns`, or `idle_exit_ns` after the last packet.
    pub fn new(clock: &Clock, interval_ns: u64, duration_ns: Option<u64>, idle_exit_ns: Option<u64>) -> Self {
        let interval = Duration::from_nanos(interval_ns);
        Self {
            elapsed: Duration::ZERO,
            begun: now(),
            active: Duration::ZERO,
            early: 0,
            seen: 0,
            quiet: Duration::ZERO,
            rounds: Vec::new(),
            interval,
            clock: *clock,
            next_row: interval,
            lasts: duration_ns.map(Duration::from_nanos),
            idle_exit: idle_exit_ns.map(Duration::from_nanos),
        }
    }

    /// It begins now, when so much has been `received`; the result is the line that says to whoever waits for it what it is
    /// `doing`.
    pub fn begin(&mut self, doing: &str, look: &Look<'_, '_>, received: impl FnOnce() -> u64) -> String {
        self.begun = now();
        // In this order: what comes between the two is in no rate.
        self.early = received();
        self.seen = self.early;
        let uris: Vec<String> = look.ports.iter().map(|open| open.uri.to_string()).collect();
        format!(
            "{}; Ctrl-C ends it; results in {}\n",
            [doing, &uris.join(", ")].join(" ").trim_end(),
            look.dir.path().display()
        )
    }

    /// One look, when so many frames have been received.
    pub fn look(&mut self, look: &Look<'_, '_>, received: u64) {
        let before = std::mem::replace(&mut self.elapsed, look.since(self.begun));
        let passed = self.elapsed.saturating_sub(before);
        let rounds = std::mem::replace(&mut self.rounds, look.rounds.clone());
        let mut rounds = self.rounds.iter().zip(&rounds);
        if received > self.seen {
            self.active += passed;
            (self.seen, self.quiet) = (received, Duration::ZERO);
        } else if rounds.all(|(now, before)| *now >= before + 2) {
            self.quiet += passed;
        }
    }

    /// Nothing comes any more, which may have become so later than was looked.
    pub fn end(&mut self) {
        self.elapsed = Duration::from_nanos(self.clock.ns_from_ticks(now().since(self.begun)));
    }

    /// That so much came before it that totals and rates differ by more than a hundredth.
    pub fn early_note(&self) -> Option<Note> {
        let frames = report::number::counted(self.early, "frame");
        let text = format!(
            "{frames} had come to the ports before the run began: served, and in its totals, but in no row and no rate"
        );
        (self.early > self.seen / 100).then(|| Note::new("came_early", text))
    }

    /// Whether a row has ended since the last one was written.
    fn has_row(&self) -> bool {
        self.next_row <= self.elapsed
    }

    /// When the next row ends, if it has.
    fn row(&mut self) -> Option<Duration> {
        self.has_row().then(|| {
            let at = self.next_row;
            self.next_row += self.interval;
            at
        })
    }

    /// When the row under way ends. By the same conversion as [`Listening::elapsed`] and of the whole time: a row's own length in
    /// whole ticks would be ahead of the rows by more with each of them, and whoever wakes before a row is due looks again at once.
    pub fn wakes_at(&self) -> Ticks {
        let due_ns = u64::try_from(self.next_row.as_nanos()).unwrap_or(u64::MAX);
        self.begun.after(self.clock.ticks_until_ns(due_ns))
    }

    /// Whether it is over.
    pub fn is_over(&self, look: &Look<'_, '_>) -> bool {
        let is_idle = self.seen > 0 && self.idle_exit.is_some_and(|most| self.quiet > most);
        let is_file = |open: &OpenPort<'_>| open.traits().medium == Medium::Files;
        let at_end = !look.ports.is_empty() && look.ports.iter().all(is_file) && self.quiet > FILES_END;
        let by_time = self.lasts.is_some_and(|lasts| self.elapsed >= lasts);
        let is_gone = |open: &OpenPort<'_>| open.is_gone() || open.misread().is_some();
        let is_gone = look.ports.iter().any(is_gone);
        look.is_interrupted || is_idle || at_end || look.worker_died || is_gone || by_time
    }

    /// How long it will last, s, and how much of that is done.
    pub fn done(&self, look: &Look<'_, '_>) -> (Option<f64>, Option<f64>) {
        let planned_s = self.lasts.map(|lasts| lasts.as_secs_f64());
        let elapsed_s = look.elapsed().as_secs_f64();
        (planned_s, planned_s.map(|planned| (elapsed_s / planned).min(1.0)))
    }

    /// Who polls `place`, where so many frames came: at its own rate, while anything came to any queue. The rates of all add
    /// up to that of the run.
    pub fn received(&self, place: QueuePlace, frames: u64) -> Received<'static> {
        let share = 1.0 - self.early as f64 / self.seen.max(1) as f64;
        Received {
            port: place.port,
            core: place.core,
            rate_pps: frames as f64 * share / self.active.as_secs_f64().max(1e-3),
            most_pps: f64::INFINITY,
            came: None,
            holes: &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_the_rate_of_its_own_frames() {
        let clock = Clock::from_calibration(0, 0, 1e9);
        let course = Listening {
            active: Duration::from_secs(2),
            ..Listening::new(&clock, 1_000_000, None, None)
        };
        let rate = |queue, frames| {
            let place = QueuePlace {
                port: 0,
                queue,
                core: 1,
            };
            course.received(place, frames).rate_pps.round() as u64
        };
        assert_eq!([rate(0, 3000), rate(1, 1000), rate(2, 0)], [1500, 500, 0]);
    }

    /// In a day of intervals of 1 ms, and on a clock whose interval is no whole number of ticks.
    #[test]
    fn it_wakes_when_its_row_is_due_and_no_tick_before() {
        let clock = Clock::from_calibration(0, 0, 2_893_202_417.3);
        let interval_ns = 1_000_000;
        let mut course = Listening::new(&clock, interval_ns, None, None);
        let step = Duration::from_nanos(interval_ns);
        for row in (1..=100_000_000_u32).step_by(99_991).chain([100_000_000]) {
            course.next_row = step * row;
            let wakes = course.wakes_at().since(course.begun);
            for (ticks, is_due) in [(wakes - 1, false), (wakes, true)] {
                course.elapsed = Duration::from_nanos(clock.ns_from_ticks(ticks));
                let next = course.next_row;
                assert_eq!(course.row(), is_due.then_some(next), "row {row}");
            }
        }
    }
}
