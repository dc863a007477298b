//! PCI network functions in every state of binding.

use crate::fixture::{Fixture, PMDS};
use host::{Memory, Sys};

const IXGBE: (u32, u32) = (0x8086, 0x10fb);
const VIRTIO: (u32, u32) = (0x1af4, 0x1041);
const MLX5: (u32, u32) = (0x15b3, 0x1017);
const ADDRESS: &str = "0000:3b:00.0";
const URI: &str = "pci:0000:3b:00.0";

#[test]
fn bound_to_vfio_with_hugepages_it_is_ready() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, IXGBE, Some("vfio-pci"), Some(1));
    let prepared = machine.check(URI).unwrap();
    assert_eq!(
        (prepared.memory, prepared.numa_node),
        (Memory::HugePages, Some(0))
    );
    assert_eq!(prepared.notes.len(), 0);
}

#[test]
fn bound_to_its_kernel_driver_it_is_told_how_to_bind() {
    let machine = Fixture::new();
    let device = machine.pci(ADDRESS, IXGBE, Some("ixgbe"), Some(1));
    machine.interface("eth1", Some(&device));
    assert_eq!(
        machine.line(URI),
        "pci:0000:3b:00.0: it is bound to the kernel's driver ixgbe (interface eth1), and DPDK needs vfio-pci; \
         fix: modprobe vfio-pci && echo 0000:3b:00.0 > /sys/bus/pci/drivers/ixgbe/unbind \
         && echo 'vfio-pci' > /sys/bus/pci/devices/0000:3b:00.0/driver_override \
         && echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe"
    );
    let fix = machine.check(URI).unwrap_err().fix;
    assert!(!fix.persists);
    assert_eq!(
        fix.undo,
        [
            "echo 0000:3b:00.0 > /sys/bus/pci/drivers/vfio-pci/unbind",
            "echo '' > /sys/bus/pci/devices/0000:3b:00.0/driver_override",
            "echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe",
        ]
    );
    assert!(
        fix.make_persistent
            .contains(&format!("driverctl set-override {ADDRESS} vfio-pci"))
    );
}

#[test]
fn driverctl_is_used_where_it_is_installed() {
    let machine = Fixture::new();
    machine.write("/usr/sbin/driverctl", "");
    machine.pci(ADDRESS, IXGBE, Some("ixgbe"), Some(1));
    let fix = machine.check(URI).unwrap_err().fix;
    assert_eq!(
        fix.commands,
        [
            "modprobe vfio-pci",
            "driverctl set-override 0000:3b:00.0 vfio-pci"
        ]
    );
    assert_eq!(fix.undo, ["driverctl unset-override 0000:3b:00.0"]);
    assert!(fix.persists);
}

#[test]
fn bound_to_nothing_there_is_nothing_to_unbind() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, IXGBE, None, Some(1));
    let line = machine.line(URI);
    assert!(
        line.contains(
            "it is bound to no driver, and DPDK needs vfio-pci; fix: modprobe vfio-pci && echo 'vfio-pci'"
        ),
        "{line}"
    );
}

#[test]
fn without_an_iommu_bare_metal_is_told_to_boot_with_one() {
    let machine = Fixture::new();
    machine.remove("/sys/kernel/iommu_groups/1");
    machine.pci(ADDRESS, IXGBE, Some("ixgbe"), None);
    let line = machine.line(URI);
    assert!(line.contains("the IOMMU that vfio-pci wants is absent"), "{line}");
    assert!(line.contains("intel_iommu=on iommu=pt"), "{line}");
    machine.remove(&format!("/sys/devices/pci0000:00/{ADDRESS}/driver"));
    machine.link(
        &format!("/sys/devices/pci0000:00/{ADDRESS}/driver"),
        "/sys/bus/pci/drivers/vfio-pci",
    );
    let line = machine.line(URI);
    assert!(
        line.contains("it is bound to vfio-pci, and there is no IOMMU; fix: switch the IOMMU on"),
        "{line}"
    );
}

#[test]
fn a_virtual_machine_without_an_iommu_is_told_to_do_without() {
    let machine = Fixture::virtual_machine();
    let device = machine.pci(ADDRESS, VIRTIO, Some("virtio-pci"), None);
    let virtio = format!("{device}/virtio2");
    machine.link(&format!("{virtio}/subsystem"), "/sys/bus/virtio");
    machine.interface("eth1", Some(&virtio));
    let problem = machine.check(URI).unwrap_err();
    assert_eq!(
        problem.found,
        "it is bound to the kernel's driver virtio-pci (interface eth1), and the IOMMU that vfio-pci wants is absent"
    );
    let parameter = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    assert_eq!(
        problem.fix.commands[..2],
        ["modprobe vfio-pci".to_owned(), format!("echo 1 > {parameter}")]
    );
    assert_eq!(problem.fix.undo.last().unwrap(), &format!("echo 0 > {parameter}"));
}

