//! What the search does now and why: one line on standard error, rewritten on a terminal, added elsewhere.

use measure::Shortfall;
use measure::search::{Ask, Extent, Purpose, Trial};
use measure::units::{format_count, format_duration, format_rate, format_share};
use report::number::span;
use report::out::Console;
use report::style::{ERASE, Paint, Stream, Style, can_redraw};

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
    /// A `verbose` search lets its trials write where the line would stand.
    pub fn new(console: Console, plan: &SearchPlan, verbose: bool) -> Self {
        let can_rewrite = !verbose && can_redraw();
        Self {
            quiet: console.quiet,
            on_terminal: Stream::Stderr.is_terminal() && can_rewrite,
            style: Style::detect(Stream::Stderr),
            names_size: plan.sizes.len() > 1,
            line: String::new(),
        }
    }

    /// A trial begins.
    pub fn trial(&mut self, number: u64, size: &str, ask: Option<Ask>, why: &Purpose, left_s: f64) {
        self.line = self.long(number, size, ask, why, left_s);
        if self.quiet || !self.on_terminal {
            return;
        }
        let columns = self.columns();
        let shown = if self.line.chars().count() <= columns {
            self.line.clone()
        } else {
            self.short(number, size, ask, why, left_s)
        };
        self.rewrite(&shown.chars().take(columns).collect::<String>());
    }

    /// Everything, for a wide terminal and for files.
    fn long(&self, number: u64, size: &str, ask: Option<Ask>, why: &Purpose, left_s: f64) -> String {
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
        format!("{size}trial {number}: {what}: {why}{left}")
    }

    /// What fits 80 columns: the time left before the reason, which may be cut.
    fn short(&self, number: u64, size: &str, ask: Option<Ask>, why: &Purpose, left_s: f64) -> String {
        let size = if self.names_size {
            format!("{size} ")
        } else {
            String::new()
        };
        let rate = ask.map_or("max".to_owned(), |ask| format_rate(ask.rate_pps));
        let left = if left_s >= 1.0 {
            format!(", {} left", span(left_s))
        } else {
            String::new()
        };
        format!("{size}trial {number}, {rate}{left}: {}", why.brief())
    }

    /// It is over.
    pub fn outcome(&mut self, trial: &Trial) {
        let outcome = match trial.invalid.first() {
            Some(reason) => format!("invalid: {reason}"),
            None if !trial.is_offered() => {
                let who = match trial.short {
                    Some(Shortfall::PortFull) => "the port took",
                    _ => "our sender offered",
                };
                format!("{who} {}", format_share(trial.offered, trial.due))
            }
            None if trial.lost.total() == 0 => "no loss".to_owned(),
            None => {
                let loss = format_share(trial.lost.total(), trial.offered);
                match trial.limit(0.0).filter(|limit| limit.is_ours()) {
                    Some(ours) => format!("loss {loss}, and {ours} was in it"),
                    None => format!("loss {loss}"),
                }
            }
        };
        if !self.on_terminal && !self.quiet {
            let _ = report::out::print_stderr(&format!("{} -> {outcome}\n", self.line));
        }
    }

    /// Takes the line away, so that the result follows in its place.
    pub fn clear(&mut self) {
        self.rewrite("");
    }

    /// Columns that the line may fill.
    fn columns(&self) -> usize {
        Stream::Stderr
            .columns()
            .unwrap_or(self.style.width)
            .saturating_sub(1)
    }

    fn rewrite(&self, line: &str) {
        if self.quiet || !self.on_terminal {
            return;
        }
        let shown = self.style.paint(Paint::Dim, line);
        let _ = report::out::print_stderr(&format!("{ERASE}{shown}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasons of searches, and the size and the rate that take most room.
    #[test]
    fn the_short_form_fits_80_columns() {
        let progress = Progress {
            quiet: true,
            on_terminal: false,
            style: Style::plain(),
            names_size: true,
            line: String::new(),
        };
        // What the searches promise of their purposes, in brief.
        let purpose = Purpose::new("", "p".repeat(36));
        let ask = Ask::lasting(123_456.0, 1_000_000_000);
        let line = progress.short(123, "1518", Some(ask), &purpose, 4000.0);
        assert!(line.chars().count() <= 80 && line.ends_with('p'), "{line}");
        assert!(
            line.contains("1 h 7 min left") && line.contains("trial 123, 123.5 kpps"),
            "{line}"
        );
    }
}
