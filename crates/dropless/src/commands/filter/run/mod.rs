//! `dropless filter run`: rules in force on an interface, in XDP.

mod active;
mod args;
mod samples;

use anyhow::{Context as _, Result};
use host::Sys;
use measure::{FilterSummary, Judged, Note, Validity};
use report::number::counted;
use report::published::{Ended, unix_ms};
use rules::Totals;
use xdp::{About, Kept, Mode, Sampling, Wanted};

use crate::plan::FilterPlan;
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::received::{Level, Received};
use crate::run::on_interface::{self, refusals};
use crate::run::rulebook::{Rulebook, Rules};
use crate::run::signals::{Hangup, Interrupt};
use crate::run::{self, claim, page};
use crate::status::StatusBoard;
use active::{Active, End};
pub use args::Args;
use samples::Writer;

/// Samples that wait to be written.
const SAMPLE_ROOM: u32 = 4 << 20;

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
    let (_claim, removed) = claim::interface(name, index, !plan.stay)?;
    let session = (!plan.force).then(|| Session::through(name)).flatten();
    if let Some(session) = &session {
        session.is_kept_by(&rules.set)?;
    }
    let mut writer = plan
        .sample
        .as_ref()
        .map(|plan| Writer::create(plan, name))
        .transpose()?;
    let before = Level::of(name);
    let kept = start(&plan, index, &rules)?;
    let taken_over = kept.taken_over().map_or(0, packets);
    let received = Received::begin(&interface, !plan.generic, before, taken_over);
    let dir = run::directory(&args.output.runs, &plan, &board)?;
    // What is in force is asked, and not what was wanted.
    let in_force = kept
        .in_force()
        .context("the kernel does not say what is in force")?;
    let mode = match in_force.and_then(|found| found.mode) {
        Some(Mode::Native) => "native",
        Some(Mode::Generic) => "generic",
        None => "unknown",
    };
    let count = counted(rules.set.rules.len() as u64, "rule");
    let mut summary = FilterSummary {
        run: dir.path().display().to_string(),
        interface: name.clone(),
        mode: mode.to_owned(),
        rules: plan.rules.display().to_string(),
        stays: plan.stay,
        taken_over,
        ..FilterSummary::default()
    };
    let book = Rulebook::new(&plan.rules, rules);
    let mut active = Active::new(kept, book, session, &plan);
    // Whoever waits for the line below finds the rules on the board.
    active.tell(&board);
    if !console.quiet {
        let end = if plan.stay {
            format!("they stay until: dropless filter stop {name}")
        } else {
            "Ctrl-C ends them".to_owned()
        };
        let taken = match taken_over {
            0 => String::new(),
            _ => format!(", taken over with {} counted", counted(taken_over, "packet")),
        };
        let text = format!(
            "{count} in force on {name} ({mode} mode){taken}; {end}; results in {}\n",
            dir.path().display()
        );
        let _ = report::out::print_stderr(&text);
    }
    let end = active.go(&interrupt, &board, console, writer.as_mut());
    let level = Level::of(name);
    let ended = active.end(writer.as_mut())?;
    if let Some(writer) = writer {
        let (samples, note) = writer.finish(ended.samples);
        summary.samples = Some(samples);
        summary.notes.extend(note);
    }
    summary.judged = ended.judged;
    summary.generation = ended.generation;
    (summary.reloads, summary.reloads_refused) = ended.reloads;
    summary.duration_s = ended.lasted.as_secs_f64();
    let rate = |packets: u64| packets as f64 / summary.duration_s.max(1e-3);
    summary.rate_pps = rate(summary.judged.packets().saturating_sub(taken_over));
    summary.rate_allowed_pps = rate(summary.judged.allowed.saturating_sub(ended.before.allowed));
    if plan.stay && end != End::Displaced {
        let text = format!(
            "the rules stay in force on {name}; fix, if they should not: dropless filter stop {name}"
        );
        summary.notes.push(Note::new("filter_stays", text));
    }
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
        summary.interface_check = check;
        match on_interface::judge(check, name, &summary.mode) {
            Ok(note) => summary.notes.extend(note),
            Err(reason) => summary.reasons.push(reason),
        }
    }
    if summary.reasons.is_empty() {
        summary.verdict = Validity::Valid;
    }
    summary.notes.extend(dir.note());
    let _ = dir.write_result(&summary);
    page::leave(&dir, console);
    summary.notes.extend(board.note());
    tell_end(&summary, &ended.before, &board);
    console.human(&report::terminal::render(&summary, &console.style()))?;
    console.object(&summary)?;
    board.linger(&interrupt);
    Ok(summary.exit_code())
}

/// All that were judged.
fn packets(totals: &Totals) -> u64 {
    totals.rules.values().map(|count| count.packets).sum()
}

/// Puts the rules in force.
fn start(plan: &FilterPlan, index: u32, rules: &Rules) -> Result<Kept> {
    let wanted = Wanted {
        interface: index,
        mode: if plan.generic { Mode::Generic } else { Mode::Native },
        groups: plan.groups,
        sampling: Sampling {
            denied_per_second: plan.sample.as_ref().map_or(0, |sample| sample.per_second),
            every: 0,
            room: SAMPLE_ROOM,
        },
    };
    let about = About {
        interface: &plan.interface,
        file: &std::path::absolute(&plan.rules)
            .unwrap_or_else(|_| plan.rules.clone())
            .display()
            .to_string(),
        by: env!("CARGO_PKG_VERSION"),
        now_unix_ms: unix_ms(),
    };
    let kept = if plan.stay {
        Kept::stay(&wanted, &about, &rules.set, &rules.tables)
    } else {
        Kept::start(&wanted, &rules.set, &rules.tables)
    };
    kept.map_err(|error| refusals::attach(error, &plan.interface))
}

fn tell_end(summary: &FilterSummary, before: &Judged, board: &StatusBoard) {
    let ended = Ended {
        verdict: summary.verdict.name().into(),
        exit: summary.exit_code(),
        reasons: summary.reasons.clone(),
    };
    board.end(ended, |state| {
        on_interface::total(state, &summary.judged, before);
        state.elapsed_s = summary.duration_s;
        if let Some(rules) = &mut state.rules {
            rules.judged = Judged::busiest(&summary.judged, run::rulebook::TOLD_MAX);
        }
    });
}
