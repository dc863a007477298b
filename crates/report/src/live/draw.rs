//! The words and the bar of the live display.

use unicode_width::UnicodeWidthStr;

use crate::number;
use crate::published::{Phase, State};
use crate::style::{Paint, Style};

/// The longest progress bar; beyond it only the eye travels.
const BAR_MAX: usize = 40;

/// One line for a log.
pub fn line(state: &State) -> String {
    let fields: Vec<String> = fields(state)
        .into_iter()
        .map(|field| format!("{} {}", field.name, field.value))
        .collect();
    format!(
        "{:7.1} s  {}: {}\n",
        state.elapsed_s,
        state.phase.name(),
        fields.join(", ")
    )
}

/// The progress bar, and the figures below it in as many lines as they need. No line may wrap: the terminal
/// would scroll, and the next drawing begin too low.
pub fn drawing(state: &State, style: &Style) -> (String, usize) {
    let room = style.width.saturating_sub(1);
    let mut lines = vec![progress(state, room, style)];
    let (mut text, mut width) = (String::new(), 0);
    for field in fields(state) {
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

fn progress(state: &State, room: usize, style: &Style) -> String {
    let elapsed = state.elapsed_s;
    let time = match state.planned_s {
        Some(planned) => format!("{elapsed:.1} s of {planned:.1} s"),
        None => format!("{elapsed:.1} s"),
    };
    let words = state.phase.name().width() + 2 + time.width() + 2;
    let bar = state
        .done
        .map(|done| bar(done, room.saturating_sub(words).min(BAR_MAX), style));
    let phase = style.paint(Paint::Head, state.phase.name());
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

/// The figures of a run, by what it does.
fn fields(state: &State) -> Vec<Field> {
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
    let (rate, total) = (&state.rate, &state.total);
    let tx = plain("tx", number::pps(rate.tx_pps));
    let rx = plain("rx", number::pps(rate.rx_pps));
    match state.phase {
        Phase::Watching => vec![plain(
            "events",
            state.events.map_or_else(|| "-".to_owned(), number::count),
        )],
        Phase::Reflecting => vec![
            rx,
            tx,
            plain("received", number::count(total.received)),
            plain("returned", number::count(total.sent)),
            bad("dropped", total.lost),
        ],
        _ => {
            let latency =
                |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |ns| number::time(ns as f64));
            vec![
                tx,
                rx,
                plain("sent", number::count(total.sent)),
                bad("lost", total.lost),
                bad("unsent", total.unsent),
                plain("p50", latency(state.latency_recent_ns.p50)),
                plain("p99", latency(state.latency_recent_ns.p99)),
            ]
        }
    }
}
