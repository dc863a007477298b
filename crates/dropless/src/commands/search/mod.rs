//! `dropless search`: trial after trial until the highest rate that the path carries is known, and who was the limit.

pub mod args;
mod disturbance;
mod doubts;
mod journal;
mod patience;
mod plan;
mod progress;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail, ensure};
use host::{Medium, PortUri};
use measure::search::{
    Again, Ask, Ceiling, Extent, INVALID_IN_A_ROW_MAX, Method, Pace, Purpose, Range, Search, SearchReport,
    SearchResult, SizeResult, Step, Trial, remaining,
};
use measure::{Note, Summary};
use report::kinds::search::estimate;
use report::number::{counted, span};
use report::out::Console;
use report::published::{self, Bounds};
use report::rundir::{RunDir, file};

use crate::plan::SendPlan;
use crate::plan::foreign::TRUST;
use crate::run::child::{Child, Ended as ChildEnded, LOOK, Start};
use crate::run::page;
use crate::run::preflight;
use crate::run::signals::Interrupt;
use crate::status::Trials;
pub use args::SearchArgs as Args;
use args::SearchArgs;
use disturbance::Disturbance;
use doubts::doubts;
use journal::{Journal, Line};
use patience::Patience;
use plan::SearchPlan;
use progress::Progress;

/// Where the plan of the trial that runs is.
const TRIAL_PLAN: &str = "trial-plan.json";
/// Where the run directories of the trials are.
const TRIALS: &str = "trials";
/// What the files with the words of the trial that goes on are called.
const TRIAL: &str = "trial-now";
const TRIAL_LOG: &str = "trial-now.log";
const TRIAL_RESULT: &str = "trial-now.json";
/// A trial has opened its ports by then, besides waiting for them.
const STARTING: Duration = Duration::from_secs(20);
/// A rest may end a little later than it should.
const HITCH: Duration = Duration::from_secs(1);
/// Layer 1 as full as the verdict tells it from full.
const FULL: f64 = 0.999;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &SearchArgs) -> Result<u8> {
    let plan = match &args.resume {
        Some(directory) => SearchPlan::load(directory)?.accept(args.trust_plan)?,
        None => SearchPlan::from_args(args)?,
    };
    let console = args.run.output.console();
    if args.dry_run {
        return dry_run(&plan, console);
    }
    let mut trials = Trials::open(&args.run.status.settings()?, "search")?;
    let interrupt = Interrupt::install()?;
    let dir = match &args.resume {
        Some(directory) => RunDir::reopen(directory),
        None => RunDir::create(&args.run.output.runs, "search", SystemTime::now())?,
    };
    if args.resume.is_none() {
        // Without them a search cannot be resumed, so here a failure is one.
        dir.write_json(file::PLAN, &plan)?;
        let _ = dir.write_json(file::HOST, &preflight::host_facts());
    }
    trials.board().run_is_in(dir.path());
    let (journal, recorded) = Journal::open(dir.path())?;
    // Until this one has its answers, nobody shall read those of the process before.
    for stale in [file::SEARCH, file::REPORT] {
        let _ = std::fs::remove_file(dir.file(stale));
    }
    trials.resume(journal.lines);
    let run = Run {
        plan: &plan,
        dir: &dir,
        interrupt: &interrupt,
        verbose: args.run.verbose,
        progress: Progress::new(console, &plan, args.run.verbose),
        trials: &mut trials,
        journal,
        recorded: recorded.into(),
        overhead: (0.0, 0.0),
        wall_s: 0.0,
        made: 0,
        disturbance: Disturbance::default(),
        patience: Patience::default(),
        notes: Vec::new(),
    };
    let mut report = run.go()?;
    report.notes.extend(trials.board().note());
    dir.write_json(file::SEARCH, &report)?;
    page::leave(&dir, console);
    console.human(&report::terminal::search(&report, &console.style()))?;
    console.object(&report)?;
    let exit = report.exit_code();
    let ended = published::Ended {
        verdict: if report.complete { "valid" } else { "" }.into(),
        exit,
        reasons: report.reasons,
    };
    trials.end(ended, &interrupt);
    Ok(exit)
}

