//! The commands that hand a device from the kernel's driver to one that DPDK can use, and back.

use crate::{Fix, PciAddress, Sys, VmbusId};
use crate::{pci, vmbus};

const PCI: &str = "/sys/bus/pci";
/// Whether VFIO takes devices without an IOMMU.
pub const NO_IOMMU: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
const VMBUS: &str = "/sys/bus/vmbus";

/// Binds a PCI function to `driver` (`vfio-pci`, `uio_pci_generic`), now at `from`.
///
/// `driverctl` is used where it is installed, as its effect survives a reboot; plain sysfs otherwise.
/// Without an IOMMU, VFIO is first told to do without.
pub fn pci_bind(sys: &Sys, address: PciAddress, from: Option<&str>, driver: &str) -> Fix {
    let load = Fix::one(format!("modprobe {driver}"));
    let first = if driver == "vfio-pci" && !pci::has_iommu(sys) {
        no_iommu(sys).after(load)
    } else {
        load
    };
    let mut undo = vec![format!("echo {address} > {PCI}/drivers/{driver}/unbind")];
    undo.extend(override_and_probe(address, ""));
    let plain = pci_move(address, from, driver).undone_by(undo);
    kept(sys, "driverctl", &format!("{address} {driver}"), first, plain)
}

/// Binds by driverctl where it is installed; else as `plain` does, and says how driverctl would keep it.
fn kept(sys: &Sys, driverctl: &str, what: &str, first: Fix, plain: Fix) -> Fix {
    let device = what.split(' ').next().unwrap_or_default();
    let set = format!("{driverctl} set-override {what}");
    if has_driverctl(sys) {
        return Fix::one(set)
            .persistent()
            .undone_by([format!("{driverctl} unset-override {device}")])
            .after(first.persistent());
    }
    let install = "apt-get install -y driverctl".to_owned();
    plain.kept_by([install, set]).after(first)
}

/// Gives a PCI function back to the kernel's driver `to`, away from `from`.
pub fn pci_unbind(address: PciAddress, from: &str, to: &str) -> Fix {
    pci_move(address, Some(from), to).undone_by(pci_move(address, Some(to), from).commands)
}

fn pci_move(address: PciAddress, from: Option<&str>, to: &str) -> Fix {
    let unbind = from.map(|driver| format!("echo {address} > {PCI}/drivers/{driver}/unbind"));
    Fix::all(unbind.into_iter().chain(override_and_probe(address, to)))
}

fn override_and_probe(address: PciAddress, driver: &str) -> [String; 2] {
    [
        format!("echo '{driver}' > {PCI}/devices/{address}/driver_override"),
        format!("echo {address} > {PCI}/drivers_probe"),
    ]
}

/// VFIO without an IOMMU: devices may then write anywhere in memory, as they may under their kernel drivers.
fn no_iommu(sys: &Sys) -> Fix {
    if pci::vfio_without_iommu(sys) {
        return Fix::default();
    }
    Fix::one(format!("echo 1 > {NO_IOMMU}"))
        .undone_by([format!("echo 0 > {NO_IOMMU}")])
        .kept_by(["echo 'options vfio enable_unsafe_noiommu_mode=1' > /etc/modprobe.d/vfio-noiommu.conf"])
}

/// Binds a `VMBus` network device to `uio_hv_generic`, now at `from`.
pub fn vmbus_bind(sys: &Sys, id: &VmbusId, from: Option<&str>) -> Fix {
    const TO: &str = "uio_hv_generic";
    let class = vmbus::CLASS_NETWORK;
    let mut commands = Vec::new();
    // The kernel refuses a class it already has (EEXIST), so this step may fail where it was done before.
    commands.push(format!("(echo {class} > {VMBUS}/drivers/{TO}/new_id || true)"));
    commands.extend(from.map(|driver| format!("echo {id} > {VMBUS}/drivers/{driver}/unbind")));
    commands.push(format!("echo {id} > {VMBUS}/drivers/{TO}/bind"));
    let plain = Fix::all(commands).undone_by([
        format!("echo {id} > {VMBUS}/drivers/{TO}/unbind"),
        format!("echo {id} > {VMBUS}/drivers/hv_netvsc/bind"),
    ]);
    let load = Fix::one(format!("modprobe {TO}"));
    kept(sys, "driverctl -b vmbus", &format!("{id} {TO}"), load, plain)
}

/// Whether driverctl is installed, whose bindings survive a reboot.
pub fn has_driverctl(sys: &Sys) -> bool {
    ["/usr/sbin/driverctl", "/sbin/driverctl", "/usr/bin/driverctl"]
        .iter()
        .any(|path| sys.exists(path))
}
