//! Shows a run while it goes: redrawn in place on a terminal, one line per second anywhere else.

use std::io::{self, Write};
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::number;
use crate::style::{Paint, Stream, Style};

/// On a terminal: at most ten drawings a second.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// Elsewhere: one line per second.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// The longest progress bar; beyond it only the eye travels.
const BAR_MAX: usize = 40;

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
        // A caller that comes once per period comes a little early or late: a twentieth is forgiven.
        let period = (snapshot.elapsed + every / 20).as_nanos() / every.as_nanos();
        if self.period.is_some_and(|last| last == period) || (self.period.is_none() && period == 0) {
            return;
        }
        self.period = Some(period);
        let (text, lines) = match &self.look {
            Look::Off => return,
            Look::Lines => (line(snapshot), 0),
            Look::InPlace { style, ask } => {
                let width = ask
                    .and_then(Stream::columns)
                    .map_or(style.width, |columns| columns.min(120));
                drawing(snapshot, &Style { width, ..*style })
            }
        };
        let erase = self.erase();
        self.put(&(erase + &text));
        self.drawn = lines;
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

/// One line for a log.
fn line(snapshot: &Snapshot) -> String {
    let fields: Vec<String> = fields(&snapshot.traffic)
        .into_iter()
        .map(|field| format!("{} {}", field.name, field.value))
        .collect();
    format!(
        "{:7.1} s  {}: {}\n",
        snapshot.elapsed.as_secs_f64(),
        snapshot.phase,
        fields.join(", ")
    )
}

/// The progress bar, and the figures below it in as many lines as they need. No line may wrap: the terminal
/// would scroll, and the next drawing begin too low.
fn drawing(snapshot: &Snapshot, style: &Style) -> (String, usize) {
    let room = style.width.saturating_sub(1);
    let mut lines = vec![progress(snapshot, room, style)];
    let (mut text, mut width) = (String::new(), 0);
    for field in fields(&snapshot.traffic) {
        let wide = field.name.width() + 1 + field.value.width();
        if width > 0 && width + 3 + wide > room {
            lines.push(std::mem::take(&mut text));
            width = 0;
        }
        if width > 0 {
            text.push_str("   ");
            width += 3;
        }
        text.push_str(&style.paint(Paint::Dim, field.name));
        text.push(' ');
        text.push_str(&style.paint(field.paint, &field.value));
        width += wide;
    }
    lines.push(text);
    let count = lines.len();
    (lines.join("\n") + "\n", count)
}

fn progress(snapshot: &Snapshot, room: usize, style: &Style) -> String {
    let elapsed = snapshot.elapsed.as_secs_f64();
    let time = match snapshot.planned {
        Some(planned) => format!("{elapsed:.1} s of {:.1} s", planned.as_secs_f64()),
        None => format!("{elapsed:.1} s"),
    };
    let words = snapshot.phase.width() + 2 + time.width() + 2;
    let bar = snapshot
        .done
        .map(|done| bar(done, room.saturating_sub(words).min(BAR_MAX), style));
    let phase = style.paint(Paint::Head, &snapshot.phase);
    match bar {
        Some(bar) if !bar.is_empty() => format!("{phase}  {bar}  {time}"),
        _ => format!("{phase}  {time}"),
    }
}

fn bar(done: f64, width: usize, style: &Style) -> String {
    let full = ((done.clamp(0.0, 1.0) * width as f64) as usize).min(width);
    let (done, to_do) = if style.unicode { ("━", "─") } else { ("#", "-") };
    let (done, to_do) = (done.repeat(full), to_do.repeat(width - full));
    style.paint(Paint::Good, &done) + &style.paint(Paint::Dim, &to_do)
}

struct Field {
    name: &'static str,
    value: String,
    paint: Paint,
}

