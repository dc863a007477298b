//! `vmbus:`: a network device of Hyper-V.

use super::interface::{named, refused_role};
use super::look::{Look, Prepared};
use crate::capability::Capability;
use crate::modules::{Module, module};
use crate::{Fix, Problem, VmbusId, bind, vmbus};
use itertools::Itertools as _;

const DRIVER: &str = "uio_hv_generic";

/// It must be bound to `uio_hv_generic`, and huge pages be there.
pub fn check(look: &Look<'_>, id: &VmbusId) -> Result<Prepared, Problem> {
    let sys = look.sys;
    let Some(device) = vmbus::device(sys, id) else {
        return Err(absent(look));
    };
    if !device.is_network {
        let fix = Fix::advice("name a network device; dropless ports lists them");
        return Err(look.problem("it is not a network device", fix));
    }
    look.own_driver()?;
    let interfaces = device.interfaces(&look.interfaces);
    refused_role(look, &interfaces)?;
    if device.driver.as_deref() != Some(DRIVER) {
        if module(sys, DRIVER) == Module::Absent {
            let fix = Fix::kernel_with(format!("{DRIVER}, such as linux-image-amd64 of Debian"));
            return Err(look.problem(format!("this kernel lacks {DRIVER}"), fix));
        }
        let from = device.driver.as_deref();
        let to = from.map_or("no driver".to_owned(), |driver| format!("the driver {driver}"));
        let on = named(&interfaces);
        let found = format!("it is bound to {to}{on}, and DPDK needs {DRIVER}");
        return Err(look.problem(found, bind::vmbus_bind(sys, id, from)));
    }
    look.capabilities(&[Capability::SysAdmin], "a VMBus device")?;
    look.on_huge_pages(device.numa_node)
}

fn absent(look: &Look<'_>) -> Problem {
    if !vmbus::exists(look.sys) {
        let found = "this machine has no VMBus: it does not run on Hyper-V";
        return look.problem(found, Fix::one("dropless ports"));
    }
    let there = vmbus::network_channels(look.sys);
    let ids = there.iter().map(|device| &device.id).join(", ");
    let found = format!("this VMBus device does not exist (network devices: {ids})");
    look.problem(found, Fix::one("dropless ports"))
}
