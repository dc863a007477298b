//! One trial of a search: replayed if it was made before, else made, as a run of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use host::{Medium, PortUri};
use measure::Summary;
use measure::search::{Ask, Ceiling, Extent, Method, Purpose, Trial};
use measure::verdict::OFFERED_TOLERANCE;
use report::rundir::file;

use super::journal::{self, Line};
use super::{Run, TRIAL_PLAN};
use crate::plan::SendPlan;
use crate::plan::foreign::TRUST;
use crate::run::child::{Child, Ended, LOOK, Start};

/// What the files with the words of the trial that goes on are called.
const TRIAL: &str = "trial-now";
/// A trial has opened its ports by then, besides waiting for them.
const STARTING: Duration = Duration::from_secs(20);
/// A rest may end a little later than it should.
const HITCH: Duration = Duration::from_secs(1);
/// Layer 1 as full as the verdict tells it from full.
const FULL: f64 = 1.0 - OFFERED_TOLERANCE;

impl Run<'_> {
    /// One trial: replayed if it was made before, else made and recorded. Without an `ask` it measures the highest
    /// rate. `None` when it was interrupted.
    pub(super) fn trial(
        &mut self,
        size: &str,
        ask: Option<Ask>,
        purpose: &Purpose,
        left_s: f64,
    ) -> Result<Option<Line>> {
        let begun = Instant::now();
        let line = if let Some(line) = self.recorded.pop_front() {
            self.check_replayed(&line, size, ask)?;
            line
        } else {
            let number = self.journal.lines + 1;
            self.progress.trial(number, size, ask, purpose, left_s);
            self.trials.left((left_s > 0.0).then_some(left_s));
            if !self.rest(number) {
                return Ok(None);
            }
            // Until this one has its answers, nobody shall read those of the process before.
            for stale in [file::SEARCH, file::REPORT] {
                let _ = std::fs::remove_file(self.dir.file(stale));
            }
            let Some(mut line) = self.make(size, ask, purpose, number)? else {
                return Ok(None);
            };
            line.wall_s = begun.elapsed().as_secs_f64();
            self.journal.append(line.clone())?;
            self.progress.outcome(&line.trial);
            line
        };
        self.made += 1;
        self.sending_s += line.trial.ask.seconds();
        self.disturbance.look(self.made, &line);
        self.patience.look(&line);
        self.wall_s += line.wall_s;
        self.overhead.0 += line.wall_s - line.trial.ask.seconds();
        self.overhead.1 += 1.0;
        Ok(Some(line))
    }

    /// The rest between two trials; false when it was interrupted.
    fn rest(&mut self, number: u64) -> bool {
        let settle = Duration::from_nanos(if number > 1 { self.plan.settle_ns } else { 0 });
        let end = Instant::now() + settle;
        self.trials.prepare("settling", settle + HITCH);
        while Instant::now() < end && !self.interrupt.is_set() {
            self.trials.wait();
            std::thread::sleep(Duration::from_millis(10));
        }
        !self.interrupt.is_set()
    }

    fn make(&mut self, size: &str, ask: Option<Ask>, purpose: &Purpose, number: u64) -> Result<Option<Line>> {
        let extent = ask.map_or(Extent::DurationNs(self.plan.first_ns()), |ask| ask.extent);
        let mut send = self
            .plan
            .trial(size, ask.map(|ask| ask.rate_pps), extent, number)?;
        // RFC 2544, section 23, wants two seconds.
        send.quiet_ns = self
            .patience
            .quiet_ns()
            .filter(|_| self.plan.method == Method::Mlr);
        let path = self.dir.file(TRIAL_PLAN);
        self.dir.write_json(TRIAL_PLAN, &send)?;
        // A trial waits for its links as long as any run.
        let starting = STARTING + Duration::from_nanos(send.machine.wait_ns);
        self.trials.begin(ask.map(|ask| ask.rate_pps), starting);
        let Some(ended) = self.run_child(&path)? else {
            return Ok(None);
        };
        let (stall_ns, overdue) = match &ended {
            Ended::Result(summary) => (longest_stall_ns(summary), overdue(summary)),
            _ => (0, 0),
        };
        let (trial, ceiling, run) = match (ended, ask) {
            (Ended::Failed(why), _) => bail!("a trial could not be run: {why}"),
            (Ended::Result(summary), Some(ask)) => {
                let mut trial = Trial::of(ask, &summary);
                if bears_all(&send) {
                    trial.bunches.clear();
                } else {
                    trial = trial.unless_split(&summary);
                }
                (trial, None, summary.run)
            }
            (Ended::Result(summary), None) => {
                let (trial, ceiling) = highest(&summary, extent);
                (trial, Some(ceiling), summary.run)
            }
            (Ended::Killed(signal), Some(ask)) => (Trial::killed(ask, signal), None, String::new()),
            (Ended::Killed(signal), None) => bail!(
                "the trial that measures how fast our sender is was ended by {signal}; give --max-rate, or start again"
            ),
        };
        Ok(Some(Line {
            version: 0,
            number: 0,
            size: size.to_owned(),
            ceiling,
            why: purpose.to_string(),
            again: purpose.again,
            run: self.relative(&run),
            wall_s: 0.0,
            pause_ns: stall_ns,
            overdue,
            trial,
        }))
    }

    /// Runs the trial whose plan is in the file `plan`; `None` when it was interrupted.
    fn run_child(&mut self, plan: &Path) -> Result<Option<Ended<Summary>>> {
        let runs = self.dir.file(file::TRIALS);
        // The plan is the user's own, or was accepted when it was read.
        let words = ["send", "--json", "--quiet", "--no-doctor", TRUST, "--plan"];
        let mut arguments: Vec<String> = words.map(Into::into).to_vec();
        arguments.extend([
            plan.display().to_string(),
            "--runs".into(),
            runs.display().to_string(),
        ]);
        arguments.extend(self.verbose.then(|| "--verbose".into()));
        let mut child = Child::start(&Start {
            arguments,
            namespace: None,
            directory: self.dir.path(),
            name: TRIAL,
            shows_log: self.verbose,
        })?;
        let mut is_told = false;
        while child.status()?.is_none() {
            if self.interrupt.is_set() && !is_told {
                is_told = true;
                child.ask_to_end();
            }
            self.trials.look(child.id());
            std::thread::sleep(LOOK);
        }
        self.trials.finish();
        if is_told || self.interrupt.is_set() {
            return Ok(None);
        }
        child.outcome().map(Some)
    }

    /// A trial's directory as seen from the search's, which may be moved as a whole.
    fn relative(&self, run: &str) -> String {
        let path = PathBuf::from(run);
        let inside = path.strip_prefix(self.dir.path()).unwrap_or(&path);
        inside.display().to_string()
    }

    /// A recorded trial must be the one that the search asks for now.
    fn check_replayed(&self, line: &Line, size: &str, ask: Option<Ask>) -> Result<()> {
        let fits = match ask {
            None => line.ceiling.is_some(),
            Some(ask) => {
                let near = (line.trial.ask.rate_pps - ask.rate_pps).abs() <= ask.rate_pps * 1e-9;
                line.ceiling.is_none() && line.trial.ask.extent == ask.extent && near
            }
        };
        if line.size == size && fits {
            return Ok(());
        }
        bail!(
            "trial {} in {} is not the one this search would make: it was made by another version; start a new search",
            line.number,
            self.dir.file(journal::FILE).display()
        )
    }
}

