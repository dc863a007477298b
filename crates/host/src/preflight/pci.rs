//! `pci:`: a network function that DPDK drives itself, or through its kernel driver (mlx4, mlx5, MANA).

use super::bifurcated;
use super::interface::{first_name, named, refused_role};
use super::look::{Look, Prepared, as_root, may};
use crate::bifurcated::Bifurcated;
use crate::capability::Capability;
use crate::drivers::drivers;
use crate::modules::{Module, module};
use crate::pci::{PciDevice, blocking_group, has_iommu, network_functions, vfio_without_iommu};
use crate::{Fix, PciAddress, Problem, Sys, Warning, bind, facts, pci};
use itertools::Itertools as _;
use nix::unistd::AccessFlags;

/// The device, its binding, its libraries, then memory.
pub fn check(look: &Look<'_>, address: PciAddress) -> Result<Prepared, Problem> {
    let sys = look.sys;
    let Some(device) = pci::device(sys, address) else {
        return Err(absent(look));
    };
    if !device.is_network() {
        let fix = Fix::advice("name a network function; dropless ports lists them");
        let (identifiers, class) = (device.identifiers(), device.class);
        let found = format!("it is not a network function ({identifiers}, class {class:06x})");
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
    Ok(Prepared {
        interface: first_name(&device, &look.interfaces),
        notes,
        ..look.on_huge_pages(device.numa_node)?
    })
}

fn absent(look: &Look<'_>) -> Problem {
    let there = network_functions(look.sys);
    let found = if there.is_empty() {
        "no such PCI device, and this machine has no network function on PCI".to_owned()
    } else {
        let addresses = there.iter().map(|device| device.address).join(", ");
        format!("no such PCI device (network functions: {addresses})")
    };
    let fix = Fix::one("echo 1 > /sys/bus/pci/rescan").or("choose from: dropless ports");
    look.problem(found, fix)
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
    let missing = likely.iter().filter(|name| drivers.has(name) == Some(false));
    let packages = missing.map(|name| drivers.package(name)).join(" ");
    let found = format!("no installed DPDK driver claims {}", device.identifiers());
    let fix = match (packages.is_empty(), first_name(device, &look.interfaces)) {
        (false, _) => Fix::one(format!("apt-get install -y {packages}")),
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
            // Bound before VFIO was told to do without an IOMMU: once more, in the right order.
            bind::pci_bind(sys, device.address, Some("vfio-pci"), "vfio-pci")
        };
        return Err(look.problem("it is bound to vfio-pci, and there is no IOMMU", fix));
    };
    let blocking = blocking_group(sys, group, device.address);
    if let Some((address, driver)) = blocking.first() {
        let others = blocking.iter();
        let names = others
            .map(|(address, driver)| format!("{address} ({driver})"))
            .join(", ");
        let found = format!("its IOMMU group {group} is shared with {names}, which the kernel drives");
        return Err(look.problem(found, bind::pci_bind(sys, *address, Some(driver), "vfio-pci")));
    }
    let files = ["", "noiommu-"].map(|prefix| sys.path(format!("/dev/vfio/{prefix}{group}")));
    let file = files.iter().find(|file| file.exists());
    if file.is_some_and(|file| !may(file, AccessFlags::R_OK | AccessFlags::W_OK)) {
        let found = format!("/dev/vfio/{group} may not be opened by this user");
        return Err(look.problem(found, as_root()));
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
        let found = format!("{found}, and this kernel has neither vfio-pci nor uio_pci_generic");
        return look.problem(found, fix);
    };
    let bind = bind::pci_bind(sys, device.address, from, driver);
    if driver == "vfio-pci" && !has_iommu(sys) && !vfio_without_iommu(sys) {
        let found = format!("{found}, and the IOMMU that vfio-pci wants is absent");
        let may_boot_with = !facts::is_virtual(sys);
        return look.problem(found, if may_boot_with { boot_with_iommu(sys) } else { bind });
    }
    look.problem(format!("{found}, and DPDK needs {driver}"), bind)
}

/// The driver that hands a function over, of those this kernel has.
fn driver_for(sys: &Sys, device: &PciDevice) -> Option<&'static str> {
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

fn boot_with_iommu(sys: &Sys) -> Fix {
    let words = pci::iommu_arguments(sys).join(" ");
    let advice = format!(
        "switch the IOMMU on in the firmware and boot with it: sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub && update-grub && reboot"
    );
    Fix {
        reboots: true,
        ..Fix::advice(advice).persistent()
    }
}