#[test]
fn vfio_without_iommu_works_with_a_word_of_warning() {
    let machine = Fixture::virtual_machine();
    machine.pci(ADDRESS, VIRTIO, Some("vfio-pci"), Some(0));
    machine.write("/sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
    machine.write("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    assert_eq!(machine.notes(URI), ["no-iommu"]);
}

#[test]
fn a_kernel_without_vfio_falls_back_to_uio_or_says_so() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, IXGBE, Some("ixgbe"), Some(1));
    let modules = "/lib/modules/6.1.0-18-amd64/modules.dep";
    machine.write(modules, "kernel/drivers/uio/uio_pci_generic.ko.xz:\n");
    assert!(
        machine
            .line(URI)
            .contains("DPDK needs uio_pci_generic; fix: modprobe uio_pci_generic && ")
    );
    machine.write(modules, "");
    assert!(
        machine
            .line(URI)
            .contains("this kernel has neither vfio-pci nor uio_pci_generic; fix: boot a kernel")
    );
    machine.remove("/lib/modules");
    assert!(machine.line(URI).contains("this kernel has neither"));
}

#[test]
fn others_in_its_iommu_group_block_it() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, IXGBE, Some("vfio-pci"), Some(1));
    machine.pci("0000:3b:00.1", IXGBE, Some("ixgbe"), Some(1));
    let line = machine.line(URI);
    assert!(
        line.contains("its IOMMU group 1 is shared with 0000:3b:00.1 (ixgbe), which the kernel drives"),
        "{line}"
    );
    assert!(
        line.contains("echo 0000:3b:00.1 > /sys/bus/pci/drivers/ixgbe/unbind"),
        "{line}"
    );
}

#[test]
fn short_of_hugepages_it_is_told_how_many_to_reserve() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, IXGBE, Some("vfio-pci"), Some(1));
    machine.hugepages(0, 2048, 10, 4);
    assert_eq!(
        machine.line(URI),
        "pci:0000:3b:00.0: it needs 256 MiB of free huge pages on NUMA node 0, and 8 MiB are free; \
         fix: echo 134 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"
    );
}

#[test]
fn mellanox_stays_on_its_kernel_driver_and_needs_its_libraries() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, MLX5, Some("mlx5_core"), Some(1));
    assert!(
        machine
            .line(URI)
            .ends_with("is not installed; fix: apt-get install -y libibverbs1 ibverbs-providers")
    );
    machine.write("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "");
    assert!(machine.line(URI).contains("no verbs device"));
    assert!(
        machine
            .line(URI)
            .ends_with("fix: modprobe -a mlx5_core mlx5_ib ib_uverbs")
    );
    machine.directory("/sys/class/infiniband_verbs/uverbs0");
    machine.check(URI).unwrap();
}

#[test]
fn mellanox_on_vfio_is_told_to_go_back() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, MLX5, Some("vfio-pci"), Some(1));
    let line = machine.line(URI);
    assert!(
        line.contains("it is bound to vfio-pci, and this NIC stays on its kernel driver mlx5_core"),
        "{line}"
    );
    assert!(line.contains("echo 'mlx5_core' > "), "{line}");
}

#[test]
fn a_missing_driver_library_is_named_by_its_package() {
    let machine = Fixture::new();
    machine.pci(ADDRESS, MLX5, Some("mlx5_core"), Some(1));
    machine.write("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "");
    machine.remove(&format!("{PMDS}/librte_net_mlx5.so"));
    assert!(
        machine
            .line(URI)
            .ends_with("fix: apt-get install -y librte-net-mlx5-23")
    );

    let machine = Fixture::new();
    machine.pci(ADDRESS, (0x1d0f, 0xec20), Some("ena"), Some(1));
    assert_eq!(
        machine.line(URI),
        "pci:0000:3b:00.0: no installed DPDK driver claims 1d0f:ec20; fix: apt-get install -y librte-net-ena23"
    );
}

#[test]
fn the_way_into_the_machine_is_not_taken_without_force() {
    let mut machine = Fixture::new();
    let device = machine.pci(ADDRESS, IXGBE, Some("ixgbe"), Some(1));
    machine.interface("eth1", Some(&device));
    machine.default_route("eth1");
    assert_eq!(
        machine.line(URI),
        "pci:0000:3b:00.0: it is eth1, which carries the default route of this machine: taking it from the kernel \
         would cut the machine off; fix: choose another port, share it with the kernel as packet:eth1, or add --force"
    );
    machine.sys.force = true;
    assert!(machine.line(URI).contains("DPDK needs vfio-pci"));
}

#[test]
fn absent_devices_and_other_classes_are_refused() {
    let machine = Fixture::new();
    assert!(
        machine
            .line(URI)
            .contains("and this machine has no network function on PCI")
    );
    let other = machine.pci("0000:00:1f.2", (0x8086, 0x2922), Some("ahci"), Some(1));
    machine.write(&format!("{other}/class"), "0x010601\n");
    assert!(
        machine
            .line("pci:0000:00:1f.2")
            .contains("it is not a network function (8086:2922, class 010601)")
    );
    machine.pci("0000:3b:00.1", IXGBE, Some("ixgbe"), Some(1));
    assert!(
        machine
            .line(URI)
            .contains("no such PCI device (network functions: 0000:3b:00.1)")
    );
}

#[test]
fn nothing_panics_on_a_machine_without_sys_and_proc() {
    let empty = tempfile::TempDir::new().unwrap();
    let sys = Sys::at(empty.path());
    for uri in [
        "ring",
        "null",
        "xdp:a",
        "packet:a",
        "tap:a",
        URI,
        "mac:02:00:00:00:00:01",
        "memif:/a,server",
    ] {
        let _ = host::check(&uri.parse().unwrap(), &sys);
    }
    let _ = (host::discover(&sys), host::facts(&sys, serde_json::Value::Null));
}
