//! What a run leaves alone of an interface of the kernel, what one that was killed leaves on it, and who may have it.

use crate::support::wire::{FAR_V4, Wire, assert_all_back, interrupted};
use crate::support::{Need, require};

const NEEDS: [Need; 1] = [Need::Namespaces];

/// The kernel forgets an interface's neighbours, permanent ones too, when its MAC address is set, be it the one it has.
#[test]
fn a_packet_port_leaves_the_neighbours_of_its_interface_alone() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let permanent = ["neigh", "add", FAR_V4, "lladdr", "02:00:00:00:00:02"];
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
