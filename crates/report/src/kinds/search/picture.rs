//! Every trial of a search as a picture: its rate against its loss, numbered in their order, and the bounds found.

mod labels;
mod near;
#[cfg(test)]
mod tests;
mod ticks;

use std::fmt::Write as _;

use maud::{Markup, display, html};
use measure::search::{Extent, GoalResult, Limit};

use super::SearchedTrial;
use crate::html::element::{drawing, figure, tenths};
use crate::number::{counted, pps, two_digits};

/// Of the drawing, in its own units.
const LEFT: f64 = 124.0;
const RIGHT: f64 = 940.0;
/// A goal has a row of its own above the plot.
const ROW: f64 = 20.0;
/// Characters of a goal's name that fit before its row.
const NAME_MAX: usize = 15;
/// From the top of the plot: where the smallest loss drawn by its logarithm stands; no loss has a line of its own below.
const SMALLEST: f64 = 212.0;
const ZERO: f64 = 254.0;
const BOTTOM: f64 = 272.0;
const HEIGHT: f64 = 326.0;
/// Between the words of two ticks.
const TICK: f64 = 84.0;
/// Rates further apart are drawn by their logarithm.
const FAR_APART: f64 = 12.0;
/// Losses are drawn from this on, if none is smaller.
const LOSS_MIN: f64 = 1e-3;

/// Where rates and losses stand.
struct Axes {
    low_pps: f64,
    high_pps: f64,
    is_log: bool,
    /// A power of ten, as a ratio.
    loss_min: f64,
    /// Where the plot begins, below the rows of the goals.
    top: f64,
}

impl Axes {
    fn of(trials: &[&SearchedTrial], goals: usize) -> Self {
        let rates = || trials.iter().map(|one| one.trial.ask.rate_pps);
        let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(1.0, f64::max));
        let low = low.clamp(1e-3, high);
        let is_log = high / low > FAR_APART;
        let (low_pps, high_pps) = if is_log {
            (low / 1.3, high * 1.3)
        } else {
            let room = ((high - low) * 0.05).max(high * 0.01);
            ((low - room).max(0.0), high + room)
        };
        Self::over(trials, goals, (low_pps, high_pps), is_log)
    }

    /// Of rates between two, and the losses of `trials`.
    fn over(trials: &[&SearchedTrial], goals: usize, (low_pps, high_pps): (f64, f64), is_log: bool) -> Self {
        let least = trials
            .iter()
            .map(|one| one.trial.loss_ratio())
            .filter(|loss| *loss > 0.0)
            .fold(LOSS_MIN, f64::min);
        let loss_min = 10_f64.powf(least.log10().floor()).max(1e-12);
        Self {
            low_pps,
            high_pps,
            is_log,
            loss_min,
            top: 14.0 + ROW * goals as f64,
        }
    }

    fn x(&self, rate_pps: f64) -> f64 {
        let part = if self.is_log {
            (rate_pps / self.low_pps).ln() / (self.high_pps / self.low_pps).ln()
        } else {
            (rate_pps - self.low_pps) / (self.high_pps - self.low_pps)
        };
        LEFT + part * (RIGHT - LEFT)
    }

    fn y(&self, loss: f64) -> f64 {
        if loss <= 0.0 {
            return self.top + ZERO;
        }
        let part = loss.max(self.loss_min).log10() / self.loss_min.log10();
        self.top + part.clamp(0.0, 1.0) * SMALLEST
    }
}

/// The picture, in a figure, with its text alternative.
pub fn chart(all: &[&SearchedTrial], goals: &[GoalResult], id: &str) -> Markup {
    let is_burst = |one: &&&SearchedTrial| matches!(one.trial.ask.extent, Extent::Packets(_));
    let bursts = all.iter().filter(is_burst).count() as u64;
    let trials: Vec<&SearchedTrial> = all.iter().filter(|one| !is_burst(one)).copied().collect();
    let trials = trials.as_slice();
    if trials.is_empty() {
        return html! { p.note { "No trial was made." } };
    }
    let axes = Axes::of(trials, goals.len());
    let mut words = sentence(trials, goals);
    if bursts > 0 {
        let bursts = counted(bursts, "burst");
        let _ = write!(
            words,
            " Not drawn: {bursts}, of which a buffer may have taken what the path does not carry."
        );
    }
    let explained = "Numbers are the order in which they were made, written where there is room. A filled point lost nothing, a ring lost \
         something, a cross is a trial whose rate was not offered, that lost packets at our own receiver, or that could not be believed. \
         No loss has a line of its own. Above, a row for each goal: its whole line ends at the rate that is carried, its dashed one begins \
         at the rate that is not.";
    let drawn = svg(trials, goals, &axes, id, &words);
    html! {
        (figure("Every trial", &[words, explained.to_owned()], &drawn))
        (near::chart(trials, goals, &axes, id))
    }
}

/// The picture of `trials` over `axes`, and its text alternative.
fn svg(trials: &[&SearchedTrial], goals: &[GoalResult], axes: &Axes, id: &str, words: &str) -> Markup {
    let mut shapes = grid(axes);
    let rows = goals.iter().enumerate();
    shapes.extend(rows.map(|(row, goal)| bounds(axes, row, goal)));
    shapes.extend(trials.iter().map(|one| point(axes, one)));
    labels::write(&mut shapes, axes, trials);
    let told = ["Rate against loss of every trial", words];
    html! { div.scroll { (drawing(id, "flow trials", axes.top + HEIGHT, told, &shapes)) } }
}

