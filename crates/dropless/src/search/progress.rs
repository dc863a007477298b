//! What the search does now and why: one line on standard error, rewritten on a terminal, added elsewhere.

use measure::search::{Ask, Extent, Trial};
use measure::units::{format_count, format_duration, format_rate, format_share};
use report::number::span;
use report::out::Console;
use report::style::{Paint, Stream, Style};

use super::plan::SearchPlan;

/// The line.
pub struct Progress {
    quiet: bool,
    on_terminal: bool,
    style: Style,
    /// Sizes are named only where there are several.
    names_size: bool,
    line: String,
}

impl Progress {
    pub fn new(console: Console, plan: &SearchPlan) -> Self {
        let can_rewrite = std::env::var("TERM").is_ok_and(|term| term != "dumb");
        Self {
            quiet: console.quiet,
            on_terminal: Stream::Stderr.is_terminal() && can_rewrite,
            style: Style::detect(Stream::Stderr),
            names_size: plan.sizes.len() > 1,
            line: String::new(),
        }
    }

    /// A trial begins.
    pub fn trial(&mut self, number: u64, size: &str, ask: Option<Ask>, why: &str, left_s: f64) {
        let size = if self.names_size {
            format!("size {size}, ")
        } else {
            String::new()
        };
        let what = match ask {
            None => "as fast as possible".to_owned(),
            Some(ask) => match ask.extent {
                Extent::DurationNs(ns) => {
                    format!("{} for {}", format_rate(ask.rate_pps), format_duration(ns))
                }
                Extent::Packets(packets) => {
                    format!(
                        "{} packets at {}",
                        format_count(packets),
                        format_rate(ask.rate_pps)
                    )
                }
            },
        };
        let left = if left_s >= 1.0 {
            format!("; about {} left", span(left_s))
        } else {
            String::new()
        };
        self.line = format!("{size}trial {number}: {what}: {why}{left}");
        self.rewrite(&self.line.clone());
    }

    /// It is over.
    pub fn outcome(&mut self, trial: &Trial) {
        let outcome = match trial.invalid.first() {
            Some(reason) => format!("invalid: {reason}"),
            None if !trial.is_offered() => {
                format!("our sender offered {}", format_share(trial.offered, trial.due))
            }
            None if trial.lost.total() == 0 => "no loss".to_owned(),
            None => format!("loss {}", format_share(trial.lost.total(), trial.offered)),
        };
        if !self.on_terminal && !self.quiet {
            let _ = report::out::print_stderr(&format!("{} -> {outcome}\n", self.line));
        }
    }

    /// Takes the line away, so that the result follows in its place.
    pub fn clear(&mut self) {
        self.rewrite("");
    }

    fn rewrite(&self, line: &str) {
        if self.quiet || !self.on_terminal {
            return;
        }
        let width = Stream::Stderr
            .columns()
            .unwrap_or(self.style.width)
            .saturating_sub(1);
        let shown: String = line.chars().take(width).collect();
        let shown = self.style.paint(Paint::Dim, &shown);
        let _ = report::out::print_stderr(&format!("\r\x1b[K{shown}"));
    }
}
