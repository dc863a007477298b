//! `vdev:`: DPDK's own arguments, taken as they are; only the driver's name is looked at.

use super::look::{Look, Prepared};
use crate::drivers::drivers;
use crate::nearest::nearest;
use crate::{Fix, Problem};

/// A device named `net_...` must begin with the name of an installed driver.
pub fn check(look: &Look<'_>, arguments: &str) -> Result<Prepared, Problem> {
    let device = arguments.split(',').next().unwrap_or_default();
    let drivers = drivers(look.sys);
    let known = || drivers.pmds().iter().map(|pmd| pmd.name.as_str());
    if drivers.pmds().is_empty()
        || !device.starts_with("net_")
        || known().any(|name| device.starts_with(name))
    {
        return Ok(Prepared::of(look.uri));
    }
    let bare = device.trim_end_matches(|c: char| c.is_ascii_digit());
    let fix = match nearest(bare, known()) {
        Some(near) => format!("write vdev:{near}0"),
        None => format!("choose from: {}", virtual_drivers(look).join(", ")),
    };
    let found = format!("no installed DPDK driver is called {bare}");
    Err(look.problem(found, Fix::advice(fix)))
}

/// Installed drivers that no bus device needs, so that their devices can be made up.
fn virtual_drivers(look: &Look<'_>) -> Vec<String> {
    let drivers = drivers(look.sys).pmds().iter();
    let software =
        drivers.filter(|pmd| pmd.pci_ids.is_empty() && pmd.kmod.is_empty() && pmd.name.starts_with("net_"));
    software.map(|pmd| pmd.name.clone()).collect()
}
