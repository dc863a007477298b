//! `/healthz`: healthy only while packets move, or by plan do not, and for no longer than planned.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::support::served::{address, becomes, health, lossy, scraped, serve};
use crate::support::wire::interrupted;
use crate::support::{Lab, Need, Running, namespaces, require, until};

const LIMIT: Duration = Duration::from_secs(30);

const REFLECT: [&str; 5] = [
    "reflect",
    "--port",
    "memif:s.sock,server",
    "--no-huge",
    "--no-doctor",
];
const SEND: [&str; 9] = [
    "send",
    "--port",
    "memif:s.sock",
    "--no-huge",
    "--no-doctor",
    "--rate",
    "2kpps",
    "--duration",
    "120s",
];

#[test]
fn health_goes_with_the_packets_and_comes_back_with_them() {
    let Some(lab) = require(&[]) else { return };
    let (reflector, far) = serve(&lab, &REFLECT);
    let (status, body) = health(far);
    assert_eq!(status, 503, "up, and nobody sends: {body}");
    let (sender, near) = serve(&lab, &SEND);
    becomes(far, 200);
    assert_eq!(becomes(near, 200)["reason"], "packets move");

    sender.kill();
    let body = becomes(far, 503);
    let reason = body["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("no link") || reason.contains("no packet"),
        "{body}"
    );
    let (sender, near) = serve(&lab, &SEND);
    becomes(far, 200);
    becomes(near, 200);

    reflector.kill();
    becomes(near, 503);
    let (reflector, far) = serve(&lab, &REFLECT);
    becomes(near, 200);
    becomes(far, 200);
    drop((sender, reflector));
}

#[test]
fn idle_by_plan_is_healthy_and_ended_is_not() {
    let Some(lab) = require(&[]) else { return };
    let (noise, address) = serve(&lab, &["noise", "--no-trace", "--duration", "60s"]);
    let body = becomes(address, 200);
    assert!(
        body["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("by plan")),
        "{body}"
    );
    drop(noise);

    // Half of what is sent is dropped where the sender cannot know of it: it waits for its whole drain time.
    let (reflector, _) = serve(&lab, &[&REFLECT[..], &["--fault", "drop=50%"]].concat());
    let (sender, address) = serve(
        &lab,
        &[
            "send",
            "--port",
            "memif:s.sock",
            "--no-huge",
            "--no-doctor",
            "--rate",
            "1kpps",
            "--count",
            "100",
            "--drain",
            "8s",
        ],
    );
    let drains = || health(address).1["phase"] == "draining";
    assert!(until(LIMIT, drains), "{sender:?}");
    assert_eq!(health(address).0, 200);
    drop((sender, reflector));

    let (sender, address) = lossy(&lab);
    let (status, body) = health(address);
    assert_eq!((status, body["phase"].as_str()), (503, Some("ended")), "{body}");
    drop(sender);
}

/// Short trials with rests between them; none of them needs more of a machine than a busy one has.
const SEARCH: [&str; 19] = [
    "search",
    "--no-huge",
    "--max-rate",
    "5kpps",
    "--min-rate",
    "1kpps",
    "--initial-duration",
    "500ms",
    "--final-duration",
    "500ms",
    "--duration-sum",
    "20s",
    "--drain",
    "200ms",
    "--settle",
    "500ms",
    "--cores",
    "0",
    "--backlog=1000000",
];

/// That trial after trial adds to the counters of one run, which is healthy while they send and between them.
fn serves_trials_as_one_run(trials: Running, address: SocketAddr) {
    let (status, body) = health(address);
    assert!(status == 503 || body["phase"] != "starting", "{body}");
    let rests = || {
        let (status, body) = health(address);
        let reason = body["reason"].as_str().unwrap_or_default();
        status == 200 && body["phase"] == "idle" && reason.contains("between two trials")
    };
    let mut before = 0.0;
    for _ in 0..3 {
        // What a trial sent stays counted, and the next one adds to it.
        let mut sent = before;
        assert!(
            until(LIMIT, || {
                let now = scraped(address);
                let Some(told) = now.get("dropless_sent_packets_total") else {
                    return false; // before the first trial
                };
                let last = std::mem::replace(&mut sent, *told);
                assert!(sent >= last, "{sent} after {last}");
                assert!(now["dropless_received_packets_total"] <= sent, "{now:?}");
                sent > before
            }),
            "nothing more than {before}: {trials:?}"
        );
        before = sent;
        becomes(address, 200);
        assert!(until(LIMIT, rests), "{trials:?}");
        before = before.max(scraped(address)["dropless_sent_packets_total"]);
    }
    drop(trials);
}

#[test]
fn a_search_is_one_run_and_healthy_between_its_trials() {
    let Some(lab) = require(&[]) else { return };
    let (trials, address) = serve(&lab, &SEARCH);
    serves_trials_as_one_run(trials, address);
}

#[test]
fn a_comparison_is_one_run_and_healthy_between_its_trials() {
    let Some(lab) = require(&[]) else { return };
    let plan = [
        "compare",
        "--methods",
        "memif",
        "--rates",
        "2kpps,3kpps,4kpps",
        "--duration",
        "1s",
    ];
    let (trials, address) = serve(&lab, &plan);
    serves_trials_as_one_run(trials, address);
}

#[test]
fn a_search_that_gets_nothing_back_is_not_healthy() {
    let Some(lab) = require(&[]) else { return };
    let (searching, address) = serve(&lab, &[&SEARCH[..], &["--fault", "drop=100%"]].concat());
    // Before the first trial there is no such count.
    let sent = || scraped(address).get("dropless_sent_packets_total").copied();
    assert!(until(LIMIT, || sent() > Some(0.0)), "{searching:?}");
    let first = sent();
    assert!(
        until(LIMIT, || {
            // Neither while a trial sends nor between two: that the next one is planned heals nothing.
            let (status, body) = health(address);
            assert_eq!(status, 503, "{body}");
            sent() > first
                && body["reason"]
                    .as_str()
                    .is_some_and(|reason| reason.contains("received"))
        }),
        "{searching:?}"
    );
    drop(searching);
}

/// Two that rest by plan for longer than silence is borne elsewhere: both at once.
#[test]
fn long_rests_by_plan_are_healthy() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ip")]) else {
        return;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| a_long_rest_is_healthy(&lab));
        a_comparison_that_prepares_a_way_is_healthy(&lab);
    });
}

