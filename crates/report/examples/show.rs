//! Shows the reports and the live display with invented results: `cargo run -p report --example show [live]`.

#[path = "../tests/it/common/mod.rs"]
mod common;

use std::time::Duration;

use report::published::{Phase, State};
use report::{Console, Live, terminal};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |word: &str| arguments.iter().any(|argument| argument == word);
    let console = Console {
        json: given("--json"),
        quiet: given("--quiet"),
    };
    if given("live") {
        play(console.quiet);
    }
    let style = console.style();
    let printed = console
        .human(&terminal::render(&common::clean(), &style))
        .and_then(|()| console.human(&("\n".to_owned() + &terminal::render(&common::lossy(), &style))))
        .and_then(|()| console.human(&("\n".to_owned() + &terminal::render(&common::reflected(), &style))))
        .and_then(|()| console.object(&common::lossy()));
    if let Err(error) = printed {
        console.error(&error.to_string());
        std::process::exit(2);
    }
}

/// Two seconds of a run that will last ten.
fn play(quiet: bool) {
    let mut live = Live::stderr(quiet, || ());
    for step in 0..40_u32 {
        let elapsed = Duration::from_millis(50) * step;
        let mut state = State {
            phase: Phase::Sending,
            elapsed_s: elapsed.as_secs_f64(),
            done: Some(elapsed.as_secs_f64() / 10.0),
            planned_s: Some(10.0),
            ..State::default()
        };
        (state.rate.tx_pps, state.rate.rx_pps) = (3.5e6, 3.499e6);
        (state.total.sent, state.total.lost) = (u64::from(step) * 175_000, u64::from(step / 30) * 17);
        (state.latency_recent_ns.p50, state.latency_recent_ns.p99) = (Some(1_234), Some(8_765));
        live.update(&state);
        std::thread::sleep(Duration::from_millis(50));
    }
    live.finish();
}
