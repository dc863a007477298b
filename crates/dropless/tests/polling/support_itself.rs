//! The support module itself, tried on the real machine: what every other module leans on must not lie.

use std::process::Command;
use std::time::Duration;

use crate::support::proc::is_alive;
use crate::support::{Need, namespaces, require, until};

#[test]
fn a_namespace_goes_with_its_wires() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let (left, right) = (lab.namespace("left"), lab.namespace("right"));
    left.veth("one", &right, "two");
    left.up("one", &["10.77.0.1/24", "fd77::1/64"]);
    right.up("two", &["10.77.0.2/24", "fd77::2/64"]);
    left.wait_for_link("one");
    right.wait_for_link("two");
    assert_eq!(left.mac("one").len(), 17);
    left.run("ping", &["-c", "1", "-W", "2", "10.77.0.2"]);
    left.run("ping", &["-6", "-c", "1", "-W", "2", "fd77::2"]);

    let name = left.name().to_string();
    assert!(namespaces().contains(&name));
    drop(left);
    assert!(!namespaces().contains(&name), "the namespace is still there");
    let gone = until(Duration::from_secs(5), || {
        !right.ip(&["link", "show"]).contains("two@")
    });
    assert!(gone, "the wire is still there");
}

/// A killed test runs no destructor: whoever has the next turn takes away what it left, and nothing of anybody else.
#[test]
fn what_a_killed_test_left_goes_with_the_next_turn() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let mut dead = Command::new("true").spawn().expect("a process");
    dead.wait().expect("its end");
    let own = lab.namespace("own");
    // As two tests, a comparison, and somebody else would call them.
    let left = [
        format!("dropless-{}-0-near", dead.id()),
        format!("dropless-{}-probe", dead.id()),
        format!("dropless-compare-{}-far", dead.id()),
    ];
    let others = format!("others-{}-0-near", dead.id());
    for name in left.iter().chain([&others]) {
        let status = Command::new("ip").args(["netns", "add", name]).status();
        assert!(status.is_ok_and(|status| status.success()), "{name}");
    }
    drop(lab);
    let lab = require(&[]);
    let there = namespaces();
    let _ = Command::new("ip").args(["netns", "delete", &others]).status();
    assert!(!left.iter().any(|name| there.contains(name)), "{there:?}");
    assert!(there.contains(&others) && there.contains(own.name()), "{there:?}");
    drop((own, lab));
}

#[test]
fn testpmd_counts_what_it_forwards() {
    let Some(lab) = require(&[Need::Tool("dpdk-testpmd")]) else {
        return;
    };
    let mut testpmd = lab
        .testpmd()
        .eal("--vdev=net_ring0")
        .app("--forward-mode=io")
        .open();
    assert_eq!(testpmd.stats()[&0].rx_packets, 0);
    testpmd.command("start tx_first");
    let moving = until(Duration::from_secs(10), || testpmd.stats()[&0].rx_packets > 1000);
    assert!(moving, "nothing moved over the ring");
    testpmd.stop();
    let stats = testpmd.stats()[&0];
    assert_eq!(stats.rx_missed + stats.tx_errors, 0, "{stats:?}");
    assert!(
        stats.rx_packets <= stats.tx_packets && stats.tx_packets - stats.rx_packets <= 32,
        "{stats:?}"
    );
    testpmd.quit();
}

#[test]
fn a_process_is_awaited_signalled_and_never_left_behind() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let namespace = lab.namespace("process");
    // Whoever runs the tests in the background ignores SIGINT, which no shell below may trap then.
    let mut sleeper = namespace.spawn(
        "env",
        &[
            "--default-signal=INT",
            "sh",
            "-c",
            "trap 'echo stopped; exit 7' INT; echo ready; while :; do sleep 0.01; done",
        ],
    );
    sleeper.wait_for("ready", Duration::from_secs(5));
    assert!(sleeper.is_alive());
    sleeper.signal(nix::sys::signal::Signal::SIGINT);
    let finished = sleeper.wait(Duration::from_secs(5));
    assert_eq!((finished.code, finished.signal), (Some(7), None), "{finished}");
    assert!(finished.stdout.ends_with("stopped\n"), "{finished}");

    let killed = namespace.spawn("sleep", &["60"]).kill();
    assert_eq!((killed.code, killed.signal), (None, Some(9)), "{killed}");

    let (id, orphan) = std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            let mut running = namespace.spawn("sh", &["-c", "echo up; exec sleep 60"]);
            running.wait_for("up", Duration::from_secs(5));
            assert!(is_alive(running.id()));
            (running.id(), running)
        });
        started.join().expect("the thread that starts it")
    });
    let dead = until(Duration::from_secs(5), || !is_alive(id));
    assert!(dead, "a process outlived the thread that started it: {orphan:?}");
}

#[test]
#[should_panic(expected = "not ended after")]
fn a_limit_that_passes_fails_the_test() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        panic!("not ended after: not tried")
    };
    lab.namespace("limit")
        .spawn("sleep", &["60"])
        .wait(Duration::from_millis(50));
}

#[test]
fn only_one_test_at_a_time_has_a_lab() {
    let Some(lab) = require(&[]) else { return };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let other = require(&[]);
            sender.send(other.is_some()).expect("the first test listens");
        });
        assert!(
            receiver.recv_timeout(Duration::from_millis(200)).is_err(),
            "two tests have a lab"
        );
        drop(lab);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(true));
    });
}

#[test]
fn the_binary_under_test_runs_in_the_labs_directory() {
    let Some(lab) = require(&[]) else { return };
    let run = lab.dropless(&["--help"]).run();
    assert_eq!(run.code, Some(0), "{run}");
    assert!(lab.directory().is_dir());
}

#[test]
fn a_missing_need_is_a_skip_with_its_reason() {
    const NAME: &str = "support_itself::a_missing_need_is_a_skip_with_its_reason";
    // A child of this very test program, so that the skip goes to a file of ours and not into the summary.
    if std::env::var_os("DROPLESS_TEST_SKIPS_ITSELF").is_some() {
        assert!(require(&[Need::Tool("no-such-program")]).is_none());
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let skips = directory.path().join("skips");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", NAME])
        .env("DROPLESS_TEST_SKIPS_ITSELF", "1")
        .env("DROPLESS_SKIPS", &skips)
        .output()
        .expect("starting this program again");
    assert!(output.status.success());
    let said = std::fs::read_to_string(skips).expect("the skip was written");
    assert_eq!(said, format!("{NAME}: needs the program no-such-program\n"));
}
