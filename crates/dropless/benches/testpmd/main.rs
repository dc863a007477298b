//! `./dev bench`: every figure of dropless beside that of `dpdk-testpmd` on the same device, alternating in one run.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that cannot be made ends like a failed test, and its row says so"
)]

#[path = "../../tests/polling/support/mod.rs"]
mod support;

mod args;
mod attempt;
mod flat;
mod machine;
mod ours;
mod page;
mod results;
mod rounds;
mod row;
mod statistics;
mod table;
mod tables;
mod taps;
mod theirs;
mod viewers;
mod worker;

use std::process::ExitCode;

use args::Args;
use flat::FLATS;
use machine::Machine;
use results::Results;
use rounds::Bench;
use row::ROWS;

fn main() -> ExitCode {
    let args = Args::parse();
    let Some(args) = args else {
        // `cargo test --all-targets` starts benchmarks too, and a test run is no place to measure.
        println!("measures only in `cargo bench`: ./dev bench");
        return ExitCode::SUCCESS;
    };
    let machine = match Machine::prepare() {
        Ok(machine) => machine,
        Err(reason) => {
            eprintln!("bench: {reason}");
            return ExitCode::from(2);
        }
    };
    for note in &machine.notes {
        eprintln!("bench: {note}");
    }
    let results = measure(&args, &machine);
    print!("\n{}", results.markdown(&machine));
    results.write(&machine);
    results.exit_code()
}

/// Measures what was asked for, row by row; an interrupt ends it after the round under way.
fn measure(args: &Args, machine: &Machine) -> Results {
    let bench = Bench::new(args, machine);
    let mut results = Results::new(args);
    for row in ROWS.iter().filter(|row| args.wants(row.name)) {
        if machine.interrupted() {
            break;
        }
        let rounds = rounds::of_row(&bench, row);
        eprintln!("{}", table::line(&rounds, results.judged));
        results.rows.push(rounds);
    }
    for flat in FLATS.iter().filter(|flat| args.wants(flat.name)) {
        if machine.interrupted() {
            break;
        }
        let rounds = flat::measure(&bench, flat);
        eprintln!("{}", table::flat_line(&rounds));
        results.flats.push(rounds);
    }
    results.complete = args.is_full() && !machine.interrupted();
    results
}