/// A rest between two trials of a search.
fn a_long_rest_is_healthy(lab: &Lab) {
    let mut arguments: Vec<&str> = SEARCH.to_vec();
    let settle = arguments.iter().position(|argument| *argument == "--settle");
    arguments[settle.expect("it settles") + 1] = "6s";
    let (searching, address) = serve(lab, &arguments);
    let settles = || {
        let body = health(address).1;
        body["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("settling"))
            && body["phase"] == "idle"
    };
    assert!(until(LIMIT, settles), "{searching:?}");
    let mut looks = 0;
    while settles() {
        let (status, body) = health(address);
        assert_eq!(status, 200, "{body}");
        looks += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(looks > 10, "{looks}");
    drop(searching);
}

/// Both ends of the second way of a comparison are made ready.
fn a_comparison_that_prepares_a_way_is_healthy(lab: &Lab) {
    // What starts a process in a namespace: the real one, but slow to start the second way's reflector.
    let tools = lab.path("tools");
    std::fs::create_dir(&tools).expect("a directory");
    let script = "#!/bin/sh\ncase \"$*\" in *exec*reflect*io=mmsg*) sleep 6 ;; esac\nreal=$(PATH=${PATH#*:}; command -v ip)\nexec \"$real\" \"$@\"\n";
    std::fs::write(tools.join("ip"), script).expect("a script");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(tools.join("ip"), executable).expect("a script");
    let path = format!(
        "{}:{}",
        tools.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let comparing = lab.dropless(&[
        "compare",
        "--methods",
        "kernel,kernel-mmsg",
        "--trials",
        "1",
        "--rates",
        "10kpps",
        "--duration",
        "300ms",
        "--quiet",
        "--metrics",
        ":0",
    ]);
    let live = lab.path("live").display().to_string();
    let mut comparing = comparing
        .env("PATH", &path)
        .env("DROPLESS_LIVE_DIR", &live)
        .spawn();
    let address = address(&mut comparing);
    let doing = |what: &str| {
        let body = health(address).1;
        body["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains(what))
    };
    assert!(until(LIMIT, || doing("preparing kernel-mmsg")), "{comparing:?}");
    let mut looks = 0;
    while doing("preparing kernel-mmsg") {
        let (status, body) = health(address);
        assert_eq!(status, 200, "{body}");
        looks += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(looks > 10, "{looks}");
    // Not killed: the wire of this way is laid, and goes at an end in order.
    let process = comparing.id();
    let ended = interrupted(comparing);
    assert_eq!(ended.signal, None, "{ended}");
    let of_it = format!("dropless-compare-{process}-");
    let left: Vec<String> = namespaces()
        .into_iter()
        .filter(|name| name.starts_with(&of_it))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "{ended}");
}
