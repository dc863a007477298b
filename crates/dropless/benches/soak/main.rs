//! `./dev soak`: rounds drawn from seeds, under faults, reloads, kills and thieves; after each everything must balance.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a round that cannot go on ends like a failed test, and its record says why"
)]
#![allow(missing_docs, reason = "what a program has to itself")]

#[path = "../../tests/polling/support/mod.rs"]
mod support;

#[allow(dead_code, reason = "a round has its lab already")]
#[path = "../testpmd/attempt.rs"]
mod attempt;
#[allow(dead_code, reason = "its target directory alone is wanted")]
#[path = "../testpmd/page.rs"]
mod page;

mod args;
mod balance;
mod kinds;
mod memory;
mod plan;
mod record;
mod round;
mod thief;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use measure::units::format_count;

use args::Args;
use attempt::caught;
use balance::Account;
use plan::{Kind, Plan, after};
use record::{Record, Records};
use round::{Round, STOPPED, is_stopped, left_behind};
use support::proc::hugepages_free_bytes;
use support::{Lab, Need, require, until};

const HOURS: f64 = 2.0;
/// Until what a killed process had is gone.
const SETTLING: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --all-targets` starts benchmarks too.
        println!("soaks only in `cargo bench`: ./dev soak");
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    if args.list {
        print!("{}", args::list());
        return ExitCode::SUCCESS;
    }
    match soak(&args) {
        Ok(records) if records.is_empty() => ExitCode::from(2),
        Ok(records) => ExitCode::from(u8::from(records.failures().next().is_some())),
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

/// Plays rounds until the time, the rounds or the packets are over, or somebody ends it.
fn soak(args: &Args) -> Result<Records, String> {
    watch_for_interrupts()?;
    let program = args.program.as_deref().map(Path::canonicalize).transpose();
    let program = program.map_err(|error| format!("--program: {error}"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut seed = args.seed.unwrap_or(now.as_nanos() as u32);
    let place = page::target()
        .join("soak")
        .join(format!("{}-{seed}", now.as_secs()));
    let mut records =
        Records::begin(place.clone()).map_err(|error| format!("{}: {error}", place.display()))?;
    println!(
        "soak: seed {seed}; every round is a line of {}",
        records.file().display()
    );
    let limit = args
        .hours
        .or((args.packets.is_none() && args.rounds.is_none() && !args.each).then_some(HOURS));
    let begun = Instant::now();
    // What panics is told with its round.
    std::panic::set_hook(Box::new(|_| {}));
    let mut number = 0;
    while !is_stopped() && limit.is_none_or(|hours| begun.elapsed().as_secs_f64() < hours * 3600.0) {
        if args.rounds.is_some_and(|rounds| number >= rounds) {
            break;
        }
        let Some(plan) = next_plan(args, &records, &mut seed) else {
            break;
        };
        number += 1;
        let Some(record) = play(number, plan, program.as_deref(), records.directory()) else {
            break;
        };
        tell(&record, args, &records);
        records.add(record).map_err(|error| error.to_string())?;
    }
    let _ = std::panic::take_hook();
    summarize(args, &records, begun.elapsed());
    Ok(records)
}

/// The next round that is wanted; none where all packets that were asked for are carried, or each kind had its round.
fn next_plan(args: &Args, records: &Records, seed: &mut u32) -> Option<Plan> {
    let is_asked = |kind: Kind| args.only.is_empty() || args.only.contains(&kind);
    let is_wanted = |kind: Kind| is_asked(kind) && !(args.each && records.rounds_of(kind).next().is_some());
    if args.packets.is_none() && !plan::drawn().any(is_wanted) {
        return None;
    }
    loop {
        let this = *seed;
        *seed = after(this);
        if let Some(packets) = args.packets {
            let wanted = |kind: &Kind| is_asked(*kind) && records.totals(*kind).0 < packets;
            let kind = [Kind::LongRing, Kind::LongMemif].into_iter().find(wanted)?;
            return Some(Plan::long(this, kind));
        }
        let plan = Plan::draw(this, args.seconds);
        if is_wanted(plan.kind) {
            return Some(plan);
        }
    }
}

/// Plays a round in a lab of its own; none if it was interrupted, or cannot be played here.
fn play(number: u64, plan: Plan, program: Option<&Path>, directory: &Path) -> Option<Record> {
    let mut lab: Lab = require(&[Need::Namespaces, Need::Tool("taskset"), Need::Processors(2)])?;
    if let Some(program) = program {
        lab = lab.with_program(program);
    }
    let free = hugepages_free_bytes();
    let begun = Instant::now();
    let (mut account, commands) = {
        let round = Round::new(&plan, &lab);
        let mut account = caught(|| kinds::play(&round)).unwrap_or_else(|words| Account {
            problems: vec![words],
            ..Account::default()
        });
        let nothing = account.packets == 0 && account.problems.is_empty();
        account.holds(|| "nothing was sent".into(), !nothing);
        account.problems.extend(round.grown());
        (account, round.commands())
    };
    let seconds = begun.elapsed().as_secs_f64();
    if is_stopped() {
        return None;
    }
    until(SETTLING, || {
        left_behind(lab.directory()).is_empty() && hugepages_free_bytes() >= free
    });
    account.problems.extend(left_behind(lab.directory()));
    let left = hugepages_free_bytes();
    account.holds(
        || format!("{} MiB of hugepages are free, {} were", left >> 20, free >> 20),
        left >= free,
    );
    let mut record = Record {
        round: number,
        plan,
        seconds,
        account,
        commands,
        kept: None,
    };
    if !record.is_sound() {
        let name = format!("round-{number}-{}", record.plan.kind.name());
        let _ = std::fs::write(lab.path("problems.txt"), record.account.problems.join("\n\n"));
        record.kept = Some(lab.keep(&directory.join(name)));
    }
    Some(record)
}

/// A line for the round, and the lines of what does not hold.
fn tell(record: &Record, args: &Args, before: &Records) {
    println!("{}", record.line());
    if args.packets.is_some() {
        let (packets, unexplained) = before.totals(record.plan.kind);
        println!(
            "       {} so far: {} packets, {} unexplained",
            record.plan.kind.name(),
            format_count(packets + record.account.packets),
            format_count(unexplained + record.account.unexplained)
        );
    }
    for problem in &record.account.problems {
        // The rest of what a process said stands in its file.
        println!("       {}", problem.lines().next().unwrap_or_default());
    }
}

fn summarize(args: &Args, records: &Records, time: Duration) {
    let seconds = args
        .seconds
        .map_or_else(String::new, |seconds| format!(" --seconds {seconds}"));
    println!("\n{:.2} h\n\n{}", time.as_secs_f64() / 3600.0, records.table());
    for failure in records.failures() {
        println!(
            "\nround {} failed; again: ./dev soak --seed {} --rounds 1{seconds}",
            failure.round, failure.plan.seed
        );
        for command in &failure.commands {
            println!("  {command}");
        }
        if let Some(kept) = &failure.kept {
            println!("  kept: {}", kept.display());
        }
    }
}

/// The first Ctrl-C ends the round in order, the second one the program.
fn watch_for_interrupts() -> Result<(), String> {
    let stopped = STOPPED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(stopped))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stopped)))
            .map_err(|error| format!("watching for Ctrl-C: {error}"))?;
    }
    Ok(())
}
