//! The kinds of port that are made in software.

use super::carrier::{Carrier, CarrierKind, Usable, usable};
use crate::preflight::check_driver;
use crate::{PortUri, Sys, check};

/// Form of the URI, and what it is.
const KINDS: [(&str, &str); 8] = [
    ("ring", "a loop inside this process; needs nothing"),
    ("null", "swallows and makes frames; measures dropless itself"),
    ("kernel:127.0.0.1", "UDP sockets of the kernel; the baseline"),
    ("tap:dropless0", "a new interface of this kernel"),
    ("memif:PATH[,server]", "shared memory with another process"),
    ("vhost:PATH[,client]", "the host's end of a virtual machine's NIC"),
    (
        "virtio-user:PATH[,server]",
        "the guest's end, without a virtual machine",
    ),
    ("pcap:IN[,OUT]", "frames from and to files"),
];

/// Every kind, with what it lacks here.
pub fn list(sys: &Sys) -> Vec<Carrier> {
    let carrier = |(form, description): (&str, &str)| {
        // Without the parts that may be left out it is a URI.
        let uri: PortUri = form.split('[').next()?.parse().ok()?;
        let traits = uri.kind.traits();
        Some(Carrier {
            driver: traits.driver.map(|driver| format!("net_{driver}")),
            description: description.to_owned(),
            ..Carrier::new(CarrierKind::Virtual, traits.name, form, state(sys, form, &uri))
        })
    };
    KINDS.into_iter().filter_map(carrier).collect()
}

/// A form that is a whole URI is checked as one; of the others only the driver can be.
fn state(sys: &Sys, form: &str, uri: &PortUri) -> Usable {
    usable(if form.contains('[') {
        check_driver(uri, sys)
    } else {
        check(uri, sys)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_one_of_a_uri() {
        assert_eq!(list(&Sys::live()).len(), KINDS.len());
    }
}
