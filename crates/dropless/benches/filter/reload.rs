//! Half a million prefixes, put in the place of others: how long that takes, and what packets notice.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde::Serialize;

use crate::contest::{Rules, start_ours, write_rules};
use crate::frames;
use crate::machine::Machine;
use crate::ours::{reasons, report, with_memory};
use crate::rounds::Bench;
use crate::support::{Lab, until};
use crate::wire::{Ends, Wire};

const PREFIXES: usize = 500_000;
const WINDOW: Duration = Duration::from_millis(100);
/// How often the counters are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const QUIET: Duration = Duration::from_secs(2);
const STARTING: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(120);

/// What came of a reload.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reload {
    /// Of `filter run`, or of `forward`.
    pub is_xdp: bool,
    /// From the command to its end: the new rules are in force.
    pub seconds: f64,
    /// Packets a second before.
    pub rate: f64,
    /// The slowest tenth of a second meanwhile, below that.
    pub dip: f64,
    /// And in as long a time without a reload.
    pub dip_without: f64,
    /// Frames that found no room while the reload went on.
    pub refused: u64,
}

/// The deepest dip of any window below the median rate of the first series; of rates by windows.
fn dip(rates: &[f64], median: f64) -> f64 {
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    (1.0 - least / median).max(0.0)
}

/// Rates of windows that begin at each look.
fn windows(looks: &[(Instant, u64)], from: Instant, to: Instant) -> Vec<f64> {
    let mut rates = Vec::new();
    for (at, (begun, first)) in looks.iter().enumerate() {
        if *begun < from {
            continue;
        }
        let end = looks[at..].iter().find(|(end, _)| *end - *begun >= WINDOW);
        let Some((end, last)) = end else { break };
        if *end > to + WINDOW {
            break;
        }
        rates.push((last - first) as f64 / (*end - *begun).as_secs_f64());
    }
    rates
}

fn median(rates: &[f64]) -> Result<f64, String> {
    crate::statistics::median(rates).ok_or_else(|| "no window was measured".into())
}

fn rewrite(lab: &Lab, seed: u64) -> Result<(), String> {
    write_rules(lab, Rules::Prefixes(&frames::prefixes(PREFIXES, seed))).map(|_| ())
}

