//! Two ports of one run must not take the same thing.

use crate::{Fix, Medium, PortKind, PortUri, Problem};
use std::collections::BTreeMap;
use std::num::NonZeroU16;

/// Fails on the first two that clash.
pub fn check(uris: &[PortUri]) -> Result<(), Problem> {
    let mut taken: BTreeMap<String, &PortUri> = BTreeMap::new();
    for uri in uris {
        for thing in std::iter::once(uri.to_string()).chain(takes(uri)) {
            let Some(first) = taken
                .insert(thing, uri)
                .filter(|first| !std::ptr::eq(*first, uri))
            else {
                continue;
            };
            let why = if first == uri {
                "it is given twice".to_owned()
            } else {
                format!("it conflicts with {first}")
            };
            return Err(Problem::new(uri, why, Fix::advice(advice(uri))));
        }
    }
    Ok(())
}

fn advice(uri: &PortUri) -> String {
    let traits = uri.kind.traits();
    if traits.medium == Medium::Process {
        format!("give it once, or name the two apart: {0}:a {0}:b", traits.name)
    } else if traits.is_socket_per_queue {
        "give it once, with queues=N for more queues".to_owned()
    } else {
        "give it once".to_owned()
    }
}

/// Names of the things that only one port can have: most often what stands before its options.
fn takes(uri: &PortUri) -> Vec<String> {
    match &uri.kind {
        PortKind::Xdp { interface, start, .. } => {
            let (start, queues) = (start.unwrap_or(0), uri.queues.map_or(1, NonZeroU16::get));
            (start..start.saturating_add(queues))
                .map(|queue| format!("xdp {interface} {queue}"))
                .collect()
        }
        PortKind::Memif { path, server, id, .. } => vec![format!("memif {} {id} {server}", path.display())],
        PortKind::Vhost { path, client: false } | PortKind::VirtioUser { path, server: true } => {
            vec![format!("listen {}", path.display())]
        }
        PortKind::Pcap { output, .. } => {
            let output = output.iter();
            output.map(|path| format!("write {}", path.display())).collect()
        }
        PortKind::Kernel { address, port, .. } => {
            let port = port.iter();
            port.map(|port| format!("udp {address} {port}")).collect()
        }
        _ => uri.to_string().split(',').take(1).map(str::to_owned).collect(),
    }
}