/// Says how long it would take.
fn dry_run(plan: &SearchPlan, console: Console) -> Result<u8> {
    let mut sizes = Vec::new();
    for size in &plan.sizes {
        let one = plan.estimate(size, plan.pace())?;
        sizes.push((size.clone(), one));
    }
    console.human(&estimate::render(&sizes, &console.style()))?;
    console.object(&estimate::json(&sizes))?;
    Ok(0)
}

/// A search under way.
struct Run<'r> {
    plan: &'r SearchPlan,
    dir: &'r RunDir,
    interrupt: &'r Interrupt,
    verbose: bool,
    progress: Progress,
    trials: &'r mut Trials,
    journal: Journal,
    /// Trials of an earlier process that are still to be replayed.
    recorded: std::collections::VecDeque<Line>,
    /// Seconds that trials took beyond their own time, and how many there were.
    overhead: (f64, f64),
    /// Seconds that all trials took, with the rests between them, also those of an earlier process.
    wall_s: f64,
    /// Trials so far, replayed ones too.
    made: u64,
    disturbance: Disturbance,
    patience: Patience,
    /// What is to be said of sizes.
    notes: Vec<Note>,
}

/// How the search of one size ended.
enum Ended {
    /// With an answer.
    Done,
    /// Without: these are the reasons.
    Not(Vec<Note>),
}

