//! Draws the screen: a head, two curves, the sections in as many columns as fit, and the keys.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize as _};
use ratatui::symbols::bar::{NINE_LEVELS, Set};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use report::number;
use report::published::{State, unix_ms};
use report::style::{Stream, Style as Words, ascii};
use report::table::Table;

use super::screen::{Screen, Shown};
use super::{ansi, text};

/// From this width on the sections stand in two columns.
const WIDE: u16 = 110;
/// From this width on in three.
const VERY_WIDE: u16 = 165;
/// Below this height the curves give way to the numbers.
const TALL: u16 = 20;
/// From this width on a curve has its scale beside its value.
const BESIDE: u16 = 36;
/// Columns that a scale takes: `top 14.88 Mpps`.
const SCALE: u16 = 14;
/// Columns of a curve outside UTF-8, by their height.
const ASCII_LEVELS: Set = Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "+",
    five_eighths: "=",
    half: "-",
    three_eighths: ":",
    one_quarter: ".",
    one_eighth: "_",
    empty: " ",
};
/// Columns between two columns.
const GAP: u16 = 3;

const HELP: &str = "\
q, Ctrl-C      quit; the run goes on
p, space       pause the screen; the run goes on
up, down       scroll, or choose a run
enter, right   watch the run that is marked
left, esc      back to the list of runs
?              these lines

tx, rx         packets that the driver accepted, and that came back; the curves
               have two columns a second, `top` is the height of the highest of
               them; that of loss shows packets per second, p99 that of the last
               interval
lost           known a drain time after the packets were sent; until then they
               are under way
busy           part of a worker's rounds that moved a packet
stalls         times that a worker did not poll for longer than --pause";

pub fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let has_unicode = Words::detect(Stream::Stdout).unicode;
    draw_screen(frame, screen, has_unicode);
    if !has_unicode {
        make_ascii(frame.buffer_mut());
    }
}

fn draw_screen(frame: &mut Frame<'_>, screen: &Screen, has_unicode: bool) {
    let [body, keys] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(footer(screen), keys);
    if screen.help {
        frame.render_widget(Paragraph::new(HELP), body);
        return;
    }
    match &screen.shown {
        Some(shown) => draw_run(frame, body, (screen, shown), has_unicode),
        None => frame.render_widget(Paragraph::new(list(screen, body)), body),
    }
}

fn footer(screen: &Screen) -> Line<'static> {
    let keys = if screen.shown.is_some() {
        " q quit   p pause   arrows scroll   ? help"
    } else {
        " q quit   arrows choose   enter watch   ? help"
    };
    let mut line = Line::from(keys.dim());
    if screen.paused {
        line.spans.insert(0, " paused ".black().on_yellow());
    }
    line
}

/// The end of a path that fits: that tells runs apart.
fn end_of(path: &str, room: usize) -> String {
    let skipped = path.chars().count().saturating_sub(room);
    if skipped == 0 {
        return path.to_owned();
    }
    let end: String = path.chars().skip(skipped + 1).collect();
    format!("…{end}")
}

fn list(screen: &Screen, area: Rect) -> Vec<Line<'static>> {
    let (width, room) = (
        usize::from(area.width),
        usize::from(area.height).saturating_sub(2),
    );
    let (at, all) = (screen.mark(), screen.list.len());
    let title = if all > room {
        format!("Runs, {} of {all}", at + 1)
    } else {
        "Runs".to_owned()
    };
    let mut lines = vec![Line::from(title.bold()), Line::default()];
    // The line that is marked is on the screen.
    for (index, found) in screen.list.iter().enumerate().skip((at + 1).saturating_sub(room)) {
        let text = match &found.state {
            Ok(state) => {
                let row = format!(
                    "{:>8}  {:8}{:11}{:>10}  {:>12}  ",
                    found.process,
                    state.process.command,
                    if state.is_silent(state.age(unix_ms())) {
                        "no status"
                    } else {
                        state.phase.name()
                    },
                    format!("{:.1} s", state.elapsed_s),
                    number::pps(state.rate.tx_pps.max(state.rate.rx_pps)),
                );
                let room = width.saturating_sub(row.chars().count());
                row + &end_of(&state.process.run.display().to_string(), room)
            }
            Err(refusal) => format!("{:>8}  {refusal}", found.process),
        };
        let line = Line::from(text);
        lines.push(if index == at { line.reversed() } else { line });
    }
    if screen.list.is_empty() {
        lines.push("no run is active now; a run is shown when it begins".into());
    }
    lines
}

