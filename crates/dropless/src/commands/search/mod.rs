//! `dropless search`: trial after trial until the highest rate that the path carries is known, and who was the limit.

pub mod args;
mod disturbance;
mod doubts;
mod journal;
mod left;
mod patience;
mod plan;
mod progress;
mod trial;

use anyhow::{Result, ensure};
use measure::Note;
use measure::search::{
    Again, Ask, Ceiling, Extent, INVALID_IN_A_ROW_MAX, Method, Purpose, Range, SearchReport, SearchResult,
    SizeResult, Step, Trial,
};
use report::Style;
use report::kinds::search::estimate;
use report::number::{counted, span};
use report::out::Console;
use report::published::{self, Bounds};
use report::rundir::{RunDir, WriteError, file};

use crate::about::About as _;
use crate::plan::foreign::TRUST;
use crate::run::finish::{Finish, Outcome};
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
const TRIAL_LOG: &str = "trial-now.log";
const TRIAL_RESULT: &str = "trial-now.json";
/// Runs the subcommand; the result is its exit code.
pub fn run(args: &SearchArgs) -> Result<u8> {
    let plan = match &args.resume {
        Some(directory) => SearchPlan::load(directory)
            .and_then(|plan| plan.accept(args.trust_plan))
            .about("--resume")?,
        None => SearchPlan::from_args(args)?,
    };
    let console = args.output.console();
    for note in plan.send.hosts() {
        console.human(&format!("{}\n", note.text))?;
    }
    if args.dry_run {
        return dry_run(&plan, console);
    }
    let mut trials = Trials::open(&args.status.settings()?, "search")?;
    let interrupt = Interrupt::install()?;
    let dir = match &args.resume {
        Some(directory) => RunDir::reopen(directory).called(args.output.name.as_deref()),
        None => args.output.place().make("search")?,
    };
    if args.resume.is_none() {
        // Without them a search cannot be resumed, so here a failure is one.
        dir.write_labelled(file::PLAN, &plan)?;
        let _ = dir.write_json(file::HOST, &preflight::host_facts());
    }
    trials.board().run_is_in(dir.path());
    let (journal, recorded) = Journal::open(dir.path())?;
    trials.resume(journal.lines);
    let run = Run {
        plan: &plan,
        dir: &dir,
        interrupt: &interrupt,
        verbose: args.verbose,
        progress: Progress::new(console, &plan, args.verbose),
        trials: &mut trials,
        journal,
        recorded: recorded.into(),
        overhead: (0.0, 0.0),
        wall_s: 0.0,
        made: 0,
        sending_s: 0.0,
        disturbance: Disturbance::default(),
        patience: Patience::default(),
        notes: plan.send.hosts(),
    };
    let report = run.go()?;
    let finish = Finish {
        dir: &dir,
        console,
        board: Some(trials.board()),
    };
    let exit = finish.with(report, |report, state| trials.settle(report.complete, state))?;
    trials.board().linger(&interrupt);
    Ok(exit)
}

impl Outcome for SearchReport {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }

    fn write(&self, dir: &RunDir) -> Result<(), WriteError> {
        // Ended among the trials of a process before, it knows less than that one did.
        if !self.complete && dir.file(file::SEARCH).exists() {
            return Ok(());
        }
        dir.write_labelled(file::SEARCH, self)
    }

    fn text(&self, style: &Style) -> String {
        report::terminal::search(self, style)
    }

    fn ended(&self) -> published::Ended {
        published::Ended {
            verdict: if self.complete { "valid" } else { "" }.into(),
            exit: self.exit_code(),
            reasons: self.reasons.clone(),
        }
    }
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
    /// Seconds that they sent.
    sending_s: f64,
    disturbance: Disturbance,
    patience: Patience,
    /// What is to be said of sizes.
    notes: Vec<Note>,
}

/// How the search of one size ended.
enum Ended {
    /// With an answer.
    Done,
    /// Without: these are the reasons, and nothing comes after it.
    Not(Vec<Note>),
    /// Without trials, for a reason that is none against other sizes.
    Refused(Note),
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
            report.sizes.push(result);
            if let Ended::Refused(reason) = ended {
                report.complete = false;
                report.reasons.push(reason);
            } else if let Ended::Not(reasons) = ended {
                report.complete = false;
                report.reasons.extend(reasons);
                for size in &self.plan.sizes[index + 1..] {
                    report.sizes.push(self.not_begun(size)?);
                }
                break;
            }
        }
        // As the journal has them: also those that only measured the highest rate, which no size counts.
        (report.trials, report.seconds) = (self.made, self.sending_s);
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
        let min_pps = match self.plan.min_pps(size, max_pps) {
            Ok(min_pps) => min_pps,
            Err(error) => {
                let reason = Note::new("range_empty", format!("size {size}: {error:#}"));
                return Ok((result, Ended::Refused(reason)));
            }
        };
        let range = Range {
            min_pps,
            max_pps,
            ceiling,
        };
        let mut search = self.plan.search(range);
        let mut asked: Vec<Ask> = Vec::new();
        let mut tried: Vec<Trial> = Vec::new();
        let ended = loop {
            let (ask, purpose) = match search.next() {
                Step::Trial(ask, purpose) => (ask, purpose),
                Step::Done if !tried.is_empty() && tried.iter().all(Trial::brought_nothing) => {
                    let text = format!(
                        "nothing came back in any of {}: is `dropless reflect` running at the far side, and does it know a way back (--from)? `dropless send` says more of the path",
                        counted(tried.len() as u64, "trial")
                    );
                    break Ended::Not(vec![Note::new("nothing_received", text)]);
                }
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
            let replayed = !self.recorded.is_empty();
            // Of many that are replayed, nobody asks what is left after each.
            let left_s = if replayed {
                0.0
            } else {
                self.left_s(index, Some(&search), self.wall_s - begun_s)?
            };
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
            if self.recorded.is_empty() {
                self.tell_bounds(size, &search.result(), &tried);
            }
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
        for made in 1.. {
            let Some(line) = self.trial(size, None, &purpose, left_s)? else {
                return Ok(None);
            };
            let reason = line.trial.invalid.first();
            ensure!(
                line.trial.offered > 0,
                "nothing was sent at the highest rate: {}",
                reason.map_or("no reason is known", |reason| &reason.text)
            );
            let Some(reason) = reason else {
                return Ok(Some((line.trial.ask.rate_pps, line.ceiling.unwrap_or_default())));
            };
            ensure!(
                made < INVALID_IN_A_ROW_MAX,
                "the highest rate could not be measured in {made} trials; mend it, or give --max-rate: {}",
                reason.text
            );
        }
        Ok(None)
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
}
