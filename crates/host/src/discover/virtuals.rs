//! The kinds of port that are made in software.

use super::carrier::{Carrier, CarrierKind, Usable, usable};
use crate::drivers::drivers;
use crate::{Fix, Sys, check};

/// Kind, form of its URI, DPDK driver library, and what it is.
const KINDS: [(&str, &str, Option<&str>, &str); 8] = [
    ("ring", "ring", None, "a loop inside this process; needs nothing"),
    (
        "null",
        "null",
        Some("null"),
        "swallows and makes frames; measures dropless itself",
    ),
    (
        "kernel",
        "kernel:127.0.0.1",
        None,
        "UDP sockets of the kernel; the baseline",
    ),
    (
        "tap",
        "tap:dropless0",
        Some("tap"),
        "a new interface of this kernel",
    ),
    (
        "memif",
        "memif:PATH[,server]",
        Some("memif"),
        "shared memory with another process",
    ),
    (
        "vhost",
        "vhost:PATH[,client]",
        Some("vhost"),
        "the host's end of a virtual machine's NIC",
    ),
    (
        "virtio-user",
        "virtio-user:PATH[,server]",
        Some("virtio"),
        "the guest's end, without a virtual machine",
    ),
    ("pcap", "pcap:IN[,OUT]", Some("pcap"), "frames from and to files"),
];

/// Every kind, with what it lacks here.
pub fn list(sys: &Sys) -> Vec<Carrier> {
    let carrier = |(kind, form, library, description): (&str, &str, Option<&str>, &str)| Carrier {
        driver: library.map(|library| format!("net_{library}")),
        description: description.to_owned(),
        ..Carrier::new(CarrierKind::Virtual, kind, form, state(sys, form, library))
    };
    KINDS.into_iter().map(carrier).collect()
}

/// A form that is a whole URI is checked as one; of the others only the driver can be.
fn state(sys: &Sys, form: &str, library: Option<&str>) -> Usable {
    if !form.contains('[') {
        if let Ok(uri) = form.parse() {
            return usable(check(&uri, sys));
        }
    }
    match library {
        Some(library) if drivers(sys).has(library) == Some(false) => Usable::No {
            why: format!("DPDK's driver for it (librte_net_{library}.so) is not installed"),
            fix: Fix::one(format!("apt-get install -y {}", drivers(sys).package(library))).persistent(),
        },
        _ => Usable::Yes,
    }
}
