//! `vmbus:`: a network device of Hyper-V.

use super::interface::{named, refused_role};
use super::look::{Look, Memory, Prepared};
use crate::capability::Capability;
use crate::modules::{Module, module};
use crate::{Fix, Problem, VmbusId, bind, hugepages, vmbus};

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
    look.driver("netvsc")?;
    let interfaces = device.interfaces(&look.interfaces);
    refused_role(look, &interfaces)?;
    if device.driver.as_deref() != Some(DRIVER) {
        if module(sys, DRIVER) == Module::Absent {
            let fix = Fix::advice(format!(
                "boot a kernel with {DRIVER}, such as linux-image-amd64 of Debian"
            ));
            return Err(look.problem(format!("this kernel lacks {DRIVER}"), fix));
        }
        let to = device
            .driver
            .as_deref()
            .map_or("no driver".to_owned(), |driver| format!("the driver {driver}"));
        let found = format!(
            "it is bound to {to}{}, and DPDK needs {DRIVER}",
            named(&interfaces)
        );
        return Err(look.problem(found, bind::vmbus_bind(sys, id, device.driver.as_deref())));
    }
    look.capabilities(&[Capability::SysAdmin], "a VMBus device")?;
    hugepages::check(
        sys,
        &look.uri.to_string(),
        hugepages::MINIMUM_BYTES,
        device.numa_node,
    )?;
    Ok(Prepared {
        memory: Memory::HugePages,
        numa_node: device.numa_node,
        ..Prepared::of(look.uri)
    })
}

fn absent(look: &Look<'_>) -> Problem {
    if !vmbus::exists(look.sys) {
        return look.problem(
            "this machine has no VMBus: it does not run on Hyper-V",
            Fix::one("dropless ports"),
        );
    }
    let ids: Vec<String> = vmbus::network_channels(look.sys)
        .iter()
        .map(|device| device.id.to_string())
        .collect();
    let found = format!(
        "this VMBus device does not exist (network devices: {})",
        ids.join(", ")
    );
    look.problem(found, Fix::one("dropless ports"))
}
