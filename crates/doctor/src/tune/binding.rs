//! Hands a PCI function to the driver that DPDK needs, and back to the one it had.

use super::journal::Kind;
use super::kernel::Kernel;
use super::operator::{Operator, Outcome};
use super::step::{Action, Step};
use super::undone::Undone;
use crate::Change;
use host::bind::NO_IOMMU;
use host::modules::is_loaded;
use host::takeover;
use host::{PciAddress, PortUri, Problem, Sys, pci};

const PCI: &str = "/sys/bus/pci";

/// The steps that make the port usable; none where it is bound as it should be, or is no PCI function.
pub fn steps(sys: &Sys, uri: &PortUri) -> Result<Vec<Step>, Problem> {
    let Some((address, driver)) = takeover(uri, sys)? else {
        return Ok(Vec::new());
    };
    let why = format!("DPDK drives {address} through {driver}");
    let step = |action| Step {
        check: "binding".into(),
        why: why.clone(),
        action,
    };
    let mut steps = Vec::new();
    if !is_loaded(sys, driver) {
        steps.push(step(Action::Load {
            module: driver.into(),
        }));
    }
    if driver == "vfio-pci" && !pci::has_iommu(sys) && !pci::vfio_without_iommu(sys) {
        steps.push(Step {
            why: "there is no IOMMU: the device will be able to write anywhere in memory".into(),
            ..step(Action::Write(Change::new(NO_IOMMU, "Y")))
        });
    }
    steps.push(step(Action::Bind {
        address,
        driver: driver.into(),
    }));
    Ok(steps)
}

impl Operator<'_> {
    pub(super) fn bind(&mut self, address: PciAddress, driver: &str) -> Result<Outcome, Problem> {
        let device = format!("{PCI}/devices/{address}");
        let link = format!("{device}/driver");
        let from = self.kernel.sys().link_name(&link);
        if from.as_deref() == Some(driver) {
            return Ok(Outcome::Already);
        }
        // First in the journal, last to be taken back: by then the override is gone, and the old driver may take it.
        self.journal
            .before(Kind::Driver, &link, from.as_deref(), Some(driver))?;
        let named = self.value(&format!("{device}/driver_override"), driver, None)?;
        if let Outcome::Refused { why } = named {
            self.journal.took(&link, from.as_deref())?;
            return Ok(Outcome::refused(why));
        }
        let moved = move_to(self.kernel, address, from.as_deref(), Some("drivers_probe"));
        let now = self.kernel.sys().link_name(&link);
        if now.as_deref() == Some(driver) {
            self.journal.took(&link, Some(driver))?;
            return Ok(Outcome::took(from.as_deref().unwrap_or("no driver"), driver));
        }
        // Better with its old driver than with none.
        let _ = self.kernel.write(&format!("{device}/driver_override"), "");
        let back = give_back(self.kernel, &link, from.as_deref(), Some(driver));
        self.journal.took(&link, from.as_deref())?;
        let why = match moved {
            Err(error) => error.to_string(),
            Ok(()) => format!("{driver} does not accept it"),
        };
        Ok(Outcome::refused(match back {
            Undone::Refused { why: worse } => {
                format!("{why}, and the old driver does not accept it again: {worse}")
            }
            _ => format!("{why}; its old driver has it again"),
        }))
    }
}

/// Gives the function at `link` back to `old`, if it is at `ours` or at none.
pub fn give_back(kernel: &dyn Kernel, link: &str, old: Option<&str>, ours: Option<&str>) -> Undone {
    let Some(address) = link.rsplit('/').nth(1).and_then(|name| name.parse().ok()) else {
        return Undone::AsItWas;
    };
    let now = kernel.sys().link_name(link);
    if now.as_deref() == old {
        return Undone::AsItWas;
    }
    if let Some(now) = now.clone().filter(|now| Some(now.as_str()) != ours) {
        return Undone::Foreign { now };
    }
    let bind = old.map(|driver| format!("drivers/{driver}/bind"));
    let moved = move_to(kernel, address, now.as_deref(), bind.as_deref());
    if kernel.sys().link_name(link).as_deref() == old {
        return Undone::restored(old.unwrap_or("no driver"));
    }
    match moved {
        Err(error) => Undone::refused(error.to_string()),
        Ok(()) => Undone::refused("no driver accepted it"),
    }
}

/// Away from its driver, and into the file at `to`: a driver's `bind`, or `drivers_probe`.
fn move_to(
    kernel: &dyn Kernel,
    address: PciAddress,
    from: Option<&str>,
    to: Option<&str>,
) -> std::io::Result<()> {
    let address = address.to_string();
    if let Some(driver) = from {
        kernel.write(&format!("{PCI}/drivers/{driver}/unbind"), &address)?;
    }
    to.map_or(Ok(()), |file| kernel.write(&format!("{PCI}/{file}"), &address))
}
