//! Every trial of a search as a picture: its rate against its loss, numbered in their order, and the bounds found.

use std::fmt::Write as _;

use measure::search::GoalResult;

use super::element::escape;
use crate::load::SearchedTrial;
use crate::number::{counted, pps};

/// Of the drawing, in its own units.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 940.0;
const TOP: f64 = 58.0;
/// Where the smallest loss drawn by its logarithm stands; no loss has a line of its own below it.
const SMALLEST: f64 = 270.0;
const ZERO: f64 = 312.0;
const BOTTOM: f64 = 330.0;
const HEIGHT: f64 = 372.0;
/// Rates further apart are drawn by their logarithm.
const FAR_APART: f64 = 12.0;
/// More trials in one place are told by the first and the last.
const NUMBERS_MAX: usize = 4;
/// Losses are drawn from this on, if none is smaller.
const LOSS_MIN: f64 = 1e-3;

/// Where rates and losses stand.
struct Axes {
    low_pps: f64,
    high_pps: f64,
    is_log: bool,
    /// A power of ten, as a ratio.
    loss_min: f64,
}

impl Axes {
    fn of(trials: &[&SearchedTrial]) -> Self {
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
            return ZERO;
        }
        let part = loss.max(self.loss_min).log10() / self.loss_min.log10();
        TOP + part.clamp(0.0, 1.0) * (SMALLEST - TOP)
    }
}

/// A loss of two digits; never 0 % when something was lost.
pub fn percent(loss: f64) -> String {
    let percent = loss * 100.0;
    match percent {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p >= 10.0 => format!("{p:.0} %"),
        p => format!(
            "{p:.precision$} %",
            precision = (1.0 - p.log10().floor()).max(0.0) as usize
        ),
    }
}

/// The picture, in a figure, with its text alternative.
pub fn chart(trials: &[&SearchedTrial], goals: &[GoalResult], id: &str) -> String {
    if trials.is_empty() {
        return "<p class=note>No trial was made.</p>\n".to_owned();
    }
    let axes = Axes::of(trials);
    let mut drawing = String::new();
    grid(&mut drawing, &axes);
    bounds(&mut drawing, &axes, goals);
    for one in trials {
        point(&mut drawing, &axes, one);
    }
    numbers(&mut drawing, &axes, trials);
    let words = escape(&sentence(trials, goals));
    format!(
        "<figure><figcaption><h3>Every trial</h3><p>{words}</p><p>Numbers are the order in which they were made. A filled point lost nothing, a ring lost \
         something, a cross is a trial whose rate was not offered or that could not be believed. Loss is drawn by its logarithm, \
         with a line of its own for none.</p></figcaption>\n\
         <svg class=\"flow trials\" role=img aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">\
         <title id=\"{id}-t\">Rate against loss of every trial</title><desc id=\"{id}-d\">{words}</desc>\n{drawing}</svg></figure>\n"
    )
}

