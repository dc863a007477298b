//! One look at a run, as text.

use std::fmt::Write as _;

use measure::place::{FAULT_DROP, Owner};
use measure::{Percentiles, Place};
use report::judged;
use report::number;
use report::published::{Bounds, State};
use report::style::{Paint, Style};
use report::table::{Cell, Table};

const STALLS_SHOWN: usize = 8;
const RULES_SHOWN: usize = 100;
/// Below this many columns only the most telling figures are shown.
const NARROW: usize = 58;
/// Below this many columns trials are not shown beside the bounds that they have shown.
const WORDY: usize = 76;
const BAR: usize = 10;

pub fn render(state: &State, style: &Style) -> String {
    let sections = sections(state, style);
    let sections: Vec<String> = sections.iter().map(|table| table.render(style)).collect();
    style.fitted(head(state, style) + &sections.join("\n"))
}

/// The sections that have something to say.
pub fn sections(state: &State, style: &Style) -> Vec<Table> {
    // Below each other, what has no room on a small screen shall be what is asked least.
    let mut all = figures(state, style);
    all.extend(workers_and_stalls(state, style));
    all.extend(places(state, style));
    all.extend(queues_alone(state, style));
    all
}

pub fn packets(state: &State, style: &Style) -> Vec<Table> {
    let mut all = figures(state, style);
    all.extend(places(state, style));
    all
}

/// How many, how fast.
fn figures(state: &State, style: &Style) -> Vec<Table> {
    let all = [found(state, style), traffic(state, style), latency(state, style)];
    all.into_iter().filter(Table::has_items).collect()
}

/// Where they are.
fn places(state: &State, style: &Style) -> Vec<Table> {
    let all = [
        lost_at(state),
        left_out(state),
        consumers(state, style),
        rules(state),
        malformed(state),
    ];
    all.into_iter().filter(Table::has_items).collect()
}

pub fn machine(state: &State, style: &Style) -> Vec<Table> {
    // Who had the core says more than how packets lay in queues.
    let mut all = workers_and_stalls(state, style);
    all.extend(queues_alone(state, style));
    all
}

/// Of those of the machine what says who had the cores.
pub fn workers_and_stalls(state: &State, style: &Style) -> Vec<Table> {
    let all = [workers(state, style), stalls(state)];
    all.into_iter().filter(Table::has_items).collect()
}

/// And how packets lay in queues.
pub fn queues_alone(state: &State, style: &Style) -> Vec<Table> {
    let queues = queues(state, style);
    queues.has_items().then_some(queues).into_iter().collect()
}

/// A share as a bar of so many columns.
fn bar(share: f64, style: &Style) -> Cell {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let (done, rest) = if style.unicode { ("█", "░") } else { ("#", "-") };
    Cell::left(done.repeat(full) + &rest.repeat(BAR - full))
}

fn head(state: &State, style: &Style) -> String {
    let mut table = Table::indented(0);
    let process = &state.process;
    table.row([
        Cell::left(format!("dropless {}", process.command)).paint(Paint::Head),
        Cell::left(state.phase.name()),
        Cell::left(progress(state)),
        Cell::left(format!("process {}", process.id)).paint(Paint::Dim),
    ]);
    let mut text = table.render(style);
    let is_healthy = state.health.healthy;
    let health = Cell::left(&state.health.reason).paint(if is_healthy { Paint::Good } else { Paint::Warn });
    let run = Cell::left(process.run.display().to_string());
    let mut lines = Table::indented(0);
    let mut facts = vec![("health", health), ("run", run)];
    if let Some(rules) = &state.rules {
        facts.push((
            "rules",
            Cell::left(format!("{}, generation {}", rules.file, rules.generation)),
        ));
        let refused = rules.refused.as_ref();
        facts.extend(refused.map(|refused| ("refused", Cell::left(&refused.text).paint(Paint::Bad))));
    }
    for (name, cell) in facts {
        lines.row([Cell::left(name).paint(Paint::Dim), cell]);
    }
    text += &lines.render(style);
    text + "\n"
}

/// How long it has gone on, and how long it will.
pub fn progress(state: &State) -> String {
    let planned_s = state.planned_s.filter(|planned| state.elapsed_s <= *planned);
    let mut text = match planned_s {
        Some(planned) => format!("{:.1} s of {planned:.1} s", state.elapsed_s),
        None => format!("{:.1} s", state.elapsed_s),
    };
    if let Some(trials) = &state.trials {
        let _ = write!(text, ", trial {}", trials.number);
        if let Some(left_s) = trials.left_s.filter(|_| state.ended.is_none()) {
            let _ = write!(text, ", about {} left", number::span(left_s));
        }
    }
    text
}