fn draw_run(frame: &mut Frame<'_>, area: Rect, (screen, shown): (&Screen, &Shown), has_unicode: bool) {
    // A fifth of a tall screen.
    let curves_height = if area.height >= TALL {
        (area.height / 5).clamp(5, 10)
    } else {
        0
    };
    let [head, curves, body] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(curves_height),
        Constraint::Min(0),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head_lines(shown, head.width)), head);
    draw_curves(frame, curves, shown, has_unicode);
    draw_sections(frame, body, screen, &shown.state);
}

fn head_lines(shown: &Shown, width: u16) -> Vec<Line<'static>> {
    let state = &shown.state;
    let process = &state.process;
    let time = text::progress(state);
    let mut first = vec![
        format!("dropless {}", process.command).bold(),
        format!("  {}  {time}", state.phase.name()).into(),
    ];
    let room = usize::from(width).saturating_sub(first.iter().map(Span::width).sum::<usize>() + 20);
    if let Some(done) = state.done.filter(|_| room > 4) {
        let full = (done.clamp(0.0, 1.0) * room.min(40) as f64) as usize;
        first.push("  ".into());
        first.push("━".repeat(full).green());
        first.push("─".repeat(room.min(40) - full).dim());
    }
    first.push(format!("  process {}", process.id).dim());
    let run = format!("in {}", process.run.display()).dim();
    vec![first.into(), word(shown).into(), run.into()]
}

/// The one line that says how it goes.
fn word(shown: &Shown) -> Span<'static> {
    let state = &shown.state;
    if let Some(ended) = &state.ended {
        let reason = ended
            .reasons
            .first()
            .map_or_else(String::new, |reason| format!(": {reason}"));
        let text = match &*ended.verdict {
            "" => "the run was aborted; these are its last values".to_owned(),
            verdict => format!("the run has ended, {}, exit code {}{reason}", verdict, ended.exit),
        };
        return if ended.exit == 0 { text.green() } else { text.red() };
    }
    if shown.gone {
        return format!("process {} has died; these are its last values", state.process.id).red();
    }
    if let Some(trouble) = &shown.trouble {
        return format!("its current status {trouble}").red();
    }
    let text = shown.health.reason.clone();
    if !shown.health.healthy {
        return text.yellow();
    }
    match state.rules.as_ref().and_then(|rules| rules.refused.as_ref()) {
        // It runs on by those before.
        Some(refused) => format!("the rules read last are NOT in force: {refused}").red(),
        None => text.green(),
    }
}

/// A name, its value now, and the number of its curve.
type Curve = (&'static str, String, usize);

/// The curves that have something to say of such a run.
fn curves(state: &State) -> Vec<Curve> {
    let (rate, is_whole) = (&state.rate, state.ended.is_some());
    let mut all: Vec<Curve> = vec![
        ("tx", number::pps(rate.tx_pps), 0),
        ("rx", number::pps(rate.rx_pps), 1),
    ];
    if text::is_capture(state) {
        all.remove(0);
    }
    if !text::losses(state).is_empty() {
        all.push(("lost", number::count(state.total.lost), 2));
    }
    let latency = if is_whole {
        &state.latency_ns
    } else {
        &state.latency_recent_ns
    };
    if latency.p99.or(state.latency_ns.p99).is_some() {
        all.push(("p99", text::time(latency.p99), 3));
    }
    all
}

/// As many of the curves as stand side by side in `width` columns with their whole values: a number that is cut is another.
fn fitting(mut curves: Vec<Curve>, width: u16) -> Vec<Curve> {
    let wide = |(name, value, _): &Curve| SCALE.max((name.len() + 1 + value.len()) as u16) + GAP;
    while curves
        .iter()
        .any(|curve| wide(curve) * curves.len() as u16 > width + GAP)
    {
        curves.pop();
    }
    curves
}

/// The curves side by side, each with its name, its value, and what its highest column is.
fn draw_curves(frame: &mut Frame<'_>, area: Rect, shown: &Shown, has_unicode: bool) {
    if area.height == 0 {
        return;
    }
    let curves = fitting(curves(&shown.state), area.width);
    let area = Rect {
        height: area.height - 1,
        ..area
    };
    let places = Layout::horizontal(vec![Constraint::Fill(1); curves.len()]).spacing(GAP);
    for (place, (name, value, curve)) in places.split(area).iter().zip(curves) {
        // Beside its value a scale has room from here on, else below it.
        let is_beside = place.width >= BESIDE;
        let height = if is_beside { 1 } else { 2 };
        let [label, drawn] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(*place);
        let columns = shown.history.last(curve, usize::from(drawn.width));
        let most = columns.iter().copied().max().unwrap_or(0);
        let scale = match (most, curve) {
            (0, _) => String::new(),
            (most, 3) => format!("top {}", number::time(most as f64)),
            (most, _) => format!("top {}", number::pps(most as f64)),
        };
        let line = Line::from(vec![format!("{name} ").dim(), value.bold()]);
        let lines = if is_beside {
            let room = usize::from(label.width).saturating_sub(line.width() + scale.len());
            let mut line = line;
            line.spans.extend([" ".repeat(room).into(), scale.dim()]);
            vec![line]
        } else {
            vec![line, Line::from(scale.dim())]
        };
        frame.render_widget(Paragraph::new(lines), label);
        let bars = if has_unicode { NINE_LEVELS } else { ASCII_LEVELS };
        let colour = if curve == 2 { Color::Red } else { Color::Cyan };
        let line = Sparkline::default().data(columns).max(most.max(1)).bar_set(bars);
        frame.render_widget(line.fg(colour), drawn);
    }
}

/// Outside UTF-8 no character beyond ASCII is drawn, whoever wrote it.
fn make_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let plain: String = cell.symbol().chars().take(1).map(ascii).collect();
            cell.set_symbol(&plain);
        }
    }
}