fn grid(drawing: &mut String, axes: &Axes) {
    let mut line = |loss: f64, words: &str| {
        let y = axes.y(loss);
        // A `String` takes everything.
        let _ = writeln!(
            drawing,
            "<path class=grid d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text class=\"dim end\" x=\"{:.1}\" y=\"{:.1}\">{words}</text>",
            LEFT - 8.0,
            y + 5.0
        );
    };
    line(0.0, "no loss");
    let mut loss = 1.0;
    while loss >= axes.loss_min * 0.999 {
        line(loss, &format!("{} %", (loss * 1e14).round() / 1e12));
        loss /= 10.0;
    }
    for step in 0..=4 {
        let part = f64::from(step) / 4.0;
        let rate = if axes.is_log {
            axes.low_pps * (axes.high_pps / axes.low_pps).powf(part)
        } else {
            axes.low_pps + (axes.high_pps - axes.low_pps) * part
        };
        let place = match step {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        let x = axes.x(rate);
        let _ = writeln!(
            drawing,
            "<path class=grid d=\"M{x:.1} {TOP}V{BOTTOM}\"/><text class=\"dim {place}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            BOTTOM + 22.0,
            pps(rate)
        );
    }
}

/// What is carried is a whole line, what is not a dashed one; goals that share a bound share its words.
fn bounds(drawing: &mut String, axes: &Axes, goals: &[GoalResult]) {
    let mut lines: Vec<(f64, &str, String)> = Vec::new();
    for goal in goals {
        for (bound, class, word) in [
            (goal.lower, "carried", "carries"),
            (goal.upper, "refused", "does not"),
        ] {
            let Some(bound) = bound else { continue };
            let words = format!("{} {word}", goal.name);
            match lines
                .iter_mut()
                .find(|line| line.1 == class && (line.0 - bound.rate_pps).abs() < 1e-6)
            {
                Some(line) => line.2 = format!("{}, {words}", line.2),
                None => lines.push((bound.rate_pps, class, words)),
            }
        }
    }
    for (at, (rate, class, words)) in lines.iter().enumerate() {
        let x = axes.x(*rate);
        // What is carried is written to the left of its line, what is not to the right: they stand close together.
        let (place, beside) = if *class == "carried" {
            ("end", -5.0)
        } else {
            ("start", 5.0)
        };
        let (place, beside) = match place {
            "end" if x < LEFT + 160.0 => ("start", 5.0),
            "start" if x > RIGHT - 160.0 => ("end", -5.0),
            _ => (place, beside),
        };
        let y = 14.0 + 15.0 * (at % 3) as f64;
        let _ = writeln!(
            drawing,
            "<path class=\"bound {class}\" d=\"M{x:.1} {:.1}V{BOTTOM}\"/><text class={place} x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 10.0,
            x + beside,
            escape(words)
        );
    }
}

fn point(drawing: &mut String, axes: &Axes, one: &SearchedTrial) {
    let trial = &one.trial;
    let (x, y) = (axes.x(trial.ask.rate_pps), axes.y(trial.loss_ratio()));
    let shape = if !trial.invalid.is_empty() || !trial.is_offered() {
        format!(
            "<path class=odd d=\"M{:.1} {:.1}l10 10m0 -10l-10 10\"/>",
            x - 5.0,
            y - 5.0
        )
    } else if trial.lost.total() == 0 {
        format!("<circle class=whole cx=\"{x:.1}\" cy=\"{y:.1}\" r=5 />")
    } else {
        format!("<circle class=part cx=\"{x:.1}\" cy=\"{y:.1}\" r=5 />")
    };
    let _ = writeln!(
        drawing,
        "<g><title>trial {}: {}, loss {}: {}</title>{shape}</g>",
        one.number,
        pps(trial.ask.rate_pps),
        percent(trial.loss_ratio()),
        escape(&one.why),
    );
}

/// The trials' numbers; where several stand in one place, they share a line of words.
fn numbers(drawing: &mut String, axes: &Axes, trials: &[&SearchedTrial]) {
    let mut places: Vec<(f64, f64, Vec<u64>)> = Vec::new();
    for one in trials {
        let (x, y) = (axes.x(one.trial.ask.rate_pps), axes.y(one.trial.loss_ratio()));
        match places
            .iter_mut()
            .find(|place| (place.0 - x).abs() < 9.0 && (place.1 - y).abs() < 9.0)
        {
            Some(place) => place.2.push(one.number),
            None => places.push((x, y, vec![one.number])),
        }
    }
    for (x, y, numbers) in places {
        let words = match numbers.as_slice() {
            [first, .., last] if numbers.len() > NUMBERS_MAX => {
                format!("{first} .. {last} ({} trials)", numbers.len())
            }
            all => all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
        };
        let (place, x) = if x > RIGHT - 80.0 {
            ("end", x - 7.0)
        } else {
            ("start", x + 7.0)
        };
        let y = y - 6.0;
        let _ = writeln!(
            drawing,
            "<text class=\"number {place}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
        );
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
