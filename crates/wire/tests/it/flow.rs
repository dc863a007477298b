//! The hash of a flow: one for both directions and for every packet of it, and spread evenly over many flows.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

use crate::common::{packet, spec};
use proptest::prelude::*;
use wire::{BurstStamp, Template, TemplateSpec, flow_hash, reflect};

proptest! {
    #[test]
    fn both_directions_and_all_packets_of_a_flow_are_one(spec in spec(), flow: u32, sequence: u64, lost in 0usize..80) {
        let template = Template::new(&spec).unwrap();
        let flow = flow % spec.flows;
        let there = packet(&template, 1, 2, sequence, flow);
        let later = packet(&template, 3, 4, sequence ^ 1, flow);
        prop_assert_eq!(flow_hash(&there), flow_hash(&later));
        let mut back = there.clone();
        if reflect(&mut back, false).is_ok() {
            prop_assert_eq!(flow_hash(&there), flow_hash(&back));
        }
        let _ = flow_hash(&there[..there.len().saturating_sub(lost)]);
    }

    #[test]
    fn any_bytes_have_a_hash(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(flow_hash(&frame), flow_hash(&frame.clone()));
    }
}

/// What the hash takes of an IPv4 frame that is a fragment, and of ARP.
#[test]
fn fragments_and_what_is_no_ip_have_no_ports() {
    let mut first = vec![0; 60];
    first[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    first[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 46]);
    first[20] = 0x20;
    first[23] = 17;
    first[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let mut second = first.clone();
    first[34..38].copy_from_slice(&[1, 2, 3, 4]);
    second[20..22].copy_from_slice(&[0, 3]);
    assert_eq!(flow_hash(&first), flow_hash(&second), "one packet");
    let arp = |there: [u8; 6], back: [u8; 6]| {
        let mut frame = [&there[..], &back].concat();
        frame.extend([0x08, 0x06]);
        frame.resize(60, there[5]);
        flow_hash(&frame)
    };
    let (one, other) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    assert_eq!(arp(one, other), arp(other, one));
    assert_ne!(arp(one, other), arp(one, [2, 0, 0, 0, 0, 3]));
}

/// Of flows that differ in one port, or one bit of an address, each part of the hashes gets its share: within six standard
/// deviations, in a draw that is always the same.
#[test]
fn flows_are_spread_evenly() {
    const FLOWS: u32 = 20_000;
    let template = Template::new(&TemplateSpec {
        src: "10.0.0.1:1024".parse().unwrap(),
        dst: "10.0.0.2:7".parse().unwrap(),
        flows: FLOWS,
        ..TemplateSpec::plain(64)
    })
    .unwrap();
    for parts in [2, 7, 16, 100] {
        let mut counts = vec![0_u32; parts];
        for flow in 0..FLOWS {
            let mut room = vec![0; template.room_needed()];
            template.write(&mut room, &BurstStamp::new(0, 0), 0, Some(&template.flow(flow)));
            let hash = flow_hash(&room[..template.frame_len()]);
            counts[((u128::from(hash) * parts as u128) >> 64) as usize] += 1;
        }
        let mean = f64::from(FLOWS) / parts as f64;
        let most = counts
            .iter()
            .map(|count| (f64::from(*count) - mean).abs())
            .fold(0.0, f64::max);
        assert!(most < 6.0 * mean.sqrt(), "{parts}: {counts:?}");
    }
}
