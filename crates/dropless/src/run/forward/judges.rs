//! By which rules frames are forwarded: whose they are differs from command to command.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use dataplane::forward::{Judge, Sampler};
use dataplane::slot::Exchange;
use measure::{ForwardSummary, Judged, RulesSummary};
use report::published::RulesInForce;
use report::rundir::RunDir;
use serde::Serialize;

use crate::plan::ForwardPlan;
use crate::run;
use crate::run::control::Look;
use crate::run::judging::Judging;
use crate::run::on_interface::tags::ThroughXdp;
use crate::run::rulebook::{Rulebook, Rules};

/// What a task is given by whoever says what passes.
pub struct TaskRules {
    pub judge: Judge,
    /// Where it finds the judges after that.
    pub exchange: Arc<Exchange<Judge>>,
    /// Whom it tells what comes.
    pub samples: Option<Sampler>,
}

/// Whoever says which frames pass, and what such a run is for.
pub trait Judges: Sized {
    /// The subcommand.
    const COMMAND: &'static str;
    /// What it does between the ports that are named behind.
    const DOING: &'static str;
    /// How often control looks.
    const TICK: Duration;
    /// What `plan.json` holds.
    type Plan: Serialize;
    /// The same before the run has a directory.
    type Before;
    /// What the run comes to.
    type Summary: run::Summary;

    /// The run begins, with this directory.
    fn begin(before: Self::Before, dir: &RunDir) -> Self;
    /// The rules of a further task.
    fn task(&mut self) -> TaskRules;
    /// One look.
    fn look(&mut self, look: &Look<'_, '_>);
    /// Lines for whoever looks on.
    fn says(&mut self) -> Option<String>;
    /// How the rules stand.
    fn told(&self) -> RulesInForce;
    /// What all of them met.
    fn judged(&self) -> Judged;
    /// What it comes to, where forwarding came to `forward`, once the workers have ended; without rules there is nobody to ask.
    fn conclude(judges: Option<Self>, forward: ForwardSummary) -> Self::Summary;

    /// What the rules came to.
    fn summary(&self) -> RulesSummary {
        let told = self.told();
        RulesSummary {
            file: told.file,
            generation: told.generation,
            asked: told.asked,
            judged: self.judged(),
        }
    }
}

/// The rules of a file, which is read again when somebody asks for that.
pub struct FileRules {
    book: Rulebook,
    judging: Judging,
    through: ThroughXdp,
}

impl FileRules {
    /// Those of `path`, which have been read, where ports are `through` XDP.
    ///
    /// # Errors
    ///
    /// Rules by what such a port does not show.
    pub fn new(path: &Path, rules: Rules, through: ThroughXdp) -> Result<Self> {
        through.shows_tags_to(&rules.set)?;
        Ok(Self {
            judging: Judging::new(rules.clone()),
            book: Rulebook::new(path, rules),
            through,
        })
    }
}

impl Judges for FileRules {
    const COMMAND: &'static str = "forward";
    const DOING: &'static str = "forwarding between";
    const TICK: Duration = Duration::from_millis(20);
    type Plan = ForwardPlan;
    type Before = Self;
    type Summary = ForwardSummary;

    fn begin(before: Self, _dir: &RunDir) -> Self {
        before
    }

    fn task(&mut self) -> TaskRules {
        let (judge, exchange) = self.judging.task();
        TaskRules {
            judge,
            exchange,
            samples: None,
        }
    }

    fn look(&mut self, look: &Look<'_, '_>) {
        if look.is_reload_asked {
            self.book.ask();
        }
        if let Some(rules) = self.judging.arrived(look.generations) {
            self.book.accept(rules);
        }
        if !self.judging.is_busy() {
            if let Some(rules) = self.book.read() {
                match self.through.shows_tags_to(&rules.set) {
                    Ok(()) => self.judging.put(rules, look.generations),
                    Err(error) => self.book.refuse(&rules, &error),
                }
            }
        }
    }

    fn says(&mut self) -> Option<String> {
        self.book.says()
    }

    fn told(&self) -> RulesInForce {
        self.book.told(&self.judging.totals())
    }

    fn judged(&self) -> Judged {
        self.book.judged(&self.judging.totals())
    }

    fn conclude(_judges: Option<Self>, forward: ForwardSummary) -> ForwardSummary {
        forward
    }
}