fn draw_sections(frame: &mut Frame<'_>, area: Rect, screen: &Screen, state: &State) {
    let columns = match area.width {
        VERY_WIDE.. => 3,
        WIDE.. => 2,
        _ => 1,
    };
    let width = (area.width - GAP * (columns - 1)) / columns;
    let words = Words {
        width: usize::from(width),
        ..Words::detect(Stream::Stdout)
    };
    let lines = |tables: Vec<Table>| -> Vec<Line<'static>> {
        let texts: Vec<String> = tables.iter().map(|table| table.render(&words)).collect();
        ansi::lines(&texts.join("\n"))
    };
    // What the packets do stands left, what the machine does right.
    let texts = match columns {
        1 => vec![lines(text::sections(state, &words))],
        2 => vec![
            lines(text::packets(state, &words)),
            lines(text::machine(state, &words)),
        ],
        _ => vec![
            lines(text::packets(state, &words)),
            lines(text::workers_and_stalls(state, &words)),
            lines(text::queues_alone(state, &words)),
        ],
    };
    let places = Layout::horizontal(vec![Constraint::Length(width); texts.len()]).spacing(GAP);
    let mut most = 0;
    for (area, lines) in places.split(area).iter().zip(texts) {
        let below = (lines.len() as u16).saturating_sub(area.height);
        most = most.max(below);
        let text = Paragraph::new(lines).scroll((screen.scroll.min(below), 0));
        frame.render_widget(text, *area);
    }
    screen.scroll_most.set(most);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_a_terminal_of_80_columns_and_24_lines() {
        assert!(HELP.lines().count() < 24);
        let long: Vec<&str> = HELP.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn of_a_long_path_the_end_is_shown() {
        let path = "/home/measurements/runs/2026-11-22T06-19-50Z-send";
        assert_eq!(end_of(path, 60), path);
        assert_eq!(end_of(path, 27), "…/2026-11-22T06-19-50Z-send");
    }

    #[test]
    fn no_value_above_a_curve_is_cut() {
        let curves = |lost: &str| -> Vec<Curve> {
            [
                ("tx", "14.88 Mpps"),
                ("rx", "14.88 Mpps"),
                ("lost", lost),
                ("p99", "12.34 us"),
            ]
            .into_iter()
            .enumerate()
            .map(|(at, (name, value))| (name, value.to_owned(), at))
            .collect()
        };
        let names = |lost: &str, width| -> Vec<&str> {
            let fitting = fitting(curves(lost), width).into_iter();
            fitting.map(|(name, ..)| name).collect()
        };
        assert_eq!(names("0", 80), ["tx", "rx", "lost", "p99"]);
        assert_eq!(names("0", 60), ["tx", "rx", "lost"]);
        assert_eq!(names("123,456,789", 60), ["tx", "rx", "lost"]);
        assert_eq!(names("123,456,789", 50), ["tx", "rx"]);
        assert_eq!(names("0", 14), ["tx"]);
        assert!(names("0", 13).is_empty());
    }
}