/// What the trials of a search or a comparison have shown.
fn found(state: &State, style: &Style) -> Table {
    let shown = state.trials.as_ref().map_or(&[][..], |trials| &trials.shown);
    let name = if state.ended.is_some() {
        "Found"
    } else {
        "Found so far"
    };
    // Of a comparison only the first is known.
    let is_tried = |bounds: &Bounds| bounds.good_up_to_pps.or(bounds.bad_from_pps).is_some();
    let columns = match shown.iter().any(is_tried) {
        true if style.width < WORDY => 2,
        true => 4,
        false => 1,
    };
    let titles = [">carried", ">not carried", ">trials good up to", ">bad from"];
    let mut table = Table::section(name, &titles[..columns]);
    for bounds in shown {
        let rates = [
            bounds.carried_pps,
            bounds.not_carried_pps,
            bounds.good_up_to_pps,
            bounds.bad_from_pps,
        ];
        let cell = |rate: Option<f64>| Cell::right(rate.map_or("-".to_owned(), number::pps));
        table.item(&bounds.of, rates.into_iter().take(columns).map(cell));
    }
    table
}

fn traffic(state: &State, style: &Style) -> Table {
    let (rate, total) = (&state.rate, &state.total);
    let columns = if style.width < NARROW { 2 } else { 3 };
    // A run that goes on has the rate of its last second, one that has ended that of all of it.
    let (name, title) = if state.ended.is_some() {
        ("Traffic of the whole run", ">mean rate")
    } else {
        ("Traffic", ">rate")
    };
    let titles = [">packets", title, ">layer 1"];
    let mut table = Table::section(name, &titles[..columns]);
    let sides = [
        ("tx", total.sent, rate.tx_pps, rate.tx_bps),
        ("rx", total.received, rate.rx_pps, rate.rx_bps),
    ];
    for (name, count, pps, bps) in sides.into_iter().skip(usize::from(is_capture(state))) {
        let cells = [number::count(count), number::pps(pps), bits(pps, bps)];
        table.item(name, cells.into_iter().take(columns).map(Cell::right));
    }
    if is_capture(state) {
        table.item("captured", [Cell::right(number::count(total.captured))]);
    }
    if let Some(rules) = &state.rules {
        table.item("denied", [Cell::right(number::count(rules.judged.denied))]);
    }
    for (name, count) in losses(state) {
        table.item(name, [count_cell(count)]);
        if name == "lost" && total.under_way > 0 {
            let further = format!("up to {}", number::count(total.under_way));
            table.item("under way", [Cell::right(further).paint(Paint::Dim)]);
        }
    }
    if state.pool.size > 0 {
        let of = format!("free of {}", number::count(state.pool.size));
        let free = Cell::right(number::count(state.pool.free));
        // A remark that is wider than the rates would push these out of a small screen.
        let of = (columns > 2).then(|| Cell::left(of).paint(Paint::Dim));
        table.item("buffers", std::iter::once(free).chain(of));
    }
    table
}

/// Bits per second; a rate of packets without one of bits is one whose bytes nobody counts.
fn bits(pps: f64, bps: f64) -> String {
    if pps > 0.0 && bps == 0.0 {
        "-".to_owned()
    } else {
        number::bps(bps)
    }
}

/// It sends nothing, so there is nothing to be said of that.
pub fn is_capture(state: &State) -> bool {
    state.process.command == "capture"
}

/// What went wrong with packets, and how often.
pub fn losses(state: &State) -> Vec<(&'static str, u64)> {
    let total = &state.total;
    match state.process.command.as_str() {
        // Between ports it forwards; what an interface had no room for no filter sees. Which it was, its phase no longer says
        // when it has ended.
        "filter" | "guard" if state.ports.is_empty() => return Vec::new(),
        "reflect" | "capture" | "forward" | "filter" | "guard" => return vec![("lost", total.lost)],
        _ => {}
    }
    let mut losses = vec![("lost", total.lost), ("unsent", total.unsent)];
    let rarer = [
        ("duplicate", total.duplicate),
        ("reordered", total.reordered),
        ("corrupt", total.corrupt),
        ("late", total.late),
    ];
    losses.extend(rarer.into_iter().filter(|(_, count)| *count > 0));
    losses
}

fn count_cell(count: u64) -> Cell {
    Cell::right(number::count(count)).paint(if count == 0 { Paint::None } else { Paint::Bad })
}

/// A percentile in words.
pub fn time(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |ns| number::time(ns as f64))
}

