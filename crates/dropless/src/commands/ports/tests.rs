//! The listing of made-up machines: every kind of row, at both ends of the range of widths.

use std::collections::BTreeSet;

use host::{Carrier, CarrierKind, Fix, Link, Queues, Role, Usable, Warning};
use report::Style;

use super::show::listing;

fn carrier(kind: CarrierKind, uri: &str, usable: Usable) -> Carrier {
    Carrier {
        name: uri.into(),
        kind,
        uri: uri.into(),
        driver: Some("ixgbe".into()),
        description: "a NIC".into(),
        numa_node: Some(1),
        link: Some(Link {
            up: true,
            speed_mbps: Some(25_000),
        }),
        queues: Some(Queues { rx: 8, tx: 16 }),
        mac: None,
        addresses: vec!["192.0.2.1".parse().unwrap()],
        usable,
        roles: BTreeSet::new(),
    }
}

fn no(why: &str, commands: &[&str]) -> Usable {
    Usable::No {
        why: why.into(),
        fix: Fix::all(commands.iter().copied()),
    }
}

fn style(width: usize) -> Style {
    Style {
        width,
        ..Style::plain()
    }
}

#[test]
fn a_row_says_everything_that_is_known() {
    let text = listing(
        &[carrier(CarrierKind::Pci, "pci:0000:3b:00.0", Usable::Yes)],
        &[],
        &style(80),
    );
    let expected = "\
PCI                 usable  driver  NUMA  link          queues
  pci:0000:3b:00.0  yes     ixgbe      1  up 25 Gbit/s    8+16
      a NIC, 192.0.2.1

1 usable now, 0 with care, 0 not. Capital words in a URI are yours to fill in.
";
    assert_eq!(text, expected);
}

#[test]
fn in_a_narrow_terminal_no_row_is_lost() {
    let two = ["pci:0000:3b:00.0", "pci:0000:3b:00.1"];
    let carriers = two.map(|uri| carrier(CarrierKind::Pci, uri, Usable::Yes));
    for width in [40, 60, 80] {
        let text = listing(&carriers, &[], &style(width));
        assert_eq!(text.matches("up 25 Gbit/s").count(), 2, "{width}:\n{text}");
        assert!(two.iter().all(|uri| text.contains(uri)), "{width}:\n{text}");
    }
}

#[test]
fn what_is_not_known_is_a_dash() {
    let bare = Carrier {
        driver: None,
        numa_node: None,
        link: None,
        queues: None,
        ..carrier(CarrierKind::Pci, "pci:0000:3b:00.0", Usable::Yes)
    };
    let text = listing(&[bare], &[], &style(80));
    assert!(
        text.contains("  pci:0000:3b:00.0  yes     -          -  -          -\n"),
        "{text}"
    );
}

#[test]
fn a_refusal_gives_its_reason_and_each_command_in_one_piece() {
    let long =
        "echo 0000:3b:00.0 > /sys/bus/pci/devices/0000:3b:00.0/driver/unbind && modprobe vfio-pci && true";
    let usable = no(
        "it is bound to the kernel's driver ixgbe (interface eth0), and DPDK needs vfio-pci",
        &["modprobe vfio-pci", long],
    );
    let text = listing(
        &[carrier(CarrierKind::Pci, "pci:0000:3b:00.0", usable)],
        &[],
        &style(60),
    );
    assert!(text.contains("fix: modprobe vfio-pci\n"), "{text}");
    assert!(text.contains(&format!("           {long}\n")), "{text}");
    let too_wide: Vec<&str> = text
        .lines()
        .filter(|line| line.len() > 60 && !line.contains(long))
        .collect();
    assert!(too_wide.is_empty(), "{too_wide:?}");
}

#[test]
fn the_default_route_is_named_whatever_the_reason() {
    let mut eth0 = carrier(CarrierKind::Interface, "packet:eth0", Usable::Yes);
    eth0.roles = [Role::DefaultRoute, Role::SshSession].into();
    let text = listing(std::slice::from_ref(&eth0), &[], &style(80));
    assert!(
        text.contains("it carries the default route of this machine\n"),
        "{text}"
    );
    assert!(
        text.contains("it carries an SSH session of this machine\n"),
        "{text}"
    );
    eth0.usable = Usable::Caution {
        why: "eth0 carries the default route and an SSH session of this machine".into(),
    };
    let text = listing(&[eth0], &[], &style(80));
    assert_eq!(text.matches("the default route").count(), 1, "{text}");
    assert!(text.contains("with care"), "{text}");
}

#[test]
fn a_long_uri_is_never_shortened() {
    let uri = "vmbus:000d3a00-1111-2222-3333-000d3a000001";
    for width in [40, 80, 120] {
        let text = listing(
            &[carrier(CarrierKind::Vmbus, uri, Usable::Yes)],
            &[],
            &style(width),
        );
        assert!(text.lines().any(|line| line.trim() == uri), "{text}");
    }
}

#[test]
fn warnings_of_the_machine_come_with_their_commands() {
    let warning = Warning::new("no-hugepages", "no huge pages are free").with_fix(Fix::one("echo 512 > /x"));
    let text = listing(&[], &[warning], &style(80));
    assert!(
        text.contains("This machine\n  no huge pages are free\n      fix: echo 512 > /x\n"),
        "{text}"
    );
    assert!(text.contains("No PCI or VMBus network device"), "{text}");
}
