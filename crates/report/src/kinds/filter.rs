//! `filter`: packets that rules let pass on an interface, and those they dropped.

use std::path::Path;

use maud::{Markup, html};
use measure::FilterSummary;

use crate::compare::metrics::{Metric, Unit, higher, lower};
use crate::html::element::section;
use crate::html::flow;
use crate::judged;
use crate::kind::{Entry, Kind, Standing, Tile, Verdict};
use crate::number::{count, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::style::Style;
use crate::table::Cell;
use crate::terminal::{self, ending, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "filter",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "interface",
        "mode",
        "rules",
        "generation",
        "judged.allowed",
        "judged.denied",
        "judged.rules.*.rule",
        "judged.rules.*.packets",
        "duration_s",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &METRICS,
};

const METRICS: [Metric; 3] = [
    lower("allowed", Unit::Packets),
    higher("denied", Unit::Packets),
    higher("denied_share", Unit::Ratio),
];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<FilterSummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for FilterSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        let standing = Standing::of_exit(self.exit_code());
        Verdict::judged(self.verdict, standing, &outcome(self), &self.reasons)
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let packets = self.judged.packets();
        match name {
            "rate_rx" => Some(self.rate_pps),
            "rate_tx" => Some(self.rate_allowed_pps),
            "received" => Some(packets as f64),
            "allowed" => Some(self.judged.allowed as f64),
            "denied" => Some(self.judged.denied as f64),
            "denied_share" => (packets > 0).then(|| self.judged.denied as f64 / packets as f64),
            _ => None,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        Tile::known([
            ("judged", value("rate_rx").map(pps)),
            ("allowed", Some(count(self.judged.allowed))),
            ("denied", Some(count(self.judged.denied))),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        join(&[
            about(self).terminal("Filter", style),
            ending(&self.notes, &self.run, style),
            judged::terminal(&self.judged, style),
            self.headline(style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = Standing::of_exit(self.exit_code()).paint();
        terminal::verdict(self.verdict, &self.reasons, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        html! {
            (section(&format!("Where each packet went{named}"), &flow::svg(&judged::flow(&self.judged), id)))
            (section(&format!("Rules{named}"), &judged::html(&self.judged)))
            (section(&format!("Filter{named}"), &about(self).html("Of this filter")))
        }
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }
}

/// The one sentence about a filter.
fn outcome(summary: &FilterSummary) -> String {
    let what = judged::outcome(&summary.judged);
    let stays = if summary.stays {
        "; the filter stays in force"
    } else {
        ""
    };
    format!("{what} on {} ({}){stays}", summary.interface, summary.mode)
}

/// What else is to be said of it, a line each.
fn about(summary: &FilterSummary) -> Sheet<(&'static str, String)> {
    let mut lines = vec![
        (
            "interface",
            format!("{}, {} mode", summary.interface, summary.mode),
        ),
        (
            "rules",
            format!("{}, generation {}", summary.rules, summary.generation),
        ),
        (
            "read again",
            match (summary.reloads, summary.reloads_refused) {
                (0, _) => "never".to_owned(),
                (times, 0) => format!("{times} times"),
                (times, refused) => format!("{times} times, {refused} refused"),
            },
        ),
        (
            "judged",
            format!("{} for {}", pps(summary.rate_pps), time(summary.duration_s * 1e9)),
        ),
    ];
    if summary.taken_over > 0 {
        lines.push((
            "taken over",
            format!("{} packets of runs before", count(summary.taken_over)),
        ));
    }
    if let Some(check) = &summary.interface_check {
        let received = if check.at_least == check.at_most {
            format!("{} received", count(check.at_most))
        } else {
            let [least, most] = [check.at_least, check.at_most].map(count);
            format!("{least} to {most} received (give or take what one poll takes)")
        };
        let counted = format!("{} judged, by its own counter {received}", count(check.judged));
        lines.push(("interface says", counted));
    }
    if let Some(samples) = &summary.samples {
        let told = format!(
            "{} denied packets in {}, {} left out",
            count(samples.written),
            samples.file,
            count(samples.left_out)
        );
        lines.push(("samples", told));
    }
    Sheet::of(lines)
        .name("", |(name, _)| (*name).to_owned())
        .cell("", |(_, value)| Cell::left(value))
}
