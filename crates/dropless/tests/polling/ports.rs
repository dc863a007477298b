//! `dropless ports` on real interfaces: what it lists, marks and advises, and that its advice works.

use crate::support::{Lab, Namespace, Need, require};
use serde_json::Value;

/// A wire whose near end is up, with nobody at the far one.
fn wire(lab: &Lab) -> (Namespace, Namespace) {
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("near", &far, "far");
    near.up("near", &["10.9.0.1/24"]);
    far.up("far", &[]);
    near.wait_for_link("near");
    (near, far)
}

fn listed(lab: &Lab, namespace: &Namespace, name: &str) -> Value {
    let run = lab.dropless(&["ports", "--json"]).within(namespace).run();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    let listing = run.json();
    assert_eq!(listing["version"], 1, "{run}");
    let carriers = listing["carriers"].as_array().expect("a list of carriers");
    let found = carriers.iter().find(|carrier| carrier["name"] == name);
    found.expect("the interface is listed").clone()
}

fn shown(lab: &Lab, namespace: &Namespace) -> String {
    let run = lab.dropless(&["ports"]).within(namespace).run();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    run.stdout
}

#[test]
fn a_free_interface_is_offered_for_af_xdp() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    let carrier = listed(&lab, &near, "near");
    assert_eq!(
        (&carrier["uri"], &carrier["usable"]["state"]),
        (&"xdp:near".into(), &"yes".into()),
        "{carrier}"
    );
    assert_eq!(
        (&carrier["link"]["up"], &carrier["queues"]["rx"]),
        (&true.into(), &1.into()),
        "{carrier}"
    );
    assert!(shown(&lab, &near).contains("  xdp:near "));
}

#[test]
fn the_default_route_is_never_offered_unmarked() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    near.ip(&["route", "add", "default", "via", "10.9.0.2"]);
    let carrier = listed(&lab, &near, "near");
    assert_eq!(carrier["roles"][0], "default-route", "{carrier}");
    assert_eq!(
        (&carrier["uri"], &carrier["usable"]["state"]),
        (&"packet:near".into(), &"caution".into()),
        "{carrier}"
    );
    let text = shown(&lab, &near);
    assert!(
        text.contains("with care") && text.contains("near carries the default route"),
        "{text}"
    );
    assert!(!text.contains("xdp:near"), "{text}");
}

#[test]
fn the_advice_for_an_interface_that_is_down_brings_it_up() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    near.ip(&["link", "set", "near", "down"]);
    let usable = listed(&lab, &near, "near")["usable"].clone();
    assert_eq!(
        (&usable["state"], &usable["why"]),
        (&"no".into(), &"interface near is down".into())
    );
    let fix = usable["fix"]["commands"][0].as_str().expect("a command");
    assert!(shown(&lab, &near).contains(&format!("fix: {fix}\n")));
    near.run("sh", &["-c", fix]);
    near.wait_for_link("near");
    assert_eq!(listed(&lab, &near, "near")["usable"]["state"], "yes");
    let undo = usable["fix"]["undo"][0].as_str().expect("a command");
    near.run("sh", &["-c", undo]);
    assert_eq!(listed(&lab, &near, "near")["usable"], usable);
}

#[test]
fn what_is_made_in_software_is_listed_everywhere() {
    let Some(lab) = require(&[]) else { return };
    let run = lab.dropless(&["ports", "--json"]).run();
    let listing = run.json();
    let carriers = listing["carriers"].as_array().expect("a list of carriers");
    for kind in ["ring", "null", "tap", "memif", "vhost", "virtio-user", "pcap"] {
        let found = carriers.iter().find(|carrier| carrier["name"] == kind);
        assert_eq!(found.expect(kind)["kind"], "virtual");
    }
    let ring = carriers.iter().find(|carrier| carrier["name"] == "ring");
    assert_eq!(ring.expect("ring")["usable"]["state"], "yes");
}

/// They carry packets without root or DPDK, and nothing says that they do not.
#[test]
fn sockets_of_the_kernel_are_offered() {
    let Some(lab) = require(&[]) else { return };
    let run = lab.dropless(&["ports", "--json"]).run();
    let listing = run.json();
    let carriers = listing["carriers"].as_array().expect("a list of carriers");
    let sockets = carriers
        .iter()
        .find(|carrier| carrier["uri"] == "kernel:127.0.0.1");
    let state = sockets.map(|carrier| &carrier["usable"]["state"]);
    assert_eq!(state, Some(&"yes".into()), "{run}");
    let shown = lab.dropless(&["ports"]).run();
    assert!(!shown.stdout.contains("not used"), "{shown}");
}
