//! The words and the bar of the live display.

use measure::place::TO_KERNEL;
use unicode_width::UnicodeWidthStr;

use crate::number::{count, ns, pps};
use crate::published::{Phase, State, Totals};
use crate::style::{Paint, Style};
use crate::table::shorten;

/// The longest progress bar; beyond it only the eye travels.
const BAR_MAX: usize = 40;

/// One line for a log.
pub fn line(state: &State) -> String {
    let fields: Vec<String> = fields(state)
        .into_iter()
        .map(|(name, value, _)| format!("{name} {value}"))
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
    for (name, value, paint) in fields(state) {
        let name = shorten(name, room, style);
        let value = shorten(&value, room.saturating_sub(name.width() + 1), style);
        let gap = usize::from(!value.is_empty());
        let wide = name.width() + gap + value.width();
        if width > 0 && width + 3 + wide > room {
            lines.push(std::mem::take(&mut text));
            width = 0;
        }
        if width > 0 {
            text.push_str("   ");
            width += 3;
        }
        text.push_str(&style.paint(Paint::Dim, &name));
        text.push_str(&" ".repeat(gap));
        text.push_str(&style.paint(paint, &value));
        width += wide;
    }
    lines.push(text);
    (lines.join("\n") + "\n", lines.len())
}

fn progress(state: &State, room: usize, style: &Style) -> String {
    let elapsed = state.elapsed_s;
    let time = match state.planned_s.filter(|planned| elapsed <= *planned) {
        Some(planned) => format!("{elapsed:.1} s of {planned:.1} s"),
        None => format!("{elapsed:.1} s"),
    };
    let phase = shorten(state.phase.name(), room, style);
    let time = shorten(&time, room.saturating_sub(phase.width() + 2), style);
    let words = phase.width() + 2 + time.width() + 2;
    let bar = state
        .done
        .map(|done| bar(done, room.saturating_sub(words).min(BAR_MAX), style));
    let phase = style.paint(Paint::Head, &phase);
    match bar {
        _ if time.is_empty() => phase,
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

/// A name, its value, and how that looks.
type Field = (&'static str, String, Paint);

/// The figures of a run.
fn fields(state: &State) -> Vec<Field> {
    let refused = state
        .refused_s
        .map(|lasts_s| ("port takes nothing for", format!("{lasts_s:.0} s"), Paint::Bad));
    refused.into_iter().chain(figures(state)).collect()
}

/// Those of what it does.
fn figures(state: &State) -> Vec<Field> {
    let plain = |name, value| (name, value, Paint::None);
    let packets = |name, packets| plain(name, count(packets));
    let bad = |name, packets| {
        let paint = if packets == 0 { Paint::None } else { Paint::Bad };
        (name, count(packets), paint)
    };
    // Over no time, or before the first packet, there is no rate.
    let has_rate = state.rate.over_s > 0.0 && state.total.sent + state.total.received > 0;
    let rate = |value| if has_rate { pps(value) } else { "-".to_owned() };
    let latency = |name, value| plain(name, ns(value).unwrap_or_else(|| "-".to_owned()));
    let (total, recent) = (&state.total, &state.latency_recent_ns);
    let (tx, rx) = (
        plain("tx", rate(state.rate.tx_pps)),
        plain("rx", rate(state.rate.rx_pps)),
    );
    // What it waits for at its end is none of what a sender waits for.
    let is_replay = state.phase == Phase::Replaying || state.process.command == "replay";
    match state.phase {
        Phase::Replaying | Phase::Draining if is_replay => vec![
            tx,
            packets("sent", total.sent),
            bad("not sent", total.lost),
            bad("late by the file", total.late),
        ],
        Phase::Watching => {
            let events = state.events.map_or_else(|| "-".to_owned(), count);
            vec![plain("events", events)]
        }
        Phase::Reflecting => vec![
            rx,
            tx,
            packets("received", total.received),
            packets("returned", total.sent),
            bad("lost", total.lost),
        ],
        Phase::Filtering | Phase::Forwarding => {
            let mut fields = vec![
                rx,
                packets("received", total.received),
                // Of what was received: what the host itself sent was not.
                packets("passed", total.sent.saturating_sub(total.sent_own)),
            ];
            if let Some(rules) = &state.rules {
                fields.push(packets("denied", rules.judged.denied));
            }
            // What the interface had no room for no filter sees.
            fields.extend((state.phase == Phase::Forwarding).then(|| bad("lost", total.lost)));
            let of_host = [
                ("to host", state.lost_at(&[TO_KERNEL])),
                ("from host", total.sent_own),
            ];
            fields.extend(
                of_host
                    .into_iter()
                    .filter(|(_, count)| *count > 0)
                    .map(|(name, count)| packets(name, count)),
            );
            fields
        }
        Phase::Capturing => {
            let mut fields = vec![rx, packets("captured", total.captured), bad("lost", total.lost)];
            let lost = state.lost_by_consumers();
            fields.extend((lost > 0).then(|| bad("lost by consumers", lost)));
            fields
        }
        _ => vec![
            tx,
            rx,
            packets("sent", total.sent),
            lost(total),
            bad("unsent", total.unsent),
            latency("p50", recent.p50),
            latency("p99", recent.p99),
        ],
    }
}

/// One figure: what is known to be lost, and up to how many more may be.
fn lost(total: &Totals) -> Field {
    let (lost, further) = total.loss();
    let paint = if total.lost == 0 { Paint::None } else { Paint::Bad };
    (
        "lost",
        further.map_or(lost.clone(), |further| format!("{lost}, {further}")),
        paint,
    )
}
