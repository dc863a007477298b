//! Hyper-V's network devices, and finding devices by their address.

use crate::fixture::Fixture;
use host::{Memory, PortKind};

const ID: &str = "000d3a00-1111-2222-3333-000d3a000001";
const URI: &str = "vmbus:000d3a00-1111-2222-3333-000d3a000001";

#[test]
fn on_its_kernel_driver_it_is_told_each_step() {
    let machine = Fixture::virtual_machine();
    let device = machine.vmbus(ID, "hv_netvsc");
    machine.interface("eth1", Some(&device));
    assert_eq!(
        machine.line(URI),
        format!(
            "{URI}: it is bound to the driver hv_netvsc (interface eth1), and DPDK needs uio_hv_generic; \
             fix: modprobe uio_hv_generic \
             && (echo f8615163-df3e-46c5-913f-f2d2f965ed0e > /sys/bus/vmbus/drivers/uio_hv_generic/new_id || true) \
             && echo {ID} > /sys/bus/vmbus/drivers/hv_netvsc/unbind \
             && echo {ID} > /sys/bus/vmbus/drivers/uio_hv_generic/bind"
        )
    );
    let fix = machine.check(URI).unwrap_err().fix;
    assert_eq!(
        fix.undo.last().unwrap(),
        &format!("echo {ID} > /sys/bus/vmbus/drivers/hv_netvsc/bind")
    );
    assert!(
        fix.make_persistent
            .contains(&format!("driverctl -b vmbus set-override {ID} uio_hv_generic"))
    );
}

#[test]
fn with_driverctl_one_command_persists() {
    let machine = Fixture::virtual_machine();
    machine.write("/usr/sbin/driverctl", "");
    machine.vmbus(ID, "hv_netvsc");
    let fix = machine.check(URI).unwrap_err().fix;
    let bind = format!("driverctl -b vmbus set-override {ID} uio_hv_generic");
    assert_eq!(fix.commands, ["modprobe uio_hv_generic".to_owned(), bind]);
    assert!(fix.persists);
}

#[test]
fn on_uio_it_is_ready() {
    let machine = Fixture::virtual_machine();
    machine.vmbus(ID, "uio_hv_generic");
    assert_eq!(machine.check(URI).unwrap().memory, Memory::HugePages);
    machine.process("0000000000000000", "0-7");
    assert!(machine.line(URI).contains("needs CAP_SYS_ADMIN"));
}

#[test]
fn the_default_route_other_classes_and_other_machines_are_refused() {
    let machine = Fixture::virtual_machine();
    assert!(machine.line(URI).contains("this machine has no VMBus"));
    let device = machine.vmbus(ID, "hv_netvsc");
    machine.interface("eth0", Some(&device));
    machine.default_route("eth0");
    assert!(
        machine
            .line(URI)
            .contains("it is eth0, which carries the default route")
    );
    assert!(machine.line(&URI.replace("0001", "0009")).contains(&format!(
        "this VMBus device does not exist (network devices: {ID})"
    )));
    machine.write(
        &format!("{device}/class_id"),
        "{57164f39-9115-4e78-ab55-382f3bd5422d}\n",
    );
    assert!(machine.line(URI).contains("it is not a network device"));
}

#[test]
fn a_mac_address_finds_its_device() {
    let machine = Fixture::virtual_machine();
    let device = machine.vmbus(ID, "hv_netvsc");
    // Accelerated networking: a virtual function with the same address, owned by the VMBus interface.
    let function = machine.pci("0001:00:02.0", (0x15b3, 0x1016), Some("mlx5_core"), None);
    machine.interface("eth1", Some(&device));
    machine.interface("enP1s2", Some(&function));
    let line = machine.line("mac:02:00:00:00:00:01");
    assert!(
        line.starts_with(&format!("mac:02:00:00:00:00:01 ({URI}): it is bound to")),
        "{line}"
    );
    let line = machine.line("mac:02:00:00:00:00:99");
    assert!(
        line.contains(
            "no device has the address 02:00:00:00:00:99 (there are: enP1s2 02:00:00:00:00:01, eth1 "
        ),
        "{line}"
    );
    assert!(line.ends_with("fix: dropless ports"), "{line}");
}

#[test]
fn a_mac_address_may_hide_behind_a_device_without_the_kernel() {
    let machine = Fixture::new();
    machine.pci("0000:3b:00.0", (0x8086, 0x10fb), Some("vfio-pci"), Some(1));
    assert!(
        machine
            .line("mac:02:00:00:00:00:99")
            .ends_with("fix: name the device itself: pci:0000:3b:00.0")
    );
    machine.interface("veth0", None);
    let prepared = machine.check("mac:02:00:00:00:00:01,queues=2").unwrap();
    assert!(matches!(prepared.uri.kind, PortKind::Packet { ref interface, .. } if interface == "veth0"));
    assert_eq!(prepared.uri.queues.unwrap().get(), 2);
}
