//! What the changes did: the cores are watched before and after them.

use std::time::Duration;

use anyhow::Result;
use doctor::noise::summary::summarise;
use doctor::tune::Plan;
use host::Sys;
use measure::NoiseSummary;
use report::Style;
use report::number;
use report::out::Console;
use report::table::{Cell, Table};
use serde::Serialize;

use crate::plan::{NoisePlan, trial_duration};
use crate::run::placement;
use crate::run::signals::Interrupt;
use crate::watch::watch;

/// Measures the cores of a plan.
pub struct Prover<'p> {
    sys: &'p Sys,
    plan: &'p Plan,
    duration: Duration,
    console: Console,
    interrupt: Interrupt,
}

#[derive(Serialize)]
pub struct Proof {
    before: NoiseSummary,
    after: NoiseSummary,
    /// Time that stalls took before over the time that they take after, all cores together.
    factor: Option<f64>,
}

impl<'p> Prover<'p> {
    /// A prover that measures for as long as `duration` says.
    pub fn new(sys: &'p Sys, plan: &'p Plan, duration: &str, console: Console) -> Result<Self> {
        placement::ensure_one_is_left(sys, &plan.cores)?;
        Ok(Self {
            sys,
            plan,
            duration: trial_duration("--duration", duration)?,
            console,
            interrupt: Interrupt::install()?,
        })
    }

    pub fn measure(&self) -> Result<NoiseSummary> {
        let plan = NoisePlan::of(self.plan.cores.clone(), self.duration.as_nanos() as u64);
        let seen = watch(&plan, self.sys, self.console, &self.interrupt, None)?;
        Ok(summarise(&plan.asked(), &seen, ""))
    }
}

impl Proof {
    pub fn new(before: NoiseSummary, after: NoiseSummary) -> Self {
        let share = |noise: &NoiseSummary| noise.cores.iter().map(|core| core.taken_share).sum::<f64>();
        let (one, other) = (share(&before), share(&after));
        let is_known = [&before, &after]
            .iter()
            .all(|noise| noise.reasons.is_empty() && !noise.interrupted);
        Self {
            factor: (is_known && other > 0.0).then(|| one / other),
            before,
            after,
        }
    }
}

/// A row a core and measurement, and the factor.
pub fn show(proof: &Proof, style: &Style) -> String {
    let titles = ["when", ">stalls", ">taken", ">longest", "most of it by"];
    let mut table = Table::section("Proof", &titles);
    for (before, after) in proof.before.cores.iter().zip(&proof.after.cores) {
        for (when, core) in [("before", before), ("after", after)] {
            let first = core.causes.first();
            table.item(
                &format!("core {}", core.core),
                [
                    Cell::left(when),
                    Cell::right(format!("{:.1} /s", core.gaps as f64 / core.watched_s)),
                    Cell::right(number::loss(core.taken_share)),
                    Cell::right(number::time(core.max_ns)),
                    Cell::left(first.map_or("-", |cause| &cause.cause)),
                ],
            );
        }
    }
    let reason = proof.before.reasons.iter().chain(&proof.after.reasons).next();
    let verdict = match proof.factor {
        _ if proof.after.interrupted => "the second measurement was interrupted: nothing is proven".into(),
        Some(factor) if factor > 1.05 => format!("{factor:.2} times less time is taken than before"),
        Some(factor) if factor < 0.95 => format!("{:.2} times more time is taken than before", 1.0 / factor),
        Some(_) => "no difference that could be told from chance".into(),
        None => reason.map_or("nothing takes the cores any more".into(), |reason| {
            format!("nothing is proven: {}", reason.text)
        }),
    };
    format!("\n{}  {verdict}\n", table.render(style))
}
