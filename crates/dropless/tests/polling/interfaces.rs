//! What a run leaves alone of an interface of the kernel, what one that was killed leaves behind, and who may have what.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::wire::{
    FAR_V4, Wire, assert_all_back, assert_refused, assert_valid_but_for_time, has_note, interrupted,
};
use crate::support::{Namespace, Need, require, until};

const NEEDS: [Need; 1] = [Need::Namespaces];
const STARTING: Duration = Duration::from_secs(30);
const FAR_MAC: &str = "02:00:00:00:00:02";
/// Holds a program that has nothing to do with `AF_XDP`.
const PROGRAMS: &str = "/usr/lib/x86_64-linux-gnu/bpf/xdp-dispatcher.o";

/// The kernel forgets an interface's neighbours, permanent ones too, when its MAC address is set, be it the one it has.
#[test]
fn a_packet_port_leaves_the_neighbours_of_its_interface_alone() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let permanent = ["neigh", "add", FAR_V4, "lladdr", FAR_MAC];
    wire.near
        .ip(&[&permanent[..], &["dev", "near0", "nud", "permanent"]].concat());
    let known = || wire.near.ip(&["neigh", "show", "dev", "near0"]);
    let before = known();
    assert!(before.contains("PERMANENT"), "{before}");
    let mac = wire.near.mac("near0");
    let reflector = wire.reflect_far(&lab, "packet", &[]);
    let sender = wire
        .send(&lab, "packet", &["--rate", "5kpps", "--count", "1000"])
        .run();
    let _ = interrupted(reflector);
    assert_all_back(&sender);
    assert_eq!((known(), wire.near.mac("near0")), (before, mac), "{sender}");
}

/// What `ip` says of the program on an interface; nothing where it has none.
fn program(namespace: &Namespace, interface: &str) -> Option<String> {
    let shown = namespace.ip(&["-d", "link", "show", "dev", interface]);
    let line = shown.lines().find(|line| line.contains("prog/xdp"))?;
    Some(line.trim().into())
}

/// A killed process leaves its program on the interface: the next one takes that away, at either end, and says so.
#[test]
fn a_killed_xdp_port_starts_again() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 2);
    for queues in ["1", "2"] {
        wire.reflect_far(&lab, "xdp", &["--queues", queues]).kill();
        let mut killed = wire
            .send(
                &lab,
                "xdp",
                &["--tx-only", "--to-mac", FAR_MAC, "--duration", "60s"],
            )
            .spawn();
        killed.until_sending(STARTING);
        killed.kill();
        let left = [program(&wire.near, "near0"), program(&wire.far, "far0")];
        assert!(left.iter().all(Option::is_some), "{left:?}");
        let reflector = wire.reflect_far(&lab, "xdp", &[]);
        let sender = wire
            .send(&lab, "xdp", &["--rate", "5kpps", "--count", "1000"])
            .run();
        let reflector = interrupted(reflector);
        assert_all_back(&sender);
        for run in [&sender, &reflector] {
            assert!(has_note(&run.json(), "program_removed"), "{run}");
        }
        let left = [program(&wire.near, "near0"), program(&wire.far, "far0")];
        assert_eq!(left, [None, None], "{sender}");
    }
}

#[test]
fn the_program_of_somebody_else_stays() {
    let Some(lab) = require(&[Need::Namespaces, Need::File(PROGRAMS)]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let attach = ["link", "set", "dev", "near0", "xdp", "object", PROGRAMS];
    wire.near.ip(&[&attach[..], &["program", "xdp_pass"]].concat());
    let before = program(&wire.near, "near0");
    let run = wire.send(&lab, "xdp", &[]).run();
    assert_refused(&run, &["xdp:near0", "an XDP program", "runs on near0 already"]);
    assert_eq!(
        (before.is_some(), program(&wire.near, "near0")),
        (true, before),
        "{run}"
    );
}

/// The same program, of a process that lives: it is left alone, also by one that does not see that process.
#[test]
fn the_program_of_the_living_stays() {
    let Some(lab) = require(&[NEEDS[0], Need::Tool("dpdk-testpmd"), Need::Tool("stdbuf")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let testpmd = lab
        .testpmd()
        .eal("--vdev=net_af_xdp0,iface=far0")
        .within(&wire.far)
        .open();
    let before = program(&wire.far, "far0");
    let arguments = ["reflect", "--json", "--no-huge", "--port", "xdp:far0"];
    let seen = lab.dropless(&arguments).within(&wire.far).run();
    let directory = lab.directory().to_str().expect("a path of text");
    let alone = [
        "--fork",
        "--pid",
        "--mount-proc",
        "--kill-child",
        "--wd",
        directory,
        env!("CARGO_BIN_EXE_dropless"),
    ];
    let blind = wire.far.spawn("unshare", &[&alone[..], &arguments].concat());
    for run in [seen, blind.wait(STARTING)] {
        assert_refused(&run, &["xdp:far0", "an XDP program", "runs on far0 already"]);
        assert_eq!(
            (before.is_some(), program(&wire.far, "far0")),
            (true, before.clone()),
            "{run}"
        );
    }
    drop(testpmd);
    let arguments = [&arguments[..], &["--duration", "100ms"]].concat();
    let run = lab.dropless(&arguments).within(&wire.far).run();
    assert!(has_note(&run.json(), "program_removed"), "{run}");
    assert_eq!(program(&wire.far, "far0"), None, "{run}");
}

/// One has the interface, and the other is told who that is.
#[test]
fn of_two_that_start_together_one_wins() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let arguments = [
        "--tx-only",
        "--to-mac",
        FAR_MAC,
        "--rate",
        "1kpps",
        "--duration",
        "60s",
    ];
    let start = || wire.send(&lab, "xdp", &arguments).spawn();
    let (mut first, mut second) = (start(), start());
    assert!(until(STARTING, || !first.is_alive() || !second.is_alive()));
    let (mut winner, refused) = if first.is_alive() {
        (first, second)
    } else {
        (second, first)
    };
    let holder = format!("another dropless (process {}) has near0", winner.id());
    assert_refused(&refused.wait(STARTING), &[&holder]);
    winner.until_sending(STARTING);
    let winner = interrupted(winner);
    assert_valid_but_for_time(&winner);
    assert!(winner.number("sent") > 0, "{winner}");
}

/// DPDK's folder of a run that was killed goes with the next start; that of a living one does not.
#[test]
fn a_killed_run_leaves_no_folder() {
    let Some(lab) = require(&[Need::Root]) else { return };
    let folder = |id: u32| PathBuf::from(format!("/var/run/dpdk/dropless-{id}"));
    let start = || {
        let ring = ["reflect", "--json", "--no-huge", "--port", "null"];
        let mut run = lab.dropless(&ring).spawn();
        run.wait_for("reflecting on", STARTING);
        run
    };
    let killed = [start(), start()].map(|run| {
        let own = folder(run.id());
        assert!(own.is_dir(), "{own:?}");
        run.kill();
        own
    });
    let living = start();
    assert!(folder(living.id()).is_dir());
    assert!(killed.iter().all(|folder| !folder.exists()), "{killed:?}");
    // Another one leaves it alone, and it takes its own away.
    let other = start();
    assert!(folder(living.id()).is_dir());
    for run in [living, other] {
        let own = folder(run.id());
        let _ = interrupted(run);
        assert!(!own.exists(), "{own:?}");
    }
}
