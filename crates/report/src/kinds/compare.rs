//! `compare`: the ways to send that this machine has, measured in turn, and which one to take.

mod page;
mod tables;
mod terminal;

use std::path::Path;

use maud::Markup;
use measure::comparison::Comparison;

use crate::input::json_file;
use crate::kind::{Entry, Kind, Mark, Standing, Tile, Verdict};
use crate::number::pps;
use crate::read::{self, ReadError, part};
use crate::rundir::file;
use crate::style::Style;

pub use terminal::render;

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "compare",
    file: file::COMPARE,
    required: &[
        "link",
        "size",
        "duration_s",
        "methods.*.name",
        "recommendation.sentences",
        "interrupted",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished,
    metrics: &[],
};

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<Comparison, ReadError> {
    read::result(run, &KIND, judge)
}

/// A trial does not lose more than it sent.
fn judge(comparison: &Comparison) -> Result<(), String> {
    for method in &comparison.methods {
        let single = [&method.at_lossless, &method.flood, &method.latency];
        let all = single.into_iter().flatten();
        let mut all = all.chain(&method.at_rates).chain(&method.search);
        if let Some(trial) = all.find(|trial| trial.lost > trial.sent) {
            return Err(format!(
                "a trial of {} has {} packets lost of {} sent",
                method.name, trial.lost, trial.sent
            ));
        }
    }
    Ok(())
}

/// Only its plan says that it is one.
fn unfinished(run: &Path) -> Result<Option<ReadError>, ReadError> {
    let plan = part(run, file::PLAN)?.map(|plan| json_file(&plan)).transpose()?;
    let is_one = plan.is_some_and(|plan| plan["command"] == KIND.command);
    let what = format!(
        "it is a comparison, and has no {}; what its trials said is in {}",
        file::COMPARE,
        run.join(file::TRIALS).display()
    );
    Ok(is_one.then(|| ReadError::Unfinished(run.to_owned(), what)))
}

impl Kind for Comparison {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        let sentences = &self.recommendation.sentences;
        let first = sentences.first().map_or("Nothing was measured.", String::as_str);
        let (standing, mark, outcome) = if self.interrupted {
            let outcome = format!("interrupted. {first}");
            (Standing::Invalid, Some(Mark::NotFinished), outcome)
        } else if self.recommendation.method.is_some() {
            // That a way can be taken is good or bad of nothing; that none can is worth a colour.
            (Standing::Plain, None, first.to_owned())
        } else {
            (Standing::Loss, None, first.to_owned())
        };
        Verdict {
            standing,
            mark,
            outcome,
            reasons: sentences.iter().skip(1).cloned().collect(),
        }
    }

    fn figures(&self, name: &str) -> Vec<(String, f64)> {
        if name != "throughput" {
            return Vec::new();
        }
        tables::tried(self)
            .map(|method| (method.name.clone(), method.lossless_pps.unwrap_or(0.0)))
            .collect()
    }

    /// Nobody can take a way that reaches no network.
    fn best_pps(&self) -> Option<f64> {
        let ways = self.methods.iter().filter(|way| way.has_measured_a_network());
        ways.map(|way| way.lossless_pps.unwrap_or(0.0)).reduce(f64::max)
    }

    fn tiles(&self) -> Vec<Tile> {
        let found = tables::tried(self).map(|method| {
            let mark = if method.may_carry_more() { "\u{2265} " } else { "" };
            let rate = method.lossless_pps.unwrap_or(0.0);
            (method.name.clone(), Some(format!("{mark}{}", pps(rate))))
        });
        Tile::known(found)
    }

    fn terminal(&self, style: &Style) -> String {
        render(self, style)
    }

    fn page(&self, named: &str, _id: &str) -> Markup {
        page::render(self, named)
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }
}
