//! Everything on this machine that could carry packets, and what keeps it from doing so.

mod carrier;
mod hardware;
mod interfaces;
mod virtuals;

pub use carrier::{Carrier, CarrierKind, Queues, Usable};

use crate::Sys;
use crate::interface::interfaces;

/// Lists everything that could carry packets: PCI, `VMBus`, interfaces, then the virtual kinds.
pub fn discover(sys: &Sys) -> Vec<Carrier> {
    let interfaces = interfaces(sys);
    let roles = crate::roles::roles(sys, &interfaces);
    let mut carriers = hardware::pci(sys, &interfaces, &roles);
    carriers.extend(hardware::vmbus(sys, &interfaces, &roles));
    carriers.extend(interfaces::list(sys, &interfaces, &roles));
    carriers.extend(virtuals::list(sys));
    carriers
}
