//! `--dev`: an interface that keeps its driver, and gets an XDP program.

use itertools::Itertools as _;

use super::look::as_root;
use super::namespace;
use crate::capability::Capability;
use crate::interface::{self, Interface, Sort};
use crate::nearest::nearest;
use crate::pci::network_functions;
use crate::{Fix, PciAddress, Problem, Sys};

/// The interface of this name, if it can have an XDP program and this process may give it one. `flag` is what the name
/// stands behind on the command line, with a space; empty where it stands alone.
pub fn device(sys: &Sys, name: &str, flag: &str) -> Result<Interface, Problem> {
    let what = format!("{flag}{name}");
    let problem = |found: String, fix: Fix| Problem::new(&what, found, fix);
    let all = interface::interfaces(sys);
    let Some(interface) = all.iter().find(|interface| interface.name == name) else {
        return Err(absent(sys, (name, flag), &all));
    };
    namespace::check_sys(sys, &what)?;
    let missing = [Capability::NetAdmin, Capability::Bpf, Capability::Perfmon]
        .into_iter()
        .filter(|capability| !sys.has(*capability) && !sys.has(Capability::SysAdmin));
    let missing = missing.map(|capability| capability.to_string()).join(" and ");
    if !missing.is_empty() {
        return Err(problem(format!("an XDP program takes {missing}"), as_root()));
    }
    if interface.sort == Sort::NotEthernet {
        let fix = Fix::advice("choose an Ethernet interface; dropless ports lists them");
        let found = format!("{name} does not carry Ethernet frames, which rules are for");
        return Err(problem(found, fix));
    }
    Ok(interface.clone())
}

/// What is known of a name that no interface has.
fn absent(sys: &Sys, (name, flag): (&str, &str), all: &[Interface]) -> Problem {
    let what = format!("{flag}{name}");
    let problem = |found: String, fix: Fix| Problem::new(&what, found, fix);
    let taken = network_functions(sys).into_iter().filter(|device| {
        let driver = device.driver.as_deref().unwrap_or_default();
        driver.starts_with("vfio") || driver.starts_with("uio") || driver == "igb_uio"
    });
    let taken: Vec<PciAddress> = taken.map(|device| device.address).collect();
    if let Some(address) = name.parse().ok().filter(|address| taken.contains(address)) {
        let found = "it is taken from the kernel for poll mode drivers, and XDP is the kernel's".to_owned();
        let fix = Fix::advice(format!(
            "filter in user space: dropless forward --rules RULES --port pci:{address} --port ..."
        ));
        return problem(found, fix);
    }
    if let Some((found, fix)) = namespace::hidden(sys, name) {
        return problem(found, Fix::one(fix));
    }
    let names = || all.iter().map(|interface| interface.name.as_str());
    let polled = if taken.is_empty() {
        String::new()
    } else {
        let taken = taken.iter().join(", ");
        format!(
            "; {taken} belongs to a poll mode driver and has none: filter it with `dropless forward --rules`"
        )
    };
    let there = names().join(", ");
    let found = format!("no interface is called {name} (there are: {there}){polled}");
    match nearest(name, names()) {
        Some(near) => problem(found, Fix::advice(format!("write {flag}{near}"))),
        None => problem(found, Fix::one("dropless ports")),
    }
}
