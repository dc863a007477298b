//! The list of everything that could carry packets.

use crate::fixture::{Fixture, PMDS};
use host::{Carrier, CarrierKind, Role, Usable, discover};

fn find<'a>(carriers: &'a [Carrier], name: &str) -> &'a Carrier {
    carriers.iter().find(|carrier| carrier.name == name).unwrap()
}

fn why(carrier: &Carrier) -> &str {
    match &carrier.usable {
        Usable::Yes => "",
        Usable::Caution { why } | Usable::No { why, .. } => why,
    }
}

#[test]
fn devices_interfaces_and_kinds_are_listed_with_what_they_lack() {
    let mut machine = Fixture::new();
    let first = machine.pci("0000:3b:00.0", (0x8086, 0x10fb), Some("ixgbe"), Some(1));
    machine.pci("0000:3b:00.1", (0x8086, 0x10fb), Some("vfio-pci"), Some(2));
    machine.interface("eth0", Some(&first));
    machine.write(&format!("{first}/net/eth0/speed"), "10000\n");
    machine.interface("veth0", None);
    machine.write("/sys/devices/virtual/net/veth0/iflink", "1");
    // Its other end has the same number, in another network namespace.
    machine.interface("veth1", None);
    machine.sys.kinds.insert("veth1".to_owned(), "veth".to_owned());
    machine.interface("lo", None);
    machine.write("/sys/devices/virtual/net/lo/type", "772");
    machine.interface("ifb0", None);
    machine.default_route("eth0");
    let carriers = discover(&machine.sys);

    let pci = find(&carriers, "0000:3b:00.0");
    assert_eq!(
        (pci.kind, pci.driver.as_deref(), pci.numa_node),
        (CarrierKind::Pci, Some("ixgbe"), Some(0))
    );
    assert_eq!(pci.link.unwrap().speed_mbps, Some(10_000));
    assert!(matches!(pci.usable, Usable::No { .. }) && why(pci).contains("carries the default route"));
    assert!(pci.description.contains("[8086:10fb], DPDK driver net_ixgbe"));
    assert_eq!(find(&carriers, "0000:3b:00.1").usable, Usable::Yes);

    let eth0 = find(&carriers, "eth0");
    assert_eq!(
        (eth0.uri.as_str(), eth0.roles.first()),
        ("packet:eth0", Some(&Role::DefaultRoute))
    );
    assert!(matches!(eth0.usable, Usable::Caution { .. }) && why(eth0).contains("carries the default route"));
    let veth = find(&carriers, "veth0");
    assert_eq!((veth.uri.as_str(), &veth.usable), ("xdp:veth0", &Usable::Yes));
    assert!(veth.description.contains("software in this kernel, no NIC"));
    let same = find(&carriers, "veth1");
    assert_eq!(same.description, veth.description);
    assert!(why(find(&carriers, "lo")).contains("leads back to this kernel"));
    assert!(why(find(&carriers, "ifb0")).contains("leads nowhere"));

    assert_eq!(find(&carriers, "ring").usable, Usable::Yes);
    assert_eq!(find(&carriers, "kernel").usable, Usable::Yes);
    let virtio = find(&carriers, "virtio-user");
    assert_eq!(
        (virtio.kind, &virtio.usable),
        (CarrierKind::Virtual, &Usable::Yes)
    );
    assert!(why(find(&carriers, "tap")).contains("/dev/net/tun does not exist"));
}

#[test]
fn another_reason_does_not_hide_the_default_route() {
    let machine = Fixture::new();
    machine.interface("eth0", None);
    machine.default_route("eth0");
    machine.process("0000000000000000", "0-7");
    let carriers = discover(&machine.sys);
    let why = why(find(&carriers, "eth0"));
    assert!(
        why.starts_with("it carries the default route of this machine; AF_PACKET needs CAP_NET_RAW"),
        "{why}"
    );
}

#[test]
fn a_kind_without_its_driver_names_the_package() {
    let machine = Fixture::new();
    machine.remove(&format!("{PMDS}/librte_net_memif.so"));
    let carriers = discover(&machine.sys);
    let Usable::No { fix, .. } = &find(&carriers, "memif").usable else {
        panic!("memif is usable")
    };
    assert_eq!(fix.commands, ["apt-get install -y librte-net-memif23"]);
}

#[test]
fn the_list_is_json() {
    let machine = Fixture::virtual_machine();
    let device = machine.vmbus("000d3a00-1111-2222-3333-000d3a000001", "hv_netvsc");
    machine.interface("eth1", Some(&device));
    let list = serde_json::to_value(discover(&machine.sys)).unwrap();
    assert_eq!(list[0]["kind"], "vmbus");
    assert_eq!(list[0]["uri"], "vmbus:000d3a00-1111-2222-3333-000d3a000001");
    assert_eq!(list[0]["mac"], "02:00:00:00:00:01");
    assert_eq!(list[0]["usable"]["state"], "no");
    assert_eq!(list[0]["usable"]["fix"]["commands"][0], "modprobe uio_hv_generic");
    assert_eq!(
        list[1]["description"],
        "the kernel's interface on vmbus:000d3a00-1111-2222-3333-000d3a000001"
    );
}
