//! The plan: what is changed now, what the kernel is to be booted with, and what is left to people.

use serde::Serialize;

use super::boot::{self, Argument};
use super::step::{Action, Step};
use super::{binding, irqbalance};
use crate::{Finding, Remedy, Verdict, beside, checks};
use host::cores::{self, CoreSet};
use host::{Fix, PortUri, Problem, Sys};

/// A finding that tune changes nothing for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ByHand {
    /// The check that found it.
    pub check: String,
    /// What is wrong.
    pub says: String,
    /// What mends it.
    pub fix: Fix,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The cores that will poll.
    pub cores: CoreSet,
    /// The cores for everything else.
    pub housekeeping: CoreSet,
    /// What works now, in the order in which it is done.
    pub steps: Vec<Step>,
    /// The kernel's command line.
    pub boot: Vec<Argument>,
    /// What is left to people.
    pub by_hand: Vec<ByHand>,
}

/// The cores that `workers` leave to everything else; an error where they leave none.
pub fn housekeeping(sys: &Sys, workers: &CoreSet) -> Result<CoreSet, Problem> {
    let rest = beside(sys, workers.clone()).housekeeping;
    if rest.is_empty() {
        let fix = Fix::advice("leave one out of --cores: interrupts and everything else must run somewhere");
        let found = "they are all the cores of this machine";
        return Err(Problem::new(format!("cores {workers}"), found, fix));
    }
    Ok(rest)
}

/// A plan for `workers` from what the doctor found. Refused where a port's interface must not be taken.
pub fn plan(sys: &Sys, workers: &CoreSet, ports: &[PortUri], findings: &[Finding]) -> Result<Plan, Problem> {
    let housekeeping = housekeeping(sys, workers)?;
    // irqbalance first: it would move back what is moved after.
    let mut steps: Vec<Step> = irqbalance::step(sys, workers).into_iter().collect();
    let bans = !steps.is_empty();
    let mut by_hand = Vec::new();
    let wrong = |finding: &&Finding| matches!(finding.verdict, Verdict::Bad | Verdict::Warning);
    for finding in findings.iter().filter(wrong) {
        let done = bans && finding.check == checks::irqbalance::NAME;
        // Remedies are alternatives, the quickest first.
        let remedy = finding.remedies.iter().find(|remedy| may_be_made(remedy));
        if let Some(remedy) = remedy {
            changes(finding, remedy, &mut steps);
        } else if !done && finding.remedies.iter().all(|remedy| remedy.boot.is_empty()) {
            by_hand.extend(finding.remedies.iter().map(|remedy| ByHand {
                check: finding.check.into(),
                says: finding.says.clone(),
                fix: remedy.fix.clone(),
            }));
        }
    }
    if !workers.without(&cores::isolated(sys)).is_empty() {
        match host::partition::root(sys) {
            Ok(_) => steps.push(Step {
                check: "partition".into(),
                why: "the scheduler puts other tasks on the cores".into(),
                // Those of a tune before stay in it: somebody may poll there.
                action: Action::Partition {
                    cores: workers.with(&host::partition::cores(sys)),
                },
            }),
            Err(why) => by_hand.push(ByHand {
                check: "partition".into(),
                says: format!("the cores cannot be isolated now: {why}"),
                fix: Fix::advice("boot with isolcpus=, as dropless tune --boot prints it"),
            }),
        }
    }
    for port in ports {
        let binds = binding::steps(sys, port)?;
        // What else it lacks, a library for one, is not tune's to bring.
        let lacks = if binds.is_empty() {
            host::check(port, sys).err()
        } else {
            None
        };
        by_hand.extend(lacks.map(|problem| ByHand {
            check: "port".into(),
            says: format!("{}: {}", problem.what, problem.found),
            fix: *problem.fix,
        }));
        steps.extend(binds);
    }
    Ok(Plan {
        boot: boot::arguments(sys, workers, &housekeeping, ports, findings),
        cores: workers.clone(),
        housekeeping,
        steps,
        by_hand,
    })
}

/// Whether tune may make a remedy's changes. It switches no core off: the kernel then moves interrupts and tasks for
/// good, which no writing back of `online` would undo.
fn may_be_made(remedy: &Remedy) -> bool {
    let switches_off =
        |path: &str| path.starts_with("/sys/devices/system/cpu/cpu") && path.ends_with("/online");
    !remedy.changes.is_empty() && !remedy.changes.iter().any(|change| switches_off(&change.path))
}

/// The changes for a finding; a file that another finding changes keeps its first value.
fn changes(finding: &Finding, remedy: &Remedy, steps: &mut Vec<Step>) {
    for change in &remedy.changes {
        if !steps.iter().any(|step| step.action.target() == change.path) {
            steps.push(Step {
                check: finding.check.into(),
                why: finding.says.clone(),
                action: Action::Write(change.clone()),
            });
        }
    }
}
