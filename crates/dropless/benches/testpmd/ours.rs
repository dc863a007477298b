//! dropless as one side of a round.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::rounds::{Bench, Measured};
use crate::support::wire::Wire;
use crate::support::{Dropless, Finished, Lab, Running, until};
use crate::worker::Watch;

const STARTING: Duration = Duration::from_secs(20);
/// Enough for what is still on its way on one machine.
const DRAIN: &str = "500ms";

/// `dropless send` into a port that swallows everything.
pub fn send_into_null(bench: &Bench, lab: &Lab) -> Measured {
    send(
        bench,
        lab,
        &["--port", "null", "--tx-only", "--cores", &bench.worker()],
    )
}

/// `dropless send`, with what comes back verified on the same core.
pub fn send_over_ring(bench: &Bench, lab: &Lab) -> Measured {
    send(bench, lab, &["--port", "ring,direct", "--cores", &bench.worker()])
}

/// The same while the kernel is asked what takes the core.
pub fn send_over_ring_explained(bench: &Bench, lab: &Lab) -> Measured {
    let core = bench.worker();
    send(
        bench,
        lab,
        &["--port", "ring,direct", "--explain", "--cores", &core],
    )
}

/// The same on two cores: one sends, the other verifies.
pub fn send_over_ring_on_two_cores(bench: &Bench, lab: &Lab) -> Measured {
    send(bench, lab, &["--port", "ring,direct", "--cores", &both(bench)])
}

/// Both cores of the benchmark, as `--cores` takes them: one that sends, and one that receives.
pub fn both(bench: &Bench) -> String {
    format!("{},{}", bench.second(), bench.worker())
}

/// Large frames over a ring, of which more than the headers is verified.
pub fn send_long(bench: &Bench, lab: &Lab, size: &str, verify: &str, cores: &str) -> Measured {
    let arguments = [
        "--port",
        "ring,direct",
        "--size",
        size,
        "--verify",
        verify,
        "--cores",
        cores,
    ];
    send(bench, lab, &arguments)
}

/// `dropless send` at full rate with these arguments.
pub fn send(bench: &Bench, lab: &Lab, arguments: &[&str]) -> Measured {
    let sender = lab.dropless(&["send", "--json", "--quiet"]);
    alone(bench, &full_rate(bench, sender, arguments))
}

/// The same at the rates that these arguments ask for.
pub fn send_at(bench: &Bench, lab: &Lab, arguments: &[&str]) -> Measured {
    let sender = lab.dropless(&["send", "--json", "--quiet"]);
    alone(bench, &timed(bench, sender, arguments))
}

fn alone(bench: &Bench, sender: &Dropless) -> Measured {
    let (run, share) = watched(bench, sender.spawn(), &[]);
    sent(&run, share)
}

/// `dropless reflect` on a port that always has something.
pub fn reflect_null(bench: &Bench, lab: &Lab) -> Measured {
    let port = ["reflect", "--json", "--quiet", "--port", "null"];
    let reflector = with_memory(bench, lab.dropless(&port))
        .arg("--duration")
        .arg(bench.duration());
    let (run, share) = watched(bench, reflector.arg("--cores").arg(bench.worker()).spawn(), &[]);
    let json = report(&run);
    Measured {
        rate_pps: rate(&json, "rate_tx_pps"),
        share,
        invalid: reasons(&json),
        ..Measured::default()
    }
}

/// Two processes over memif without a copy at the sender, which calls.
pub fn pair_over_memif(bench: &Bench, lab: &Lab) -> Measured {
    over_memif(bench, lab, ",server", ",zero-copy")
}

/// Two processes over memif. The sender serves: the end that does has less to do.
pub fn pair_over_copying_memif(bench: &Bench, lab: &Lab) -> Measured {
    over_memif(bench, lab, "", ",server")
}

fn over_memif(bench: &Bench, lab: &Lab, far: &str, near: &str) -> Measured {
    let path = lab.path("memif.sock");
    let port = |options: &str| format!("memif:{}{options}", path.display());
    let reflector = lab.dropless(&[
        "reflect",
        "--json",
        "--port",
        &port(far),
        "--cores",
        &bench.second(),
    ]);
    let reflector = with_memory(bench, reflector).spawn();
    assert!(
        !far.contains("server") || until(STARTING, || path.exists()),
        "{reflector:?}"
    );
    let sender = lab.dropless(&["send", "--json", "--quiet", "--port", &port(near)]);
    pair(bench, sender, reflector)
}

/// Two processes over a virtual wire of two queues between namespaces: a socket each way.
pub fn pair_over_xdp(bench: &Bench, lab: &Lab) -> Measured {
    pair_over_veth(bench, lab, "xdp", 2)
}

