//! Network channels on Hyper-V's `VMBus` as sysfs shows them.

use crate::interface::{Interface, numa_node};
use crate::{Sys, VmbusId};
use std::path::Path;

const DEVICES: &str = "/sys/bus/vmbus/devices";
/// Class of synthetic network devices, the same on every Hyper-V.
pub const CLASS_NETWORK: &str = "f8615163-df3e-46c5-913f-f2d2f965ed0e";

/// A `VMBus` network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmbusDevice {
    /// Its instance UUID.
    pub id: VmbusId,
    /// Whether its class is network.
    pub is_network: bool,
    /// The driver bound to it: `hv_netvsc` or `uio_hv_generic`.
    pub driver: Option<String>,
    /// NUMA node; `None` on machines that have one.
    pub numa_node: Option<u32>,
}

impl VmbusDevice {
    /// The kernel's interfaces on this device.
    pub fn interfaces<'a>(&self, all: &'a [Interface]) -> Vec<&'a Interface> {
        all.iter()
            .filter(|interface| interface.vmbus.as_ref() == Some(&self.id))
            .collect()
    }
}

/// One device, if it is there.
pub fn device(sys: &Sys, id: &VmbusId) -> Option<VmbusDevice> {
    let base = Path::new(DEVICES).join(id.as_str());
    let class = sys.text(base.join("class_id"))?.to_ascii_lowercase();
    Some(VmbusDevice {
        id: id.clone(),
        is_network: class.trim_matches(['{', '}']) == CLASS_NETWORK,
        driver: sys.link_name(base.join("driver")),
        numa_node: numa_node(sys, &base),
    })
}

/// Every network device of the `VMBus`; none on machines without one.
pub fn network_channels(sys: &Sys) -> Vec<VmbusDevice> {
    let ids = sys
        .names(DEVICES)
        .into_iter()
        .filter_map(|name| name.parse().ok());
    ids.filter_map(|id| device(sys, &id))
        .filter(|device| device.is_network)
        .collect()
}

/// Whether this machine has a `VMBus` at all.
pub fn exists(sys: &Sys) -> bool {
    sys.exists(DEVICES)
}
