//! `dropless filter run`: rules in force on an interface, in XDP.

mod active;
mod args;
mod samples;

use anyhow::{Context as _, Result};
use host::Sys;
use measure::{FilterSummary, Judged, Note, Validity};
use report::number::counted;
use report::published::{State, unix_ms};
use rules::Totals;
use xdp::{About, Kept, Mode, Sampling, Wanted};

use crate::about::About as _;
use crate::plan::FilterPlan;
use crate::run::finish::Finish;
use crate::run::on_interface::lockout::Session;
use crate::run::on_interface::received::{Level, Received};
use crate::run::on_interface::tags::{self, ThroughXdp};
use crate::run::on_interface::{self, End, refusals};
use crate::run::rulebook::{Rulebook, Rules};
use crate::run::signals::{Hangup, Interrupt};
use crate::run::{self, claim};
use crate::status::StatusBoard;
use active::{Active, Came};
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
    let interface = host::device(&Sys::live(), &plan.interface, "--dev ").about("--dev")?;
    let name = &interface.name;
    let index = host::link::index(&Sys::live(), name).context("the interface has gone")?;
    let (_claim, removed) = claim::interface(name, index, !plan.stay).about("--dev")?;
    let session = (!plan.force).then(|| Session::through(name)).flatten();
    if let Some(session) = &session {
        session.is_kept_by(&rules.set)?;
    }
    ThroughXdp::interface(name).shows_tags_to(&rules.set)?;
    let mut writer = plan
        .sample
        .as_ref()
        .map(|plan| Writer::create(plan, name))
        .transpose()
        .about("--sample")?;
    let before = Level::of(index);
    let kept = start(&plan, index, &rules)?;
    let taken_over = kept.taken_over().map_or(0, packets);
    let gone = kept.gone().map(|gone| was_gone(name, packets(gone)));
    let forgot = (kept.forgot_rates() && !rules.tables.rates.is_empty()).then(rates_begin_anew);
    let rights = on_interface::drop_rights(name);
    let received = Received::begin(&interface, !plan.generic, before, taken_over);
    let dir = run::directory(&args.output.place(), &plan, &board)?;
    // What is in force is asked, and not what was wanted.
    let mode = on_interface::mode_in_force(&kept)?;
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
        say(&summary, &count);
    }
    for note in gone.into_iter().chain(forgot) {
        console.error(&note.text);
        summary.notes.push(note);
    }
    let end = active.go(&interrupt, &board, console, writer.as_mut());
    let level = Level::of(index);
    let ended = active.end(end, writer.as_mut())?;
    if let Some(writer) = writer {
        let (samples, note) = writer.finish(ended.samples);
        summary.samples = Some(samples);
        summary.notes.extend(note);
    }
    let before = ended.before.clone();
    sum_up(&mut summary, ended);
    summary.interrupted = end == End::Asked;
    summary.notes.extend(removed);
    summary.notes.extend(rights);
    summary.notes.extend(tags::notes(&interface, mode));
    if end == End::Displaced {
        let reason = on_interface::displaced(name, summary.duration_s);
        summary.reasons.push(reason);
    } else {
        check(&mut summary, received.zip(level));
    }
    if summary.reasons.is_empty() {
        summary.verdict = Validity::Valid;
    }
    let finish = Finish {
        dir: &dir,
        console,
        board: Some(&board),
    };
    let exit = finish.with(summary, |summary, state| settle(summary, &before, state))?;
    board.linger(&interrupt);
    Ok(exit)
}

/// That rules which should have stayed had gone.
fn was_gone(name: &str, judged: u64) -> Note {
    let had = counted(judged, "packet");
    let text = format!(
        "the rules that should have stayed in force on {name} were taken off by somebody after {had}; what arrived until now was not judged"
    );
    Note::new("filter_was_gone", text)
}

/// That what rates knew was not taken over.
fn rates_begin_anew() -> Note {
    let text = "rates begin anew, and each group may send its burst again: the table of groups that stayed has not the size that --groups asks for, or has gone";
    Note::new("rates_begin_anew", text)
}

/// Says that the rules are in force, and how that ends.
fn say(summary: &FilterSummary, count: &str) {
    let (name, mode) = (&summary.interface, &summary.mode);
    let end = if summary.stays {
        format!("they stay until: dropless filter stop {name}")
    } else {
        "Ctrl-C ends them".to_owned()
    };
    let taken = match summary.taken_over {
        0 => String::new(),
        packets => format!(", taken over with {} counted", counted(packets, "packet")),
    };
    let text = format!(
        "{count} in force on {name} ({mode} mode){taken}; {end}; results in {}\n",
        summary.run
    );
    let _ = report::out::print_stderr(&text);
}

fn sum_up(summary: &mut FilterSummary, came: Came) {
    match came.off {
        Ok(note) => summary.notes.extend(note),
        Err(reason) => summary.reasons.push(reason),
    }
    summary.judged = came.judged;
    summary.generation = came.generation;
    (summary.reloads, summary.reloads_refused) = came.reloads;
    summary.duration_s = came.lasted.as_secs_f64();
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / summary.duration_s.max(1e-3);
    summary.rate_pps = rate(summary.judged.packets(), summary.taken_over);
    summary.rate_allowed_pps = rate(summary.judged.allowed, came.before.allowed);
}

/// Of a filter that was in force to the end: holds its counts against the interface's own.
fn check(summary: &mut FilterSummary, received: Option<(Received, Level)>) {
    let name = &summary.interface;
    if summary.stays {
        let text = format!(
            "the rules stay in force on {name}; fix, if they should not: dropless filter stop {name}"
        );
        summary.notes.push(Note::new("filter_stays", text));
    }
    let judged = summary.judged.packets();
    let check = received.and_then(|(received, level)| received.check(level, judged, summary.stays));
    summary.interface_check = check;
    match on_interface::judge(check, name, &summary.mode) {
        Ok(note) => summary.notes.extend(note),
        Err(reason) => summary.reasons.push(reason),
    }
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
        .about("--dev")
}

/// Makes the state that was told last what the result says.
fn settle(summary: &FilterSummary, before: &Judged, state: &mut State) {
    on_interface::total(state, &summary.judged, before);
    state.elapsed_s = summary.duration_s;
    if let Some(rules) = &mut state.rules {
        rules.judged = Judged::busiest(&summary.judged, run::rulebook::TOLD_MAX);
    }
}
