//! `pci:`: a network function that DPDK drives itself, or through its kernel driver (mlx4, mlx5, MANA).

use super::bifurcated;
use super::interface::{first_name, named, refused_role};
use super::look::{Look, Memory, Prepared, as_root, may};
use crate::bifurcated::Bifurcated;
use crate::capability::Capability;
use crate::drivers::drivers;
use crate::modules::{Module, module};
use crate::pci::{PciDevice, blocking_group, has_iommu, network_functions, vfio_without_iommu};
use crate::{Fix, PciAddress, Problem, Warning, bind, facts, hugepages, pci};
use nix::unistd::AccessFlags;

/// The device, its binding, its libraries, then memory.
pub fn check(look: &Look<'_>, address: PciAddress) -> Result<Prepared, Problem> {
    let sys = look.sys;
    let Some(device) = pci::device(sys, address) else {
        return Err(absent(look));
    };
    if !device.is_network() {
        let fix = Fix::advice("name a network function; dropless ports lists them");
        let found = format!(
            "it is not a network function ({}, class {:06x})",
            device.identifiers(),
            device.class
        );
        return Err(look.problem(found, fix));
    }
    refused_role(look, &device.interfaces(&look.interfaces))?;
    let mut notes = Vec::new();
    if let Some(family) = Bifurcated::of(sys, &device) {
        bifurcated::check(family, look, &device)?;
    } else {
        claimed(look, &device)?;
        bound(look, &device)?;
        if vfio_without_iommu(sys) && device.driver.as_deref() == Some("vfio-pci") && !has_iommu(sys) {
            let text = "VFIO works without an IOMMU here: the device can write anywhere in memory";
            notes.push(Warning::new("no-iommu", text));
        }
    }
    hugepages::check(
        sys,
        &look.uri.to_string(),
        hugepages::MINIMUM_BYTES,
        device.numa_node,
    )?;
    Ok(Prepared {
        memory: Memory::HugePages,
        numa_node: device.numa_node,
        interface: first_name(&device, &look.interfaces),
        ..Prepared::of(look.uri)
    }
    .with_notes(notes))
}

fn absent(look: &Look<'_>) -> Problem {
    let there: Vec<String> = network_functions(look.sys)
        .iter()
        .map(|device| device.address.to_string())
        .collect();
    let found = match there.as_slice() {
        [] => "no such PCI device, and this machine has no network function on PCI".to_owned(),
        some => format!("no such PCI device (network functions: {})", some.join(", ")),
    };
    look.problem(
        found,
        Fix::one("echo 1 > /sys/bus/pci/rescan").or("choose from: dropless ports"),
    )
}

/// An installed DPDK driver must know the device.
fn claimed(look: &Look<'_>, device: &PciDevice) -> Result<(), Problem> {
    let drivers = drivers(look.sys);
    if drivers.directories.is_empty() || drivers.claiming(device.claimed_by()).is_some() {
        return Ok(());
    }
    let likely: &[&str] = match device.vendor {
        0x8086 => &["e1000", "igc", "ixgbe", "i40e", "ice", "iavf"],
        0x1af4 => &["virtio"],
        0x15b3 => &["mlx5"],
        0x1d0f => &["ena"],
        0x1ae0 => &["gve"],
        0x14e4 => &["bnxt"],
        0x15ad => &["vmxnet3"],
        0x1425 => &["cxgbe"],
        0x1137 => &["enic"],
        0x1924 => &["sfc"],
        0x1dd8 => &["ionic"],
        0x1d6a => &["atlantic"],
        0x1077 => &["qede"],
        0x19e5 => &["hinic", "hns3"],
        _ => &[],
    };
    let missing: Vec<&&str> = likely
        .iter()
        .filter(|name| drivers.has(name) == Some(false))
        .collect();
    let found = format!("no installed DPDK driver claims {}", device.identifiers());
    let packages: Vec<String> = missing.iter().map(|name| drivers.package(name)).collect();
    let fix = match (packages.is_empty(), first_name(device, &look.interfaces)) {
        (false, _) => Fix::one(format!("apt-get install -y {}", packages.join(" "))),
        (true, Some(name)) => Fix::advice(format!("use it through the kernel: xdp:{name} or packet:{name}")),
        (true, None) => Fix::one("apt-get install -y dpdk").or("use another device"),
    };
    Err(look.problem(found, fix))
}

/// It must be bound to a driver that hands it over.
fn bound(look: &Look<'_>, device: &PciDevice) -> Result<(), Problem> {
    match device.driver.as_deref() {
        Some("vfio-pci") => vfio(look, device),
        Some("uio_pci_generic" | "igb_uio") => look.capabilities(&[Capability::SysAdmin], "a UIO device"),
        from => Err(unbound(look, device, from)),
    }
}