fn latency(state: &State, style: &Style) -> Table {
    // The middle and the worst say most, where there is no room for all.
    let wide = style.width >= NARROW;
    let titles: &[&str] = if wide {
        &[">min", ">p50", ">p99", ">p99.9", ">max"]
    } else {
        &[">p50", ">p99", ">max"]
    };
    let mut table = Table::section("Latency", titles);
    let mut row = |name: &str, of: &Percentiles| {
        let all = [of.min, of.p50, of.p99, of.p999, of.max];
        let few = [of.p50, of.p99, of.max];
        let values = if wide { &all[..] } else { &few[..] };
        table.item(name, values.iter().map(|value| Cell::right(time(*value))));
    };
    let (recent, run) = (&state.latency_recent_ns, &state.latency_ns);
    if recent.max.or(run.max).is_none() {
        return table;
    }
    if state.ended.is_none() {
        row("recent", recent);
    }
    // Trials go at rates of their own: put together their latencies say nothing.
    if state.trials.is_none() {
        row("run", run);
    } else if run.max.is_some() {
        row("last trial", run);
    }
    table
}

/// What the injector drops is asked for, too, and a loss all the same.
fn is_left_out(place: &str) -> bool {
    place != FAULT_DROP && Place::named(place).owner == Owner::Purpose
}

fn lost_at(state: &State) -> Table {
    let mut table = Table::section("Lost at", &[">packets"]);
    for (place, count) in state.places.iter().filter(|(place, _)| !is_left_out(place)) {
        table.item(place, [count_cell(*count)]);
    }
    table
}

/// What nobody wanted: that is no loss.
fn left_out(state: &State) -> Table {
    let mut table = Table::section("Left out", &[">packets"]);
    for (place, count) in state.places.iter().filter(|(place, _)| is_left_out(place)) {
        table.item(place, [Cell::right(number::count(*count))]);
    }
    table
}

/// The busiest rules.
fn rules(state: &State) -> Table {
    let judged = state.rules.as_ref().map(|rules| &rules.judged);
    judged.map_or_else(
        || Table::section("Rules", &[]),
        |judged| judged::table(judged, RULES_SHOWN),
    )
}

/// Malformed packets, each of which a rule counted, too.
fn malformed(state: &State) -> Table {
    let mut table = Table::section("Malformed", &[">packets"]);
    for (reason, packets) in state.rules.iter().flat_map(|rules| &rules.judged.malformed) {
        table.item(reason, [Cell::right(number::count(*packets))]);
    }
    table
}

/// Whoever takes packets from a capture, and how far each is behind, in segments of the ring.
fn consumers(state: &State, style: &Style) -> Table {
    let columns = if style.width < NARROW { 3 } else { 4 };
    let titles = [">taken", ">lost", ">behind", ">at most"];
    let mut table = Table::section("Consumers", &titles[..columns]);
    for consumer in &state.consumers {
        let cells = [
            Cell::right(number::count(consumer.taken)),
            count_cell(consumer.lost),
            Cell::right(number::count(consumer.behind)),
            Cell::right(number::count(consumer.behind_max)),
        ];
        table.item(&consumer.name, cells.into_iter().take(columns));
    }
    table
}

fn queues(state: &State, style: &Style) -> Table {
    let mut table = Table::section("Queues", &["", ">queue", ">core", ">packets", ">share", ""]);
    for queue in &state.queues {
        let port = state
            .ports
            .get(usize::from(queue.port))
            .map_or("?", |port| &port.uri);
        table.item(
            port,
            [
                Cell::left(&queue.direction),
                Cell::right(queue.queue.to_string()),
                Cell::right(queue.core.to_string()),
                Cell::right(number::count(queue.packets)),
                Cell::share(queue.share),
                bar(queue.share, style),
            ],
        );
    }
    table
}

fn workers(state: &State, style: &Style) -> Table {
    let mut table = Table::section("Workers", &["does", ">busy", "", ">stalls", ">longest"]);
    for worker in &state.workers {
        let summary = &worker.summary;
        table.item(
            &format!("core {}", summary.core),
            [
                Cell::left(summary.roles.join(", ")),
                Cell::share(summary.busy_share),
                bar(summary.busy_share, style),
                Cell::right(number::count(worker.stalls)),
                Cell::right(number::time(summary.poll_gap_ns_max as f64)),
            ],
        );
    }
    table
}

fn stalls(state: &State) -> Table {
    let mut table = Table::section("Latest stalls", &[">core", ">length", ">times"]);
    for stall in state.stalls.iter().rev().take(STALLS_SHOWN) {
        table.item(
            &format!("at {:.1} s", stall.at_s),
            [
                Cell::right(stall.core.to_string()),
                Cell::right(number::time(stall.gap_ns as f64)),
                Cell::right(number::count(stall.times)),
            ],
        );
    }
    table
}

#[cfg(test)]
mod tests;
