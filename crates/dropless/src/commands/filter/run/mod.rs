//! `dropless filter run`: rules in force on an interface, in XDP.

mod active;
mod args;
mod lockout;
mod received;
mod refusals;

use anyhow::{Context as _, Result};
use host::Sys;
use measure::{FilterSummary, Judged, Note, Validity};
use report::published::Ended;
use xdp::{Kept, Mode, Sampling, Wanted};

use crate::plan::FilterPlan;
use crate::run::rulebook::{Rulebook, Rules};
use crate::run::signals::{Hangup, Interrupt};
use crate::run::{self, claim, page};
use crate::status::StatusBoard;
use active::{Active, End};
pub use args::Args;
use lockout::Session;
use received::{Level, Received};

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let plan = args.plan()?;
    let board = StatusBoard::open(&args.status.settings()?, "filter")?;
    let interrupt = Interrupt::install_with(Hangup::Reload)?;
    let console = args.output.console();
    let rules = Rules::read(&plan.rules)?;
    let interface = host::device(&Sys::live(), &plan.interface)?;
    let name = &interface.name;
    let index = host::interface::index(&Sys::live(), name).context("the interface has gone")?;
    let (_claim, removed) = claim::interface(name, index, true)?;
    let session = (!plan.force).then(|| Session::through(name)).flatten();
    if let Some(session) = &session {
        session.is_kept_by(&rules.set)?;
    }
    let before = Level::of(name);
    let kept = start(&plan, index, &rules)?;
    let received = Received::begin(&interface, !plan.generic, before, 0);
    let dir = run::directory(&args.output.runs, &plan, &board)?;
    // What is in force is asked, and not what was wanted.
    let in_force = kept.in_force().context("the kernel does not say what is in force")?;
    let mode = match in_force.and_then(|found| found.mode) {
        Some(Mode::Native) => "native",
        Some(Mode::Generic) => "generic",
        None => "unknown",
    };
    if !console.quiet {
        let text = format!(
            "{} in force on {name} ({mode} mode); Ctrl-C ends it; results in {}\n",
            report::number::counted(rules.set.rules.len() as u64, "rule"),
            dir.path().display()
        );
        let _ = report::out::print_stderr(&text);
    }
    let mut summary = FilterSummary {
        run: dir.path().display().to_string(),
        interface: name.clone(),
        mode: mode.to_owned(),
        rules: plan.rules.display().to_string(),
        stays: plan.stay,
        ..FilterSummary::default()
    };
    let book = Rulebook::new(&plan.rules, rules);
    let mut active = Active::new(kept, book, session, &plan);
    let end = active.go(&interrupt, &board, console);
    let level = Level::of(name);
    let ended = active.end()?;
    summary.judged = ended.judged;
    summary.generation = ended.generation;
    (summary.reloads, summary.reloads_refused) = ended.reloads;
    summary.duration_s = ended.lasted.as_secs_f64();
    let rate = |packets: u64| packets as f64 / summary.duration_s.max(1e-3);
    summary.rate_pps = rate(summary.judged.packets());
    summary.rate_allowed_pps = rate(summary.judged.allowed);
    summary.interrupted = end == End::Asked;
    summary.notes.extend(removed);
    if end == End::Displaced {
        let text = format!(
            "the rules were taken off {name} after {:.1} s by somebody else, or the interface has gone: what arrived since was not judged",
            summary.duration_s
        );
        summary.reasons.push(Note::new("displaced", text));
    } else {
        let check = received
            .zip(level)
            .and_then(|(received, level)| received.check(level, summary.judged.packets(), plan.stay));
        judge(&mut summary, check);
    }
    if summary.reasons.is_empty() {
        summary.verdict = Validity::Valid;
    }
    summary.notes.extend(dir.note());
    let _ = dir.write_result(&summary);
    page::leave(&dir, console);
    summary.notes.extend(board.note());
    tell_end(&summary, &board);
    console.human(&report::terminal::render(&summary, &console.style()))?;
    console.object(&summary)?;
    board.linger(&interrupt);
    Ok(summary.exit_code())
}

/// Puts the rules in force.
fn start(plan: &FilterPlan, index: u32, rules: &Rules) -> Result<Kept> {
    let wanted = Wanted {
        interface: index,
        mode: if plan.generic { Mode::Generic } else { Mode::Native },
        groups: plan.groups,
        sampling: Sampling::default(),
    };
    Kept::start(&wanted, &rules.set, &rules.tables).map_err(|error| refusals::attach(error, plan))
}

/// Holds the filter's counts against the interface's own.
fn judge(summary: &mut FilterSummary, check: Option<measure::InterfaceCheck>) {
    summary.interface_check = check;
    match check {
        Some(check) if !check.holds() => {
            let text = format!(
                "{} judged, but {} received {} to {} meanwhile, by its own counter",
                check.judged, summary.interface, check.at_least, check.at_most
            );
            summary.reasons.push(Note::new("counters_disagree", text));
        }
        Some(_) => {}
        None => {
            let text = format!(
                "no other counter of {} could be held against these counts ({} mode; drivers differ in what they count as received)",
                summary.interface, summary.mode
            );
            summary.notes.push(Note::new("counts_not_checked", text));
        }
    }
}

fn tell_end(summary: &FilterSummary, board: &StatusBoard) {
    let ended = Ended {
        verdict: summary.verdict.name().into(),
        exit: summary.exit_code(),
        reasons: summary.reasons.clone(),
    };
    board.end(ended, |state| {
        active::total(state, &summary.judged);
        state.elapsed_s = summary.duration_s;
        if let Some(rules) = &mut state.rules {
            rules.judged = Judged::busiest(&summary.judged, run::rulebook::TOLD_MAX);
        }
    });
}