fn text(class: &str, x: f64, y: f64, words: &str) -> Markup {
    html! { text class=(class) x=(tenths(x)) y=(tenths(y)) { (words) } }
}

fn path(class: &str, line: &str) -> Markup {
    html! { path class=(class) d=(line) {} }
}

fn grid(axes: &Axes) -> Vec<Markup> {
    let mut shapes = Vec::new();
    let mut line = |loss: f64, words: &str| {
        let y = axes.y(loss);
        shapes.push(path("grid", &format!("M{LEFT} {y:.1}H{RIGHT}")));
        shapes.push(text("dim end", LEFT - 8.0, y + 5.0, words));
    };
    line(0.0, "no loss");
    let mut loss = 1.0;
    while loss >= axes.loss_min * 0.999 {
        line(loss, &format!("{} %", (loss * 1e14).round() / 1e12));
        loss /= 10.0;
    }
    let (top, bottom) = (axes.top, axes.top + BOTTOM);
    let mut free = f64::NEG_INFINITY;
    for rate in ticks::ticks(axes.low_pps, axes.high_pps, axes.is_log) {
        let x = axes.x(rate);
        shapes.push(path("grid", &format!("M{x:.1} {top:.1}V{bottom:.1}")));
        if x < free || x > RIGHT - 10.0 {
            continue;
        }
        free = x + TICK;
        shapes.push(text("dim middle", x, bottom + 22.0, &ticks::words(rate)));
    }
    let scale = if axes.is_log { "rate, logarithmic" } else { "rate" };
    let upright = format!("translate(16 {:.1}) rotate(-90)", f64::midpoint(top, bottom));
    shapes.extend([
        text("dim middle", f64::midpoint(LEFT, RIGHT), bottom + 44.0, scale),
        html! { text.dim.middle transform=(upright) { "loss, logarithmic" } },
    ]);
    shapes
}

/// The row of a goal, and its bounds down through the plot: what is carried a whole line, what is not a dashed one.
fn bounds(axes: &Axes, row: usize, goal: &GoalResult) -> Markup {
    let (bottom, y) = (axes.top + BOTTOM, 10.0 + ROW * row as f64);
    let mut name: String = goal.name.chars().take(NAME_MAX).collect();
    if name.len() < goal.name.len() {
        name.pop();
        name.push('\u{2026}');
    }
    let both = [
        (goal.lower, "carried", "is carried", LEFT),
        (goal.upper, "refused", "is not", RIGHT),
    ];
    html! {
        (text("goal end", LEFT - 8.0, y + 5.0, &name))
        @for (bound, class, word, from) in both {
            @if let Some(rate) = bound.map(|bound| bound.rate_pps) {
                @let x = axes.x(rate);
                g {
                    title { (goal.name) ": " (pps(rate)) " " (word) }
                    (path(&format!("bound {class}"), &format!("M{from} {y:.1}H{x:.1}")))
                    (path(&format!("bound down {class}"), &format!("M{x:.1} {:.1}V{bottom:.1}", y - 6.0)))
                }
            }
        }
    }
}

fn point(axes: &Axes, one: &SearchedTrial) -> Markup {
    let trial = &one.trial;
    let (x, y) = (axes.x(trial.ask.rate_pps), axes.y(trial.loss_ratio()));
    let culprit = trial.limit(0.0);
    let is_ours = culprit.is_some_and(Limit::is_ours);
    let is_odd = !trial.invalid.is_empty() || !trial.is_offered() || is_ours;
    let class = if trial.lost.total() == 0 { "whole" } else { "part" };
    html! {
        g {
            title {
                "trial " (one.number) ": " (pps(trial.ask.rate_pps)) ", loss " (two_digits(trial.loss_ratio()))
                @if let Some(limit) = culprit { ", the limit was " (display(limit)) }
                ": " (one.why)
            }
            @if is_odd {
                (path("odd", &format!("M{:.1} {:.1}l10 10m0 -10l-10 10", x - 5.0, y - 5.0)))
            } @else {
                circle.(class) cx=(tenths(x)) cy=(tenths(y)) r="5" {}
            }
        }
    }
}

/// The same in words.
fn sentence(trials: &[&SearchedTrial], goals: &[GoalResult]) -> String {
    let whole = trials
        .iter()
        .filter(|one| one.trial.invalid.is_empty() && one.trial.is_good(0.0))
        .count();
    let mut text = format!(
        "{}, {whole} of them at the whole rate and without loss.",
        counted(trials.len() as u64, "trial")
    );
    for goal in goals {
        let carried = goal
            .lower
            .map(|bound| format!("{} is carried", pps(bound.rate_pps)));
        let refused = goal.upper.map(|bound| format!("{} is not", pps(bound.rate_pps)));
        let parts: Vec<String> = carried.into_iter().chain(refused).collect();
        if !parts.is_empty() {
            let _ = write!(text, " {}: {}.", goal.name, parts.join(", "));
        }
    }
    text
}