fn fields(traffic: &Traffic) -> Vec<Field> {
    let plain = |name, value| Field {
        name,
        value,
        paint: Paint::None,
    };
    let bad = |name, number| Field {
        name,
        value: number::count(number),
        paint: if number == 0 { Paint::None } else { Paint::Bad },
    };
    match *traffic {
        Traffic::Send {
            rate_tx_pps,
            rate_rx_pps,
            sent,
            lost,
            unsent,
            latency_p50_ns,
            latency_p99_ns,
        } => {
            let latency = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number::time);
            vec![
                plain("tx", number::pps(rate_tx_pps)),
                plain("rx", number::pps(rate_rx_pps)),
                plain("sent", number::count(sent)),
                bad("lost", lost),
                bad("unsent", unsent),
                plain("p50", latency(latency_p50_ns)),
                plain("p99", latency(latency_p99_ns)),
            ]
        }
        Traffic::Reflect {
            rate_rx_pps,
            rate_tx_pps,
            received,
            returned,
            dropped,
        } => vec![
            plain("rx", number::pps(rate_rx_pps)),
            plain("tx", number::pps(rate_tx_pps)),
            plain("received", number::count(received)),
            plain("returned", number::count(returned)),
            bad("dropped", dropped),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Screen {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn at(milliseconds: u64) -> Snapshot {
        Snapshot {
            phase: "sending".to_owned(),
            elapsed: Duration::from_millis(milliseconds),
            done: Some(milliseconds as f64 / 10_000.0),
            planned: Some(Duration::from_secs(10)),
            traffic: Traffic::Send {
                rate_tx_pps: 3.5e6,
                rate_rx_pps: 3.4e6,
                sent: 14_700_000,
                lost: 12,
                unsent: 0,
                latency_p50_ns: Some(1234.0),
                latency_p99_ns: None,
            },
        }
    }

    #[test]
    fn elsewhere_one_line_per_second() {
        let screen = Screen::default();
        let mut live = Live::onto(Box::new(screen.clone()), None);
        (0..30).for_each(|tenth| live.update(&at(tenth * 100)));
        live.finish();
        let text = screen.text();
        assert_eq!(text.lines().count(), 2);
        let first = "    1.0 s  sending: tx 3.500 Mpps, rx 3.400 Mpps, sent 14,700,000, lost 12, unsent 0, p50 1.234 us, p99 -";
        assert_eq!(text.lines().next().unwrap(), first);
    }

    #[test]
    fn a_caller_of_one_per_second_is_never_skipped() {
        let screen = Screen::default();
        let mut live = Live::onto(Box::new(screen.clone()), None);
        for ms in [1002, 1998, 3001, 3999] {
            live.update(&at(ms));
        }
        assert_eq!(screen.text().lines().count(), 4);
    }

    #[test]
    fn in_place_each_drawing_erases_the_last() {
        let screen = Screen::default();
        let mut live = Live::onto(Box::new(screen.clone()), Some(Style::plain()));
        live.update(&at(4200));
        live.update(&at(4210)); // too early
        live.update(&at(4300));
        live.finish();
        let first = "sending  ################------------------------  4.2 s of 10.0 s\n\
                     tx 3.500 Mpps   rx 3.400 Mpps   sent 14,700,000   lost 12   unsent 0\n\
                     p50 1.234 us   p99 -\n";
        let text = screen.text();
        assert!(text.starts_with(first), "{text}");
        assert_eq!(text.matches("\r\x1b[3A\x1b[J").count(), 2);
        assert!(text.ends_with("\x1b[J"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [1, 5, 20, 40, 80, 120] {
            let (text, lines) = drawing(
                &at(5000),
                &Style {
                    width,
                    ..Style::plain()
                },
            );
            assert_eq!(text.lines().count(), lines);
            if width >= 40 {
                assert!(text.lines().all(|line| line.width() < width), "{width}: {text}");
            }
        }
    }

    #[test]
    fn a_reader_who_goes_ends_the_display_only() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut live = Live::onto(Box::new(full), None);
        live.update(&at(1000));
        live.update(&at(2000));
        assert!(matches!(live.look, Look::Off));
        live.finish();
    }
}