impl Run<'_> {
    fn go(mut self) -> Result<SearchReport> {
        let mut report = SearchReport {
            run: self.dir.path().display().to_string(),
            method: self.plan.method,
            complete: true,
            settings: (self.plan.method == Method::Rfc2544).then(|| self.plan.rfc2544.clone()),
            ..SearchReport::default()
        };
        for (index, size) in self.plan.sizes.iter().enumerate() {
            let (result, ended) = self.size(index, size)?;
            report.trials += result.result.trials + result.result.invalid_trials;
            report.seconds += result.result.seconds;
            report.sizes.push(result);
            if let Ended::Not(reasons) = ended {
                report.complete = false;
                report.reasons = reasons;
                for size in &self.plan.sizes[index + 1..] {
                    report.sizes.push(self.not_begun(size)?);
                }
                break;
            }
        }
        let text = format!(
            "it took {} in all, with starting, waiting and resting",
            span(self.wall_s)
        );
        report.notes.push(Note::new("time_taken", text));
        report.notes.extend(self.disturbance.note());
        report.notes.append(&mut self.notes);
        self.progress.clear();
        for leftover in [TRIAL_PLAN, TRIAL_LOG, TRIAL_RESULT] {
            let _ = std::fs::remove_file(self.dir.file(leftover));
        }
        ensure!(
            !report.complete || self.recorded.is_empty(),
            "{} holds {} trials more than the plan asks for; it is not this search's",
            self.dir.file(journal::FILE).display(),
            self.recorded.len()
        );
        report.notes.extend(self.dir.note());
        Ok(report)
    }

    /// The result of a size that nothing is known of.
    fn not_begun(&self, size: &str) -> Result<SizeResult> {
        Ok(SizeResult {
            size: size.to_owned(),
            mean_frame_bytes: self.plan.mean_bytes(size)?,
            range: None,
            result: SearchResult::default(),
        })
    }

    /// Searches for frames of one size, the one with this index.
    fn size(&mut self, index: usize, size: &str) -> Result<(SizeResult, Ended)> {
        let mut result = self.not_begun(size)?;
        let mean = result.mean_frame_bytes;
        let begun_s = self.wall_s;
        let (max_pps, ceiling) = match self.plan.max_pps(size)? {
            Some(max) => (max, Ceiling::Asked),
            None => match self.highest(index, size) {
                Ok(Some(highest)) => highest,
                Ok(None) => return Ok((result, self.interrupted())),
                Err(error) if self.journal.lines == 0 || !self.recorded.is_empty() => return Err(error),
                Err(error) => return Ok((result, self.stopped("failed", &format!("{error:#}; stopped")))),
            },
        };
        let range = Range {
            min_pps: self.plan.min_pps(size, max_pps)?,
            max_pps,
            ceiling,
        };
        let mut search = self.plan.search(range);
        let mut asked: Vec<Ask> = Vec::new();
        let mut tried: Vec<Trial> = Vec::new();
        let ended = loop {
            let (ask, purpose) = match search.next() {
                Step::Trial(ask, purpose) => (ask, purpose),
                Step::Done if search.result().complete => break Ended::Done,
                Step::Done => {
                    let trials = search.result().trials;
                    let text = format!(
                        "given up after {trials} trials: the path is not steady enough for these goals"
                    );
                    break Ended::Not(vec![Note::new("unsteady", text)]);
                }
                Step::Failed(mut reasons) => {
                    let text = format!(
                        "given up after {INVALID_IN_A_ROW_MAX} such trials in a row; mend it, then go on with: {}",
                        self.resume()
                    );
                    reasons.push(Note::new("given_up", text));
                    break Ended::Not(reasons);
                }
            };
            // The tests of RFC 2544 count their repetitions themselves.
            let purpose = match self.plan.method {
                Method::Mlr if asked.contains(&ask) => purpose.again(Again::Unsure),
                _ => purpose,
            };
            asked.push(ask);
            let left_s = self.left_s(index, Some(&search), self.wall_s - begun_s)?;
            let replayed = !self.recorded.is_empty();
            if replayed && self.interrupt.is_set() {
                break self.interrupted();
            }
            let line = match self.trial(size, Some(ask), &purpose, left_s) {
                Ok(Some(line)) => line,
                Ok(None) => break self.interrupted(),
                // The first one says what is wrong with the plan; later, what was found stays, and can be gone on with.
                Err(error) if replayed || self.journal.lines == 0 => return Err(error),
                Err(error) => break self.stopped("failed", &format!("{error:#}; stopped")),
            };
            search.record(&line.trial);
            tried.push(line.trial);
            self.tell_bounds(size, &search.result(), &tried);
        };
        result.range = Some(range);
        result.result = search.result();
        result.result.with_bit_rates(mean);
        self.notes.extend(doubts(&result, &tried));
        Ok((result, ended))
    }

    /// Tells who watches between which rates the limits are by now. A burst says nothing of a rate.
    fn tell_bounds(&mut self, size: &str, result: &SearchResult, tried: &[Trial]) {
        let lasting = |trial: &&Trial| matches!(trial.ask.extent, Extent::DurationNs(_));
        let believed = || {
            tried
                .iter()
                .filter(lasting)
                .filter(|trial| trial.invalid.is_empty())
        };
        for goal in &result.goals {
            let (good, bad): (Vec<&Trial>, Vec<&Trial>) =
                believed().partition(|trial| trial.is_good(goal.loss_ratio));
            self.trials.know(Bounds {
                of: format!("{size} {}", goal.name),
                carried_pps: goal.lower.as_ref().map(|bound| bound.rate_pps),
                not_carried_pps: goal.upper.as_ref().map(|bound| bound.rate_pps),
                good_up_to_pps: good.iter().map(|trial| trial.ask.rate_pps).reduce(f64::max),
                bad_from_pps: bad.iter().map(|trial| trial.ask.rate_pps).reduce(f64::min),
            });
        }
    }

    /// Measures the highest rate where nobody gave one: what our sender offers as fast as it can.
    fn highest(&mut self, index: usize, size: &str) -> Result<Option<(f64, Ceiling)>> {
        let purpose = Purpose::new("", "how fast our sender is");
        let left_s = self.left_s(index, None, 0.0)?;
        let Some(line) = self.trial(size, None, &purpose, left_s)? else {
            return Ok(None);
        };
        ensure!(
            line.trial.offered > 0,
            "nothing was sent at the highest rate: {}",
            line.trial
                .invalid
                .first()
                .map_or("no reason is known", |reason| &reason.text)
        );
        Ok(Some((line.trial.ask.rate_pps, line.ceiling.unwrap_or_default())))
    }

    fn interrupted(&self) -> Ended {
        self.stopped("interrupted", "interrupted")
    }

    /// The command that goes on with this search.
    fn resume(&self) -> String {
        let acts = !self.plan.send.machine.acts().is_empty();
        let trust = if acts { format!(" {TRUST}") } else { String::new() };
        format!("dropless search --resume {}{trust}", self.dir.path().display())
    }

    /// Not at its end, for this reason.
    fn stopped(&self, code: &'static str, why: &str) -> Ended {
        let made = counted(self.journal.lines, "trial");
        let text = format!("{why} after {made}; go on with: {}", self.resume());
        Ended::Not(vec![Note::new(code, text)])
    }

    /// Seconds until all is over: of the size that is searched, so far for `spent_s`, and of those after it.
    fn left_s(&self, index: usize, search: Option<&Search>, spent_s: f64) -> Result<f64> {
        // Nobody is told how long a trial takes that was made already.
        if !self.recorded.is_empty() {
            return Ok(0.0);
        }
        let pace = self.pace();
        let size = &self.plan.sizes[index];
        let planned = |size: &str| self.plan.estimate(size, pace).map(|all| all.seconds);
        let known = search.filter(|search| has_bounds(&search.result()));
        let mut left_s = match known {
            Some(search) => remaining(search, pace),
            // Where the limit is was not seen yet: it may be anywhere.
            None => (planned(size)? - spent_s).max(search.map_or(0.0, |search| remaining(search, pace))),
        };
        for size in &self.plan.sizes[index + 1..] {
            left_s += planned(size)?;
        }
        Ok(left_s)
    }

    /// What trials take beyond their own time, as far as is known.
    fn pace(&self) -> Pace {
        let (seconds, trials) = self.overhead;
        if trials < 1.0 {
            return self.plan.pace();
        }
        Pace {
            overhead_s: (seconds / trials).max(0.0),
        }
    }

    /// One trial: replayed if it was made before, else made and recorded. Without an `ask` it measures the highest
    /// rate. `None` when it was interrupted.
    fn trial(
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
            let Some(mut line) = self.make(size, ask, purpose, number)? else {
                return Ok(None);
            };
            line.wall_s = begun.elapsed().as_secs_f64();
            self.journal.append(line.clone())?;
            self.progress.outcome(&line.trial);
            line
        };
        self.made += 1;
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
            ChildEnded::Result(summary) => (longest_stall_ns(summary), overdue(summary)),
            _ => (0, 0),
        };
        let (trial, ceiling, run) = match (ended, ask) {
            (ChildEnded::Failed(why), _) => bail!("a trial could not be run: {why}"),
            (ChildEnded::Result(summary), Some(ask)) => {
                let mut trial = Trial::of(ask, &summary);
                if bears_all(&send) {
                    trial.bunches.clear();
                }
                (trial, None, summary.run)
            }
            (ChildEnded::Result(summary), None) => {
                let (trial, ceiling) = highest(&summary, extent);
                (trial, Some(ceiling), summary.run)
            }
            (ChildEnded::Killed(signal), Some(ask)) => (Trial::killed(ask, signal), None, String::new()),
            (ChildEnded::Killed(signal), None) => bail!(
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
    fn run_child(&mut self, plan: &Path) -> Result<Option<ChildEnded<Summary>>> {
        let runs = self.dir.file(TRIALS);
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

/// Whether every goal knows a rate that was carried and one that was not.
fn has_bounds(result: &SearchResult) -> bool {
    let mut goals = result.goals.iter();
    goals.all(|goal| goal.lower.is_some() && goal.upper.is_some())
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
