//! Shows a run while it goes: redrawn in place on a terminal, one line per second anywhere else.

use std::io::{self, Write};
use std::time::Duration;

use crate::style::{Stream, Style};

mod draw;
/// The number of the period that `elapsed` is in. A caller that comes once per period comes a little early or late: a
/// twentieth is forgiven.
fn period(elapsed: Duration, every: Duration) -> u128 {
    (elapsed + every / 20).as_nanos() / every.as_nanos()
}

#[cfg(test)]
mod tests;

/// On a terminal: at most ten drawings a second.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// Elsewhere: one line per second.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// What a run has come to at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What it is doing, in one word: `sending`, `draining`, `reflecting`.
    pub phase: String,
    /// Since the run began; drawings are timed by it.
    pub elapsed: Duration,
    /// How much of the run is done, 0 to 1; `None` when it ends only on request.
    pub done: Option<f64>,
    /// How long it will last, where that is known.
    pub planned: Option<Duration>,
    /// What it moves.
    pub traffic: Traffic,
}

/// The figures of one kind of run. Rates are of the last interval, counts since the start.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Of `send`.
    Send {
        /// Packets per second accepted by the driver.
        rate_tx_pps: f64,
        /// Packets per second that came back.
        rate_rx_pps: f64,
        /// Packets accepted by the driver.
        sent: u64,
        /// Packets missing from intervals that are old enough to be judged.
        lost: u64,
        /// Packets that were due and could not be sent.
        unsent: u64,
        /// Median latency; `None` when nothing came back.
        latency_p50_ns: Option<f64>,
        /// 99th percentile of the latency.
        latency_p99_ns: Option<f64>,
    },
    /// Of `noise`.
    Noise {
        /// The kernel's events so far, where it is asked for them.
        events: Option<u64>,
    },
    /// Of `reflect`.
    Reflect {
        /// Packets per second received.
        rate_rx_pps: f64,
        /// Packets per second returned.
        rate_tx_pps: f64,
        /// Packets received.
        received: u64,
        /// Packets returned to where they came from.
        returned: u64,
        /// Packets that must not be returned, or could not.
        dropped: u64,
    },
}

/// The display. Trouble with the terminal ends the display, never the run.
pub struct Live {
    sink: Box<dyn Write + Send>,
    look: Look,
    /// Lines on the terminal that the next drawing replaces.
    drawn: usize,
    /// The period of time in which was drawn last.
    period: Option<u128>,
}

/// How to draw.
enum Look {
    /// Nothing: quiet was asked for, or the reader has gone.
    Off,
    /// One line now and then.
    Lines,
    /// In place; the stream is asked for its width at each drawing, as windows are resized.
    InPlace { style: Style, ask: Option<Stream> },
}

impl Live {
    /// On standard error, so that standard output holds the result and nothing else.
    pub fn stderr(quiet: bool) -> Self {
        let style = Style::detect(Stream::Stderr);
        // Without colours the terminal is dumb, or asked to be left alone only in colour: a dumb one cannot redraw.
        let can_redraw =
            Stream::Stderr.is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
        let look = match (quiet, can_redraw) {
            (true, _) => Look::Off,
            (false, true) => Look::InPlace {
                style,
                ask: Some(Stream::Stderr),
            },
            (false, false) => Look::Lines,
        };
        Self {
            sink: Box::new(io::stderr()),
            look,
            drawn: 0,
            period: None,
        }
    }

    /// On anything that takes bytes: in place with a style, else one line per second.
    pub fn onto(sink: Box<dyn Write + Send>, in_place: Option<Style>) -> Self {
        let look = in_place.map_or(Look::Lines, |style| Look::InPlace { style, ask: None });
        Self {
            sink,
            look,
            drawn: 0,
            period: None,
        }
    }

    /// Draws `snapshot`, unless the last drawing was too short ago. Cheap to call often.
    pub fn update(&mut self, snapshot: &Snapshot) {
        let every = match self.look {
            Look::Off => return,
            Look::Lines => LINE_EVERY,
            Look::InPlace { .. } => REDRAW_EVERY,
        };
        let period = period(snapshot.elapsed, every);
        if !self.is_new(period) {
            return;
        }
        self.period = Some(period);
        let (text, lines) = match &self.look {
            Look::Off => return,
            Look::Lines => (draw::line(snapshot), 0),
            Look::InPlace { style, ask } => {
                let width = ask
                    .and_then(Stream::columns)
                    .map_or(style.width, |columns| columns.min(120));
                draw::drawing(snapshot, &Style { width, ..*style })
            }
        };
        let erase = self.erase();
        self.put(&(erase + &text));
        self.drawn = lines;
    }

    /// Whether an update after `elapsed` would be drawn: what it shows is best measured since the last one that was.
    pub fn is_due(&self, elapsed: Duration) -> bool {
        match self.look {
            Look::Off => false,
            Look::Lines => self.is_new(period(elapsed, LINE_EVERY)),
            Look::InPlace { .. } => self.is_new(period(elapsed, REDRAW_EVERY)),
        }
    }

    fn is_new(&self, period: u128) -> bool {
        self.period.map_or(period != 0, |last| last != period)
    }

    /// Removes the display, so that the report follows in its place.
    pub fn finish(mut self) {
        self.clear();
    }

    /// Removes the display for now, so that a message can be printed; the next update draws it again.
    pub fn clear(&mut self) {
        let erase = self.erase();
        if !erase.is_empty() {
            self.put(&erase);
        }
        self.drawn = 0;
    }

    /// To the first column of the first line drawn, and from there everything away.
    fn erase(&self) -> String {
        match self.drawn {
            0 => String::new(),
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }

    fn put(&mut self, text: &str) {
        if self
            .sink
            .write_all(text.as_bytes())
            .and_then(|()| self.sink.flush())
            .is_err()
        {
            self.look = Look::Off;
        }
    }
}
