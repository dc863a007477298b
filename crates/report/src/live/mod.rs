//! Shows a run while it goes: redrawn in place on a terminal, one line per second anywhere else.

use std::io::{self, Write};
use std::time::Duration;

use crate::published::State;
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

    /// Draws `state`, unless the last drawing was too short ago. Cheap to call often.
    pub fn update(&mut self, state: &State) {
        let every = match self.look {
            Look::Off => return,
            Look::Lines => LINE_EVERY,
            Look::InPlace { .. } => REDRAW_EVERY,
        };
        let period = period(
            Duration::try_from_secs_f64(state.elapsed_s).unwrap_or_default(),
            every,
        );
        if !self.is_new(period) {
            return;
        }
        self.period = Some(period);
        let (text, lines) = match &self.look {
            Look::Off => return,
            Look::Lines => (draw::line(state), 0),
            Look::InPlace { style, ask } => {
                let width = ask
                    .and_then(Stream::columns)
                    .map_or(style.width, |columns| columns.min(120));
                draw::drawing(state, &Style { width, ..*style })
            }
        };
        let erase = self.erase();
        self.put(&(erase + &text));
        self.drawn = lines;
    }

    /// Whether an update after `elapsed` would be drawn.
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
