//! The words and the bar of the live display.

use unicode_width::UnicodeWidthStr;

use super::{Snapshot, Traffic};
use crate::number;
use crate::style::{Paint, Style};

/// The longest progress bar; beyond it only the eye travels.
const BAR_MAX: usize = 40;

/// One line for a log.
pub fn line(snapshot: &Snapshot) -> String {
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
pub fn drawing(snapshot: &Snapshot, style: &Style) -> (String, usize) {
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
        Traffic::Noise { events } => vec![plain(
            "events",
            events.map_or_else(|| "-".to_owned(), number::count),
        )],
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
