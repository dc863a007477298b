//! Port URIs: one way to name anything that can carry a packet.

mod error;
mod kind;
mod names;
mod options;
mod parse;
mod print;
#[cfg(test)]
mod tests;
mod traits;

pub use error::{UriError, beginnings};
pub use kind::{KernelIo, PortKind, PortUri, XdpMode};
pub use names::{MacAddress, PciAddress, VmbusId};
pub use parse::TAKEN_APART;
pub use traits::{DriverStamps, KeptRights, Medium, PortTraits, XDP_FILL};