/// Has it read its rules again; seconds until that is done.
fn reload(lab: &Lab, process: u32, core: usize) -> Result<f64, String> {
    let begun = Instant::now();
    let script = format!("taskset -c {core} $DROPLESS filter reload {process}");
    let ended = lab.shell(&script).wait(LIMIT);
    if ended.code != Some(0) {
        return Err(format!("{ended}"));
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Of `filter run`: frames come at a steady pace, which is kept before all else.
pub fn of_filter(lab: &Lab, machine: &Machine) -> Result<Reload, String> {
    let wire = Wire::new(lab, machine.second, machine.worker)?;
    let before = frames::prefixes(PREFIXES, 1);
    let running = start_ours(lab, &wire, Rules::Prefixes(&before), Some(machine.second))?;
    let is_over = Arc::new(AtomicBool::new(false));
    // Whatever fails: nobody goes on sending.
    let _ends = Ends(Arc::clone(&is_over));
    let (near, to, over) = (wire.near.name().to_owned(), wire.mac(), Arc::clone(&is_over));
    let (core, frames) = (machine.second, frames::out_of(&before));
    let sender = std::thread::spawn(move || crate::wire::send_steadily(&near, core, (&frames, to), &over));
    let name = wire.far.name().to_owned();
    let over = Arc::clone(&is_over);
    let core = machine.second;
    let looker = std::thread::spawn(move || crate::wire::look_at(&name, core, LOOK_EVERY, &over));
    std::thread::sleep(QUIET / 4);
    let quiet = Instant::now();
    std::thread::sleep(QUIET);
    rewrite(lab, 2)?;
    let refused_before = wire.refused();
    let asked = Instant::now();
    let reloaded = process_of(lab).and_then(|process| reload(lab, process, machine.second));
    let done = Instant::now();
    let refused = wire.refused() - refused_before;
    std::thread::sleep(3 * WINDOW);
    is_over.store(true, Ordering::Relaxed);
    let looks = looker.join().map_err(|_| "whoever looked died".to_owned())??;
    let sent = sender.join().map_err(|_| "the sender died".to_owned())??;
    let seconds = reloaded?;
    if sent == 0 {
        return Err("no frame was sent".into());
    }
    let still = windows(&looks, quiet, quiet + QUIET.saturating_sub(WINDOW));
    let rate = median(&still)?;
    let meanwhile = windows(&looks, asked, done);
    running.signal(Signal::SIGINT);
    running.wait(STARTING);
    Ok(Reload {
        is_xdp: true,
        seconds,
        rate,
        dip: dip(&meanwhile, rate),
        dip_without: dip(&still, rate),
        refused,
    })
}

/// The filter that runs, by what it tells of itself: between it and its process stand the programs that started it.
fn process_of(lab: &Lab) -> Result<u32, String> {
    let path = lab.path("bench.rules").display().to_string();
    let mut found = None;
    until(Duration::from_secs(5), || {
        found = dropless_with(&path);
        found.is_some()
    });
    found.ok_or_else(|| "no dropless runs with these rules".into())
}

fn dropless_with(path: &str) -> Option<u32> {
    let ids = host::Sys::at("/").processes();
    let is_it = |id: &u32| {
        let comm = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        comm.trim() == "dropless" && line.split(|byte| *byte == 0).any(|word| word == path.as_bytes())
    };
    ids.iter().filter_map(|id| id.parse().ok()).find(is_it)
}

/// Of `forward` between two ports that always have something: by its own rows of a tenth of a second.
pub fn of_forward(bench: &Bench, lab: &Lab) -> Result<Reload, String> {
    let path = write_rules(lab, Rules::Prefixes(&frames::prefixes(PREFIXES, 1)))?;
    let path = path.display().to_string();
    let interval = format!("{}ms", WINDOW.as_millis());
    let forward = lab.dropless(&[
        "forward",
        "--json",
        "--port",
        "null:a",
        "--port",
        "null:b",
        "--rules",
        &path,
        "--interval",
        &interval,
    ]);
    let mut running = with_memory(bench, forward)
        .arg("--cores")
        .arg(bench.worker())
        .spawn();
    running.wait_for("forwarding between", STARTING);
    let ready = Instant::now();
    std::thread::sleep(QUIET / 2 + QUIET);
    rewrite(lab, 2)?;
    let asked = ready.elapsed();
    let seconds = reload(lab, running.id(), bench.machine.second);
    let done = ready.elapsed();
    std::thread::sleep(3 * WINDOW);
    running.signal(Signal::SIGINT);
    let ended = running.wait(STARTING);
    let seconds = seconds?;
    let json = report(&ended);
    if let Some(reasons) = reasons(&json) {
        return Err(reasons);
    }
    let run = json["run"].as_str().ok_or("the report names no run")?;
    let rows = fs::read_to_string(lab.directory().join(run).join("intervals.csv"));
    let rows = rows.map_err(|error| format!("{run}: {error}"))?;
    let rates: Vec<(Duration, f64)> = rows.lines().skip(1).filter_map(row).collect();
    let between = |from: Duration, to: Duration| {
        let within = rates.iter().filter(|(end, _)| *end >= from && *end <= to);
        within.map(|(_, rate)| *rate).collect::<Vec<_>>()
    };
    let still = between(QUIET / 2, asked.saturating_sub(WINDOW));
    let rate = median(&still)?;
    Ok(Reload {
        is_xdp: false,
        seconds,
        rate,
        dip: dip(&between(asked, done + 2 * WINDOW), rate),
        dip_without: dip(&still, rate),
        refused: 0,
    })
}

/// When an interval ended, and the frames of a second in it.
fn row(line: &str) -> Option<(Duration, f64)> {
    let mut fields = line.split(',');
    let end = fields.next()?.parse::<f64>().ok()?;
    let frames = fields.next()?.parse::<f64>().ok()?;
    Some((Duration::from_secs_f64(end / 1e3), frames / WINDOW.as_secs_f64()))
}