fn vfio(look: &Look<'_>, device: &PciDevice) -> Result<(), Problem> {
    let sys = look.sys;
    let Some(group) = device.iommu_group else {
        let fix = if has_iommu(sys) || !facts::is_virtual(sys) {
            boot_with_iommu(sys)
        } else {
            rebind(look, device)
        };
        return Err(look.problem("it is bound to vfio-pci, and there is no IOMMU", fix));
    };
    let blocking = blocking_group(sys, group, device.address);
    if let Some((address, driver)) = blocking.first() {
        let names: Vec<String> = blocking
            .iter()
            .map(|(address, driver)| format!("{address} ({driver})"))
            .collect();
        let found = format!(
            "its IOMMU group {group} is shared with {}, which the kernel drives",
            names.join(", ")
        );
        return Err(look.problem(found, bind::pci_bind(sys, *address, Some(driver), "vfio-pci")));
    }
    let file = [format!("/dev/vfio/{group}"), format!("/dev/vfio/noiommu-{group}")];
    let file = file
        .into_iter()
        .map(|path| sys.path(path))
        .find(|path| path.exists());
    if file.is_some_and(|file| !may(&file, AccessFlags::R_OK | AccessFlags::W_OK)) {
        return Err(look.problem(
            format!("/dev/vfio/{group} may not be opened by this user"),
            as_root(),
        ));
    }
    Ok(())
}

fn unbound(look: &Look<'_>, device: &PciDevice, from: Option<&str>) -> Problem {
    let sys = look.sys;
    let interfaces = device.interfaces(&look.interfaces);
    let to = from.map_or("no driver".to_owned(), |driver| {
        format!("the kernel's driver {driver}")
    });
    let found = format!("it is bound to {to}{}", named(&interfaces));
    let Some(driver) = driver_for(sys, device) else {
        let fix = Fix::kernel_with("CONFIG_VFIO_PCI, such as linux-image-amd64 of Debian");
        return look.problem(
            format!("{found}, and this kernel has neither vfio-pci nor uio_pci_generic"),
            fix,
        );
    };
    if driver == "vfio-pci" && !has_iommu(sys) && !vfio_without_iommu(sys) {
        let found = format!("{found}, and the IOMMU that vfio-pci wants is absent");
        let virtual_machine = facts::is_virtual(sys);
        let fix = if virtual_machine {
            bind::pci_bind(sys, device.address, from, driver)
        } else {
            boot_with_iommu(sys)
        };
        return look.problem(found, fix);
    }
    let found = format!("{found}, and DPDK needs {driver}");
    look.problem(found, bind::pci_bind(sys, device.address, from, driver))
}

/// The driver that hands a function over, of those this kernel has.
fn driver_for(sys: &crate::Sys, device: &PciDevice) -> Option<&'static str> {
    let has = |name: &str| module(sys, name) != Module::Absent;
    if has("vfio-pci") {
        return Some("vfio-pci");
    }
    // UIO's generic driver needs a wired interrupt, which virtual functions do not have.
    (has("uio_pci_generic") && !device.is_virtual_function).then_some("uio_pci_generic")
}

/// The driver that the function is to be bound to; nothing where it may stay where it is. Refused where it must.
pub fn takeover(look: &Look<'_>, address: PciAddress) -> Result<Option<&'static str>, Problem> {
    let device = pci::device(look.sys, address).ok_or_else(|| absent(look))?;
    let handed_over = matches!(
        device.driver.as_deref(),
        Some("vfio-pci" | "uio_pci_generic" | "igb_uio")
    );
    if handed_over || Bifurcated::of(look.sys, &device).is_some() {
        return Ok(None);
    }
    if !device.is_network() {
        return check(look, address).map(|_| None);
    }
    refused_role(look, &device.interfaces(&look.interfaces))?;
    claimed(look, &device)?;
    match driver_for(look.sys, &device) {
        Some(driver) => Ok(Some(driver)),
        None => Err(unbound(look, &device, device.driver.as_deref())),
    }
}

/// Bound to vfio-pci before VFIO was told to do without an IOMMU: once more, in the right order.
fn rebind(look: &Look<'_>, device: &PciDevice) -> Fix {
    bind::pci_bind(look.sys, device.address, Some("vfio-pci"), "vfio-pci")
}

fn boot_with_iommu(sys: &crate::Sys) -> Fix {
    let words = pci::iommu_arguments(sys).join(" ");
    Fix::advice(format!(
        "switch the IOMMU on in the firmware and boot with it: sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub && update-grub && reboot"
    ))
    .persistent()
}
