//! Two dropless processes over vhost-user: either end serves, on hugepages and without.

use std::time::Duration;

use crate::support::{Lab, Need, Running, require, until};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(30);
const LOAD: [&str; 6] = ["--count", "20k", "--rate", "50kpps", "--backlog", "100000"];

/// A reflector on `port` that has made its socket, where it serves.
fn reflector(lab: &Lab, port: &str, further: &[&str]) -> Running {
    let running = lab
        .dropless(&[&["reflect", "--json", "--quiet", "--port", port], further].concat())
        .spawn();
    let serves = matches!(port.split_once(':'), Some(("vhost", rest)) if !rest.contains("client"))
        || port.contains("server");
    assert!(
        !serves || until(LIMIT, || lab.path("v.sock").exists()),
        "{running:?}"
    );
    running
}

/// Sends from `near` to a reflector on `far`; both must agree on every packet.
fn agree(lab: &Lab, far: &str, near: &str, further: &[&str]) {
    let reflect = reflector(lab, far, further);
    let send = ["send", "--json", "--quiet", "--port", near];
    let send = lab.dropless(&[&send[..], &LOAD, further].concat()).run();
    reflect.signal(Signal::SIGINT);
    let reflect = reflect.wait(LIMIT);
    assert_eq!(reflect.code, Some(0), "{reflect}");
    for (name, wanted) in [
        ("sent", 20_000),
        ("received", 20_000),
        ("duplicate", 0),
        ("unexplained", 0),
    ] {
        assert_eq!(send.number(name), wanted, "{name} {send}");
    }
    let through = 20_000 + reflect.number("answered") + reflect.number("told");
    assert_eq!(reflect.number("returned"), through, "{reflect}");
    for side in [&send, &reflect] {
        let port = &side.json()["ports"][0];
        assert_eq!(
            (&port["rx_packets"], &port["tx_packets"]),
            (&through.into(), &through.into()),
            "{side}"
        );
        assert_eq!(side.number("pool.leaked"), 0, "{side}");
    }
}

#[test]
fn vhost_serves_the_sender() {
    let Some(lab) = require(&[]) else { return };
    agree(&lab, "vhost:v.sock", "virtio-user:v.sock", &["--no-huge"]);
}

#[test]
fn virtio_user_serves_the_sender() {
    let Some(lab) = require(&[]) else { return };
    agree(
        &lab,
        "virtio-user:v.sock,server",
        "vhost:v.sock,client",
        &["--no-huge"],
    );
}

#[test]
fn vhost_sends_to_its_guest() {
    let Some(lab) = require(&[]) else { return };
    // The reflector as client waits for nobody: its server must be there first.
    let send = ["send", "--json", "--quiet", "--no-huge", "--port", "vhost:v.sock"];
    let send = lab.dropless(&[&send[..], &LOAD].concat()).spawn();
    assert!(until(LIMIT, || lab.path("v.sock").exists()), "{send:?}");
    let reflect = reflector(&lab, "virtio-user:v.sock", &["--no-huge"]);
    let send = send.wait(LIMIT);
    reflect.signal(Signal::SIGINT);
    assert_eq!(send.number("received"), 20_000, "{send}");
    let reflect = reflect.wait(LIMIT);
    assert_eq!(
        reflect.number("returned"),
        20_000 + reflect.number("answered") + reflect.number("told"),
        "{reflect}"
    );
}

#[test]
fn virtio_user_sends_where_it_serves() {
    let Some(lab) = require(&[]) else { return };
    let reflect = reflector(&lab, "vhost:v.sock,client", &["--no-huge"]);
    let send = [
        "send",
        "--json",
        "--quiet",
        "--no-huge",
        "--port",
        "virtio-user:v.sock,server",
    ];
    let send = lab.dropless(&[&send[..], &LOAD].concat()).run();
    reflect.signal(Signal::SIGINT);
    assert_eq!(send.number("received"), 20_000, "{send}");
    assert_eq!(reflect.wait(LIMIT).code, Some(0));
}

#[test]
fn hugepages_serve_both_ways() {
    let Some(lab) = require(&[Need::Hugepages]) else {
        return;
    };
    agree(&lab, "vhost:v.sock", "virtio-user:v.sock", &[]);
    agree(&lab, "virtio-user:v.sock,server", "vhost:v.sock,client", &[]);
}

#[test]
fn a_guest_without_its_host_is_told_what_to_start() {
    let Some(lab) = require(&[]) else { return };
    let run = lab.dropless(&["send", "--port", "virtio-user:v.sock"]).run();
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr.contains("dropless reflect --port vhost:v.sock"),
        "{run}"
    );
}

#[test]
fn a_serving_guest_whom_nobody_calls_gives_up_in_time() {
    let Some(lab) = require(&[]) else { return };
    let run = lab
        .dropless(&["send", "--wait", "300ms", "--port", "virtio-user:v.sock,server"])
        .run();
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("did not connect in time"), "{run}");
    assert!(
        run.stderr.contains("dropless reflect --port vhost:v.sock,client"),
        "{run}"
    );
}

#[test]
fn a_serving_guest_that_waits_can_be_interrupted() {
    let Some(lab) = require(&[]) else { return };
    let reflect = reflector(&lab, "virtio-user:v.sock,server", &["--no-huge"]);
    reflect.signal(Signal::SIGTERM);
    let reflect = reflect.wait(LIMIT);
    assert_eq!((reflect.code, reflect.signal), (Some(2), None), "{reflect}");
    assert!(reflect.stderr.contains("interrupted while waiting"), "{reflect}");
    assert!(!lab.path("v.sock").exists(), "its socket was left behind");
}
