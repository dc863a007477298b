//! `./dev bench restart`: how long packets stand still when a reflector is killed and started again, and how soon the first
//! packet of a sender goes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that cannot be made ends like a failed test, and its row says so"
)]

#[path = "../tests/polling/support/mod.rs"]
mod support;

#[path = "testpmd/statistics.rs"]
mod statistics;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use nix::sys::signal::Signal;

use statistics::{median, spread};
use support::wire::Wire;
use support::{Finished, Lab, Need, Running, require};

/// Packets a second that go on all the time: one is 50 us.
const RATE_PPS: f64 = 20_000.0;
/// From the kill to the first packet, ms.
const TARGET_MS: f64 = 300.0;
const LIMIT: Duration = Duration::from_secs(30);
const KINDS: [&str; 4] = ["memif-server", "memif-client", "packet", "xdp"];
const SENDERS: [&str; 4] = ["send-ring", "send-memif", "send-packet", "send-xdp"];

/// Measures how long packets stand still from kill -9 of a reflector to the first packet of the next, which is started
/// at once: by its own count from the start of its process, and by what a sender that goes on misses. And how long it takes a
/// sender from the start of its process to its first packet.
#[derive(Parser)]
#[command(
    bin_name = "./dev bench restart",
    after_help = "Exit codes: 0 every median is below 300 ms; 1 one is not; 2 something could not be measured."
)]
struct Args {
    /// Reflectors by their port, and senders by theirs [default: all]
    #[arg(value_name = "KIND", value_parser = [KINDS.as_slice(), SENDERS.as_slice()].concat())]
    kinds: Vec<String>,
    /// Kills or starts of each kind
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// What cargo tells a benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

/// One kill, ms.
struct Round {
    /// From the start of the next process to its first packet, as it says.
    own: f64,
    /// The same from the kill on.
    from_kill: f64,
    /// What the sender missed, by its rate.
    outage: f64,
}

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --all-targets` starts benchmarks too, and a test run is no place to measure.
        println!("measures only in `cargo bench`: ./dev bench restart");
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    let Some(lab) = require(&[Need::Namespaces, Need::Processors(2)]) else {
        return ExitCode::from(2);
    };
    let is_quick = [restarts(&args, &lab), starts(&args, &lab)];
    ExitCode::from(u8::from(is_quick.contains(&false)))
}

impl Args {
    /// Those of `kinds` that are wanted.
    fn wanted<'k>(&self, kinds: &'k [&'k str]) -> Vec<&'k str> {
        let is_wanted = |kind: &&str| self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind);
        kinds.iter().copied().filter(is_wanted).collect()
    }
}

/// Whether every median is below the target, here and in [`starts`].
fn restarts(args: &Args, lab: &Lab) -> bool {
    let kinds = args.wanted(&KINDS);
    if !kinds.is_empty() {
        println!(
            "ms from kill -9 to the first packet, {} kills a row: median (least to most)\n",
            args.rounds
        );
        println!("| port | from the start of the process | from the kill | missing at the sender |");
        println!("|---|---:|---:|---:|");
    }
    let mut is_quick = true;
    for kind in kinds {
        let rounds: Vec<Round> = (0..args.rounds).map(|_| round(lab, kind)).collect();
        let column = |of: fn(&Round) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
        let outages = column(|round| round.outage);
        println!(
            "| {kind} | {} | {} | {} |",
            told(&column(|round| round.own)),
            told(&column(|round| round.from_kill)),
            told(&outages)
        );
        is_quick &= median(&outages).is_some_and(|outage| outage <= TARGET_MS);
    }
    is_quick
}

fn starts(args: &Args, lab: &Lab) -> bool {
    let kinds = args.wanted(&SENDERS);
    if !kinds.is_empty() {
        println!(
            "\nms from the start of the process to the first packet sent, {} starts a row: median (least to most)\n",
            args.rounds
        );
        println!("| sender | first packet |");
        println!("|---|---:|");
    }
    let mut is_quick = true;
    for kind in kinds {
        let own: Vec<f64> = (0..args.rounds).map(|_| start(lab, kind)).collect();
        println!("| {kind} | {} |", told(&own));
        is_quick &= median(&own).is_some_and(|own| own <= TARGET_MS);
    }
    is_quick
}

/// Starts a sender of this kind, its reflector already there.
fn start(lab: &Lab, kind: &str) -> f64 {
    let wire = Wire::between(lab, 1);
    let send = ["--rate", "20kpps", "--count", "2000", "--no-doctor"];
    let (reflector, sender) = match kind {
        "send-ring" => (
            None,
            memif(lab, &[&["send", "--port", "ring"][..], &send].concat()),
        ),
        "send-memif" => {
            let mut reflector = lab
                .dropless(&["reflect", "--port", "memif:s.sock,server", "--no-doctor"])
                .spawn();
            reflector.wait_for("reflecting on", LIMIT);
            let sender = memif(lab, &[&["send", "--port", "memif:s.sock"][..], &send].concat());
            (Some(reflector), sender)
        }
        interface => {
            let kind = interface.trim_start_matches("send-");
            let reflector = wire.reflect_far(lab, kind, &["--no-doctor"]);
            let sender = wire.send(lab, kind, &[&send[..], &["--quiet"]].concat());
            (Some(reflector), sender.spawn())
        }
    };
    let ended = sender.wait(LIMIT);
    drop(reflector);
    first_packet_ms(&ended)
}

fn told(values: &[f64]) -> String {
    let (low, high) = spread(values).expect("a round");
    format!("{:.0} ({low:.0} to {high:.0})", median(values).expect("a round"))
}

/// Kills a reflector of this kind under a sender, and starts it again.
fn round(lab: &Lab, kind: &str) -> Round {
    let wire = Wire::between(lab, 1);
    let reflect = || match kind {
        "memif-server" => memif(lab, &["reflect", "--port", "memif:s.sock,server"]),
        "memif-client" => memif(lab, &["reflect", "--port", "memif:s.sock"]),
        kind => wire.reflect_far(lab, kind, &[]),
    };
    // It sends what is due, and nothing of what it could not send before.
    let send = [
        "--rate",
        "20kpps",
        "--duration",
        "4s",
        "--drain",
        "500ms",
        "--backlog",
        "64",
    ];
    let serves = kind == "memif-client";
    let first = (!serves).then(reflect);
    let sender = match kind {
        "memif-server" => memif(lab, &[&["send", "--port", "memif:s.sock"][..], &send].concat()),
        "memif-client" => memif(
            lab,
            &[&["send", "--port", "memif:s.sock,server"][..], &send].concat(),
        ),
        _ => wire
            .send(lab, "packet", &[&send[..], &["--quiet"]].concat())
            .spawn(),
    };
    let first = first.unwrap_or_else(reflect);
    std::thread::sleep(Duration::from_secs(2));
    let killed = Instant::now();
    first.kill();
    let started = killed.elapsed();
    let second = reflect();
    let ended = sender.wait(LIMIT);
    second.signal(Signal::SIGINT);
    let second = second.wait(LIMIT);
    let own_ms = first_packet_ms(&second);
    let missing = ended.number("ledger.intended") - ended.number("received");
    Round {
        own: own_ms,
        from_kill: own_ms + started.as_secs_f64() * 1e3,
        outage: missing as f64 / RATE_PPS * 1e3,
    }
}

fn memif(lab: &Lab, arguments: &[&str]) -> Running {
    lab.dropless(&[arguments, &["--json", "--quiet"]].concat())
        .spawn()
}

fn first_packet_ms(run: &Finished) -> f64 {
    let first = run.json()["workers"][0]["first_packet_ms"].as_f64();
    first.unwrap_or_else(|| panic!("no packet came: {run}"))
}
