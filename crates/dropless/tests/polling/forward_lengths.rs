//! What is long, merged or in fragments, between two ports: it goes on as it came, or is lost and counted.

use crate::forward::{LIMIT, Path, assert_sound};
use crate::support::wire::{charged, column_sum, interrupted};
use crate::support::{Finished, Need, require};

/// What does not fit the ring of `AF_PACKET` would be cut, and go on as if it were whole.
#[test]
fn jumbo_frames_go_on_whole_over_af_packet() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    for (end, interface) in [
        (&path.left, "l0"),
        (&path.middle, "ml"),
        (&path.middle, "mr"),
        (&path.right, "r0"),
    ] {
        end.ip(&["link", "set", interface, "mtu", "9000"]);
    }
    let running = path.forward(&lab, "packet", &[]);
    let said = path.left.run(
        "ping",
        &[
            "-M",
            "do",
            "-s",
            "8972",
            "-c",
            "5",
            "-i",
            "0.02",
            "-W",
            "10",
            "10.77.0.2",
        ],
    );
    assert!(said.contains("5 received"), "{said}");
    let run = interrupted(running);
    assert_sound(&run);
}

/// The driver of `AF_PACKET` has the kernel put fragments together: what came out was longer than the other side takes.
#[test]
fn fragments_go_on_as_they_came_over_af_packet() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    let running = path.forward(&lab, "packet", &[]);
    let ping = ["-s", "3000", "-c", "5", "-i", "0.02", "-W", "10", "10.77.0.2"];
    let said = path.left.run("ping", &ping);
    assert!(said.contains("5 received"), "{said}");
    let run = interrupted(running);
    assert_sound(&run);
    assert!(run.number("ways.0.received") >= 15, "three of each: {run}");
}

/// What the kernel drops of what it was given to send, the driver has counted as sent.
#[test]
fn what_is_too_long_for_the_other_side_is_lost_and_counted() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    path.left.ip(&["link", "set", "l0", "mtu", "1900"]);
    path.middle.ip(&["link", "set", "ml", "mtu", "1900"]);
    let running = path.forward(&lab, "packet", &[]);
    path.ping();
    // All at once: two of them wait for answers that never come.
    let asking =
        [(1472, "5 received"), (1473, "0 received"), (1800, "0 received")].map(|(payload, answers)| {
            let ask = format!("ping -M do -s {payload} -c 5 -i 0.02 -W 1 10.77.0.2 || true");
            (path.left.spawn("bash", &["-c", &ask]), answers)
        });
    for (asking, answers) in asking {
        let said = asking.wait(LIMIT);
        assert!(said.stdout.contains(answers), "{said}");
    }
    let run = interrupted(running);
    assert_eq!((oversized(&run), run.code), (10, Some(1)), "{run}");
}

/// A veth throws away what is longer than its other end takes, after the kernel gave it back as sent.
#[test]
fn what_the_other_end_does_not_take_is_lost_and_counted() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    path.right.ip(&["link", "set", "r0", "mtu", "600"]);
    let running = path.forward(&lab, "xdp", &[]);
    path.ping();
    let said = path
        .left
        .run("bash", &["-c", "ping -s 800 -c 5 -i 0.02 -W 1 10.77.0.2 || true"]);
    assert!(said.contains("0 received"), "{said}");
    let run = interrupted(running);
    // Not among what was forwarded, though its driver had counted it as sent.
    assert_sound(&run);
    assert_eq!(charged(&run.json()["ledger"], "tx_dropped"), 5, "{run}");
    assert_eq!(column_sum(&lab, &run, "tx_lost"), 5, "{run}");
    assert_eq!(run.number("ways.0.ledger.unexplained"), 0, "{run}");
    assert_eq!(run.code, Some(1), "{run}");
}

/// What came before the run began is in its totals: so is what was lost of that.
#[test]
fn what_is_lost_before_the_run_begins_is_not_forwarded() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("ping")]) else {
        return;
    };
    let path = Path::new(&lab);
    path.right.ip(&["link", "set", "r0", "mtu", "600"]);
    let strange = ["lladdr", "02:00:00:00:00:77", "dev", "l0"];
    path.left
        .ip(&[&["neigh", "add", "10.77.0.2"], &strange[..]].concat());
    let ask = ["-q", "-s", "800", "-i", "0.001", "-w", "20", "10.77.0.2"];
    let _asking = path.left.spawn("ping", &ask);
    let run = interrupted(path.forward(&lab, "xdp", &[]));
    let came = run.number("received");
    assert!(came > 0 && run.stdout.contains("came_early"), "{run}");
    assert_eq!(
        (
            run.number("forwarded"),
            charged(&run.json()["ledger"], "tx_dropped")
        ),
        (0, came),
        "{run}"
    );
}

/// A tap's driver takes no frame that is longer than its MTU, and then none behind it.
#[test]
fn what_is_too_long_for_a_tap_keeps_nothing_else_from_it() {
    let needs = [Need::Namespaces, Need::File("/dev/net/tun"), Need::Tool("ping")];
    let Some(lab) = require(&needs) else { return };
    let path = Path::new(&lab);
    path.left.ip(&["link", "set", "l0", "mtu", "9000"]);
    path.middle.ip(&["link", "set", "ml", "mtu", "9000"]);
    let flags = [
        "forward",
        "--json",
        "--no-doctor",
        "--port",
        "packet:ml",
        "--port",
        "tap:t0",
    ];
    let mut running = lab.dropless(&flags).within(&path.middle).spawn();
    running.wait_for("forwarding between", LIMIT);
    path.middle.up("t0", &["10.77.0.2/24"]);
    path.ping();
    let ask = "ping -M do -s 8900 -c 5 -i 0.02 -W 1 10.77.0.2 & ping -c 500 -f 10.77.0.2; wait";
    let said = path.left.run("bash", &["-c", ask]);
    assert!(
        said.contains("0 received") && said.contains("500 received"),
        "{said}"
    );
    let run = interrupted(running);
    let full = charged(&run.json()["ledger"], "tx_full");
    assert_eq!((oversized(&run), full), (5, 0), "{run}");
}

/// Frames that were thrown away for their length.
fn oversized(run: &Finished) -> u64 {
    assert_eq!(run.number("ways.0.ledger.unexplained"), 0, "{run}");
    charged(&run.json()["ledger"], "oversized")
}