/// The same with `AF_PACKET` and one queue.
pub fn pair_over_packet(bench: &Bench, lab: &Lab) -> Measured {
    pair_over_veth(bench, lab, "packet", 1)
}

fn pair_over_veth(bench: &Bench, lab: &Lab, kind: &str, queues: u32) -> Measured {
    let wire = Wire::between(lab, queues);
    let (core, queues) = (bench.second(), queues.to_string());
    let mut reflector = vec!["--only-ours", "--queues", &queues, "--cores", &core];
    if !bench.huge() {
        reflector.push("--no-huge");
    }
    let reflector = wire.reflect_far(lab, kind, &reflector);
    pair(
        bench,
        wire.send(lab, kind, &["--quiet", "--rx-queues", &queues]),
        reflector,
    )
}

/// Sends at full rate through a reflector, which must have balanced books of its own.
fn pair(bench: &Bench, sender: Dropless, reflector: Running) -> Measured {
    let sender = full_rate(bench, sender, &["--cores", &bench.worker()]).spawn();
    let (run, share) = watched(bench, sender, &[reflector.id()]);
    reflector.signal(Signal::SIGINT);
    let reflected = reflector.wait(STARTING);
    let there = report(&reflected);
    let mut measured = sent(&run, share);
    measured.invalid = measured.invalid.or_else(|| reasons(&there));
    let there = there["dropped"].as_object().into_iter().flatten();
    let named = there.filter_map(|(name, count)| Some((format!("far_{name}"), count.as_u64()?)));
    measured.lost_at.extend(named.filter(|(_, count)| *count > 0));
    measured
}

/// At full rate, for as long as a measurement lasts.
pub fn full_rate(bench: &Bench, sender: Dropless, arguments: &[&str]) -> Dropless {
    timed(bench, sender.arg("--rate").arg("max"), arguments)
}

/// For as long as a measurement lasts.
fn timed(bench: &Bench, mut sender: Dropless, arguments: &[&str]) -> Dropless {
    let duration = bench.duration();
    let common = ["--drain", DRAIN, "--duration", duration.as_str()];
    for argument in common.iter().chain(arguments) {
        sender = sender.arg(*argument);
    }
    with_memory(bench, sender)
}

/// On the same memory as testpmd.
pub fn with_memory(bench: &Bench, dropless: Dropless) -> Dropless {
    if bench.huge() {
        dropless
    } else {
        dropless.arg("--no-huge")
    }
}

/// Waits for the end of a run, and takes note of what its workers, and those of `others`, got of their cores.
pub fn watched(bench: &Bench, running: Running, others: &[u32]) -> (Finished, Option<f64>) {
    let watch = Watch::begin(&[&[running.id()], others].concat());
    // Within the run: its workers are gone right after it.
    std::thread::sleep(bench.seconds().mul_f64(0.8));
    let share = watch.share();
    (running.wait(bench.seconds() + 3 * STARTING), share)
}

/// The figures of a send run: what came back, or what went out where nothing comes back.
pub fn sent(run: &Finished, share: Option<f64>) -> Measured {
    let json = report(run);
    let one_way = json["received"].as_u64() == Some(0);
    let count = |name: &str| {
        json[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no count {name}: {run}"))
    };
    let mut lost_at: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in json["ledger"]["lost_at"].as_object().into_iter().flatten() {
        lost_at.extend(
            count
                .as_u64()
                .filter(|count| *count > 0)
                .map(|count| (name.clone(), count)),
        );
    }
    if count("unexplained") > 0 {
        lost_at.insert("unexplained".into(), count("unexplained"));
    }
    Measured {
        rate_pps: rate(&json, if one_way { "rate_tx_pps" } else { "rate_rx_pps" }),
        share,
        sent: (!one_way).then(|| count("sent")),
        lost: (!one_way).then(|| count("lost")),
        lost_at,
        invalid: reasons(&json),
    }
}

/// A rate of a report.
pub fn rate(json: &Value, name: &str) -> f64 {
    json[name]
        .as_f64()
        .filter(|rate| *rate > 0.0)
        .unwrap_or_else(|| panic!("no {name} in {json}"))
}

/// The report of a run that ended in order. Loss is a result, and so is a verdict that it was no measurement.
pub fn report(run: &Finished) -> Value {
    assert!(matches!(run.code, Some(0..=2)) && !run.stdout.is_empty(), "{run}");
    let json = run.json();
    assert!(json["error"].is_null(), "{run}");
    json
}

/// Why the run says that it was no measurement.
pub fn reasons(json: &Value) -> Option<String> {
    let reasons = json["reasons"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|reason| reason["text"].as_str().or(reason.as_str()));
    (json["verdict"] != "valid").then(|| reasons.collect::<Vec<_>>().join("; "))
}