/// The longest time that a worker of a trial did not poll.
fn longest_stall_ns(summary: &Summary) -> u64 {
    let stalls = summary.workers.iter().map(|worker| worker.poll_gap_ns_max);
    stalls.max().unwrap_or(0)
}

/// Whether the path loses no bunches: the embedded ring pushes back, and drops only what its injector drops.
fn bears_all(send: &SendPlan) -> bool {
    let is_policed = send.fault.as_ref().is_some_and(|fault| fault.limit.is_some());
    let mut ports = send.machine.ports.iter();
    ports.all(|port| port.kind.traits().is_reflected) && !is_policed
}

/// Packets that somebody did not wait for long enough: this trial, or the one before it.
fn overdue(summary: &Summary) -> u64 {
    let of_others = summary.ledger.arrived.foreign.get("other_run");
    summary.late.saturating_add(of_others.copied().unwrap_or(0))
}

/// What a run as fast as possible, or at a share of the line, says about the highest rate.
fn highest(summary: &Summary, extent: Extent) -> (Trial, Ceiling) {
    let rate_pps = summary.rate_asked_pps.unwrap_or(summary.rate_tx_pps);
    let line_bps: f64 = summary
        .ports
        .iter()
        // Other drivers make a speed up.
        .filter(|port| {
            port.uri
                .parse()
                .is_ok_and(|uri: PortUri| uri.kind.traits().medium == Medium::Nic)
        })
        .filter_map(|port| port.link.speed_mbps)
        .map(|mbps| f64::from(mbps) * 1e6)
        .sum();
    let ceiling = if summary.rate_asked_pps.is_some() {
        Ceiling::Asked
    } else if line_bps > 0.0 && summary.rate_tx_bps_l1 >= FULL * line_bps {
        Ceiling::Line
    } else {
        Ceiling::Sender
    };
    let ask = Ask { rate_pps, extent };
    (Trial::of(ask, summary), ceiling)
}
