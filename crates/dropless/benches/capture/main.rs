//! `./dev bench capture`: what capturing costs, beside the bare costs, the known pipeline, and the tools that are there.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that cannot be made ends like a failed test, and its row says so"
)]

#[path = "../../tests/polling/support/mod.rs"]
mod support;

#[path = "../testpmd/attempt.rs"]
mod attempt;
#[path = "../testpmd/machine.rs"]
mod machine;
#[path = "../testpmd/page.rs"]
mod page;
#[path = "../testpmd/statistics.rs"]
mod statistics;
#[path = "../testpmd/tables.rs"]
mod tables;

mod costs;
mod disk;
mod flow;
mod reading;
mod results;
mod scattered;
mod tools;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use dpdk::{Eal, Pool};

use attempt::attempt;
use costs::Subjects;
use flow::Four;
use machine::Machine;
use results::Results;
use tools::{Link, TOOLS};

const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
const PARTS: [&str; 6] = ["costs", "scattered", "four", "disk", "tools", "read"];

/// Measures capturing: what a packet costs on one core, what reading it costs, the disk, and the highest rate without loss
/// beside other tools.
#[derive(Parser)]
#[command(
    bin_name = "./dev bench capture",
    after_help = "Parts: costs scattered four disk tools read. A full run writes its part of docs/benchmark.md.
Exit codes: 0 every target was met; 1 one was not; 2 something could not be measured."
)]
struct Args {
    /// Parts to measure [default: all]
    #[arg(value_name = "PART", value_parser = PARTS)]
    parts: Vec<String>,
    /// Rounds; medians are told
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// What cargo tells a benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

/// Rounds of the disk, at least.
const DISK_ROUNDS: u32 = 6;

/// Measures a part.
type Measure = fn(&Args, &Machine, &mut Results) -> Result<(), Box<dyn Error>>;

impl Args {
    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --all-targets` starts benchmarks too, and a test run is no place to measure.
        println!("measures only in `cargo bench`: ./dev bench capture");
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
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
    let mut results = Results::new(args.rounds);
    // EAL starts once a process: what is measured in this one goes together.
    let parts: [(&[&'static str], Measure); 4] = [
        (&PARTS[..3], in_process),
        (&PARTS[3..4], disk),
        (&PARTS[4..5], tools),
        (&PARTS[5..], read),
    ];
    for (names, measure) in parts {
        if machine.interrupted() || !names.iter().any(|name| args.wants(name)) {
            continue;
        }
        eprintln!("bench: {}", names.join(" "));
        if let Err(error) = measure(&args, &machine, &mut results) {
            results.failed.push((names[0], error.to_string()));
        }
    }
    let text = results.markdown(&machine);
    print!("\n{text}");
    let json = format!("{:#}\n", results.json(&machine));
    page::write(&page::target().join("bench/capture.json"), &json);
    if args.parts.is_empty() && !machine.interrupted() {
        page::replace("capture", &text);
    }
    results.exit_code()
}

/// The environment of the parts that are measured in this process, on the worker's core: in a thread of its own, since
/// DPDK pins whoever starts it, and what that starts.
fn with_pool(
    machine: &Machine,
    measure: impl for<'e> FnOnce(&'e Eal, &'e Pool<'e>, f64) -> Result<(), Box<dyn Error>> + Send,
) -> Result<(), Box<dyn Error>> {
    let pinned = || measure_on(machine, measure).map_err(|error| error.to_string());
    let ended = std::thread::scope(|scope| scope.spawn(pinned).join());
    Ok(ended.map_err(|_| "the measurement panicked")??)
}

fn measure_on(
    machine: &Machine,
    measure: impl for<'e> FnOnce(&'e Eal, &'e Pool<'e>, f64) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let name = format!("bench-{}", std::process::id());
    let core = machine.worker.to_string();
    let mut arguments = vec!["--no-pci", "--no-telemetry", "--file-prefix", &name, "-l", &core];
    let memory: &[&str] = if machine.huge {
        &["--in-memory", "--single-file-segments"]
    } else {
        &["--no-huge", "-m", "256"]
    };
    arguments.extend(memory);
    let eal = Eal::init(&arguments.into_iter().map(str::to_owned).collect::<Vec<_>>())?;
    let hz = dpdk::calibrate(std::time::Duration::from_millis(100)).hz;
    let pool = Pool::new(&eal, "packets", (1 << 15) - 1, 512, 2048, None)?;
    measure(&eal, &pool, hz)
}

fn in_process(args: &Args, machine: &Machine, results: &mut Results) -> Result<(), Box<dyn Error>> {
    with_pool(machine, |eal, pool, hz| {
        // Before the others close theirs: the number of a port that was closed is never opened again.
        let four = || Four::new(eal, pool, machine.second, hz);
        let four = args.wants(PARTS[2]).then(four).transpose()?;
        if args.wants(PARTS[0]) {
            // Its frames go back before others take them.
            let mut subjects = Subjects::new(eal, pool, hz)?;
            for size in SIZES {
                for _ in 0..args.rounds {
                    results.costs.push(subjects.measure(size)?);
                }
            }
        }
        for size in SIZES.into_iter().filter(|_| args.wants(PARTS[1])) {
            for _ in 0..args.rounds {
                results.reads.push(scattered::measure(eal, pool, size, hz)?);
            }
        }
        if let Some(mut four) = four {
            for size in SIZES {
                for _ in 0..args.rounds {
                    results.flows.push(four.search(size)?);
                }
            }
        }
        Ok(())
    })
}

fn disk(args: &Args, _machine: &Machine, results: &mut Results) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("written");
    // Disks that others share are fast and slow by turns.
    for round in 0..args.rounds.max(DISK_ROUNDS) {
        // Both write a new file: what is there already takes writes faster.
        let anew = || {
            let _ = std::fs::remove_file(&file);
            nix::unistd::sync();
        };
        let ours = || {
            anew();
            disk::ours(&file)
        };
        let plain = || {
            anew();
            disk::plain(&file)
        };
        let (mine, theirs) = if round % 2 == 0 {
            let mine = ours()?;
            (mine, plain()?)
        } else {
            let theirs = plain()?;
            (ours()?, theirs)
        };
        results.disk.push((mine, theirs));
    }
    Ok(())
}

/// One that fails is left out, and told.
fn tools(args: &Args, machine: &Machine, results: &mut Results) -> Result<(), Box<dyn Error>> {
    let cores = [machine.second, machine.worker].map(|core| core.to_string());
    for tool in &TOOLS {
        let huge = machine.huge && tool.link == Link::Memif;
        for _ in 0..args.rounds.min(3) {
            match attempt(tool.needs, |lab| tools::search(&lab, tool, (64, huge), &cores)) {
                Ok(reached) => results.tools.push((tool.name, tool.link, reached)),
                Err(reason) => {
                    results.failed.push((tool.name, reason));
                    break;
                }
            }
        }
    }
    if results.tools.is_empty() {
        return Err("no tool could be measured".into());
    }
    Ok(())
}

fn read(args: &Args, _machine: &Machine, results: &mut Results) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("ten-million.pcapng");
    reading::write(&file)?;
    let dropless = Path::new(env!("CARGO_BIN_EXE_dropless"));
    for _ in 0..args.rounds.min(3) {
        results.read.push((
            reading::time(dropless, &["read"], &file)?,
            reading::time(Path::new("tcpdump"), &["-n", "-r"], &file)?,
        ));
    }
    Ok(())
}
