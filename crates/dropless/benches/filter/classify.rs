//! What the tables cost in user space: nanoseconds a packet over frames by chance, and beside DPDK's `librte_acl` with the same
//! rules and frames on the same core.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use rules::limit::Limiter;
use rules::tables::Memo;
use rules::{Facts, Malformed, Tables, look, parse};
use serde::{Deserialize, Serialize};

use crate::contest::{Rules, write_rules};
use crate::frames::{FRAME, FRAMES, Frame, Rule};
use crate::machine::Machine;
use crate::support::Lab;

/// Looks at all frames, a measurement.
const PASSES: usize = 20;
const LIMIT: &str = "60";
/// As a worker takes them. A divisor of `FLOWS`.
const BURST: usize = 32;
/// Frames of the measurement with few flows: a power of two, as `FRAMES` is.
const FLOWS: usize = 1 << 10;

/// What one rule set costs.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The rules, in words.
    pub rules: &'static str,
    /// From the rule file's text to tables, seconds.
    pub build_s: f64,
    /// Decided, of what was parsed before.
    pub ns: f64,
    /// Parsed and decided.
    pub ns_with_parse: f64,
    /// The same over so many flows alone, which tables remember.
    pub ns_of_flows: f64,
    /// `librte_acl`.
    pub acl: Option<Acl>,
}

/// What the other prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Acl {
    pub way: String,
    pub build_s: f64,
    pub ns: f64,
    pub ns_with_parse: f64,
}

/// Measures our tables once, and `librte_acl` where the rules are tuples.
pub fn measure(
    lab: &Lab,
    machine: &Machine,
    (name, rules): (&'static str, Rules<'_>),
    frames: &[Frame],
) -> Result<Cost, String> {
    let path = write_rules(lab, rules)?.display().to_string();
    let bytes: Vec<[u8; FRAME]> = frames
        .iter()
        .map(|frame| frame.bytes([2, 0, 0, 0, 0, 1]))
        .collect();
    let core = machine.worker;
    let (cost, verdicts) = std::thread::scope(|scope| {
        let pinned = scope.spawn(|| ours(name, &path, &bytes, core));
        pinned.join().map_err(|_| "the measurement died".to_owned())?
    })?;
    let acl = match rules {
        Rules::Tuples(tuples) => Some(acl(lab, machine, tuples, (&bytes, &verdicts))?),
        _ => None,
    };
    Ok(Cost { acl, ..cost })
}

/// The cost, and the rule of each frame, from 1.
fn ours(
    name: &'static str,
    path: &str,
    frames: &[[u8; FRAME]],
    core: usize,
) -> Result<(Cost, Vec<u32>), String> {
    let mut set = CpuSet::new();
    set.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|error| format!("core {core}: {error}"))?;
    let begun = Instant::now();
    let read = |path: &str| fs::read_to_string(path).map_err(|error| error.to_string());
    let parsed = parse(path, &read).map_err(|problems| format!("{} problems in {path}", problems.len()))?;
    let tables = Tables::new(&parsed).map_err(|error| error.to_string())?;
    let build_s = begun.elapsed().as_secs_f64();
    let limiter = Limiter::new(4, 1);
    let facts: Vec<Result<Facts, Malformed>> = frames
        .iter()
        .map(|frame| look(frame, FRAME, tables.reasons))
        .collect();
    let verdicts = facts.iter().map(|facts| {
        tables
            .decide(facts, &limiter, 0)
            .rule
            .map_or(0, |rule| u32::from(rule) + 1)
    });
    let verdicts = verdicts.collect();
    let time = |pass: &mut dyn FnMut()| {
        pass();
        let begun = Instant::now();
        for _ in 0..PASSES {
            pass();
        }
        begun.elapsed().as_secs_f64() * 1e9 / (PASSES * FRAMES) as f64
    };
    // As a forwarding worker does it.
    let mut memo = Memo::default();
    let ns = time(&mut || {
        for facts in &facts {
            black_box(tables.decide_with(&mut memo, black_box(facts), (&limiter, 0)));
        }
    });
    let with_parse = |of: usize| {
        let mut memo = Memo::default();
        time(&mut || {
            for begin in (0..FRAMES).step_by(BURST) {
                let recalls = tables.recalls(&mut memo, BURST);
                for at in begin..begin + BURST {
                    let frame = black_box(&frames[at % of]);
                    let recalled = if recalls {
                        tables.recall(&memo, frame)
                    } else {
                        None
                    };
                    black_box(match recalled {
                        Some(decision) => decision,
                        None if recalls => tables.judge(&mut memo, (frame, FRAME), (&limiter, 0)).0,
                        None => {
                            let packet = look(frame, FRAME, tables.reasons);
                            tables.decide_with(&mut memo, &packet, (&limiter, 0))
                        }
                    });
                }
            }
        })
    };
    let (ns_with_parse, ns_of_flows) = (with_parse(FRAMES), with_parse(FLOWS));
    let cost = Cost {
        rules: name,
        build_s,
        ns,
        ns_with_parse,
        ns_of_flows,
        acl: None,
    };
    Ok((cost, verdicts))
}

fn acl(
    lab: &Lab,
    machine: &Machine,
    rules: &[Rule],
    (frames, meant): (&[[u8; FRAME]], &[u32]),
) -> Result<Acl, String> {
    let program = compile()?;
    let (given, said) = (lab.path("acl.in"), lab.path("acl.out"));
    let mut bytes: Vec<u8> = [rules.len() as u32, frames.len() as u32]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    bytes.extend(rules.iter().flat_map(Rule::acl));
    bytes.extend(frames.as_flattened());
    fs::write(&given, bytes).map_err(|error| format!("{}: {error}", given.display()))?;
    let core = machine.worker.to_string();
    let memory: &[&str] = if machine.huge {
        &["--in-memory", "--single-file-segments"]
    } else {
        &["--no-huge", "-m", "1024"]
    };
    let prefix = format!("bench-acl-{}", std::process::id());
    let output = Command::new("timeout")
        .arg(LIMIT)
        .arg(program)
        .args([&given, &said])
        .arg((PASSES).to_string())
        .args([
            "--no-pci",
            "--no-telemetry",
            "--file-prefix",
            &prefix,
            "-l",
            &core,
        ])
        .arg("--force-max-simd-bitwidth=512")
        .args(memory)
        .output()
        .map_err(|error| format!("acl: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rfind(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| format!("acl: {}{}", text, String::from_utf8_lossy(&output.stderr)))?;
    let found: Acl = serde_json::from_str(line).map_err(|error| format!("acl: {error}"))?;
    let said = fs::read(&said).map_err(|error| format!("{}: {error}", said.display()))?;
    let differ = said
        .chunks_exact(4)
        .zip(meant)
        .filter(|(said, meant)| **said != meant.to_ne_bytes())
        .count();
    if differ > 0 {
        return Err(format!(
            "librte_acl decides otherwise about {differ} of {} frames",
            meant.len()
        ));
    }
    Ok(found)
}

fn compile() -> Result<PathBuf, String> {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/filter/acl.c");
    let program = crate::page::target().join("bench/acl");
    let script = format!(
        "mkdir -p $(dirname {to}) && cc -O3 -Wall -Wextra -Werror $(pkg-config --cflags libdpdk) {from} -o {to} -lrte_acl -lrte_eal",
        from = source.display(),
        to = program.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output();
    let output = output.map_err(|error| format!("cc: {error}"))?;
    if !output.status.success() {
        return Err(format!("acl.c: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(program)
}
