//! Draws the screen: a head, two curves, the sections in as many columns as fit, and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use report::number;
use report::published::{State, unix_ms};
use report::style::{Stream, Style as Words};
use report::table::Table;

use super::screen::{Screen, Shown};
use super::{ansi, text};

/// From this width on the sections stand in two columns.
const WIDE: u16 = 110;
/// Below this height the curves give way to the numbers.
const TALL: u16 = 20;
/// Columns between the two columns.
const GAP: u16 = 3;
/// Without news for this long something is wrong.
const SILENT_MS: u64 = 2000;

const HELP: &str = "\
q, Ctrl-C      quit; the run goes on
p, space       pause the screen; the run goes on
up, down       scroll, or choose a run
enter, right   watch the run that is marked
left, esc      back to the list of runs
?              these lines

tx, rx         packets that the driver accepted, and that came back; the curves have two columns a second
lost           known a drain time after the packets were sent; until then they are in flight
busy           part of a worker's rounds that moved a packet
stalls         times that a worker did not poll for longer than --pause";

pub fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let [body, keys] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(footer(screen), keys);
    if screen.help {
        frame.render_widget(Paragraph::new(HELP), body);
        return;
    }
    match &screen.shown {
        Some(shown) => draw_run(frame, body, screen, shown),
        None => frame.render_widget(Paragraph::new(list(screen)), body),
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

fn list(screen: &Screen) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from("Runs".bold()), Line::default()];
    for (index, found) in screen.list.iter().enumerate() {
        let text = match &found.state {
            Ok(state) => format!(
                "{:>8}  {:8}{:11}{:>10}  {:>12}  {}",
                found.process,
                state.process.command,
                state.phase.name(),
                format!("{:.1} s", state.elapsed_s),
                number::pps(state.rate.tx_pps.max(state.rate.rx_pps)),
                state.process.run.display(),
            ),
            Err(refusal) => format!("{:>8}  {refusal}", found.process),
        };
        let line = Line::from(text);
        lines.push(if index == screen.marked {
            line.reversed()
        } else {
            line
        });
    }
    if screen.list.is_empty() {
        lines.push("no run is active now; a run is shown when it begins".into());
    }
    lines
}

fn draw_run(frame: &mut Frame<'_>, area: Rect, screen: &Screen, shown: &Shown) {
    let curves_height = if area.height >= TALL { 4 } else { 0 };
    let [head, curves, body] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(curves_height),
        Constraint::Min(0),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head_lines(shown, head.width)), head);
    draw_curves(frame, curves, shown);
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
    let silent = unix_ms().saturating_sub(state.told_unix_ms);
    if silent > SILENT_MS && state.sequence > 2 {
        return format!(
            "no status for {:.0} s: is the process stopped, or its core busy with something else?",
            silent as f64 / 1e3
        )
        .yellow();
    }
    let text = state.health.reason.clone();
    if state.health.healthy {
        text.green()
    } else {
        text.yellow()
    }
}

fn draw_curves(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    if area.height == 0 {
        return;
    }
    // In line with the two columns below.
    let width = area.width.saturating_sub(GAP) / 2;
    let halves = Layout::horizontal([Constraint::Length(width), Constraint::Length(width)]).spacing(GAP);
    let [left, right] = halves.areas(Rect {
        height: area.height - 1,
        ..area
    });
    let rate = &shown.state.rate;
    let columns = usize::from(left.width);
    let over = if shown.state.ended.is_some() {
        " over the whole run"
    } else {
        ""
    };
    let [sent, received] = shown.history.last(columns);
    let curves = [("tx", rate.tx_pps, sent), ("rx", rate.rx_pps, received)];
    let curves = curves
        .into_iter()
        .skip(usize::from(text::is_capture(&shown.state)));
    for (area, (name, pps, curve)) in [left, right].into_iter().zip(curves) {
        let [label, curve_area] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let label_line = Line::from(vec![
            format!("{name} ").dim(),
            Span::styled(number::pps(pps), Style::default().add_modifier(Modifier::BOLD)),
            over.dim(),
        ]);
        frame.render_widget(label_line, label);
        let most = curve.iter().copied().max().unwrap_or(0).max(1);
        let line = Sparkline::default().data(curve).max(most).fg(Color::Cyan);
        frame.render_widget(line, curve_area);
    }
}

fn draw_sections(frame: &mut Frame<'_>, area: Rect, screen: &Screen, state: &State) {
    let wide = area.width >= WIDE;
    let width = if wide { (area.width - GAP) / 2 } else { area.width };
    let words = Words {
        width: usize::from(width),
        ..Words::detect(Stream::Stdout)
    };
    let lines = |tables: Vec<Table>| -> Vec<Line<'static>> {
        let texts: Vec<String> = tables.iter().map(|table| table.render(&words)).collect();
        ansi::lines(&texts.join("\n"))
    };
    // What the packets do stands left, what the machine does right.
    let (left, right) = if wide {
        (
            lines(text::packets(state, &words)),
            lines(text::machine(state, &words)),
        )
    } else {
        (lines(text::sections(state, &words)), Vec::new())
    };
    let columns = Layout::horizontal([Constraint::Length(width), Constraint::Fill(1)]).spacing(GAP);
    let areas: [Rect; 2] = columns.areas(area);
    let mut most = 0;
    for (area, lines) in areas.into_iter().zip([left, right]) {
        let below = (lines.len() as u16).saturating_sub(area.height);
        most = most.max(below);
        let text = Paragraph::new(lines).scroll((screen.scroll.min(below), 0));
        frame.render_widget(text, area);
    }
    screen.scroll_most.set(most);
}
