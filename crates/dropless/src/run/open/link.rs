//! The link of an open port, and what it takes to have one again.

use dpdk::{Port, XdpProgram};
use host::watch::LinkWatch;
use host::{Medium, Sys};
use measure::LinkState;

use super::{Carrier, OpenPort};
use crate::run::below::Below;
use crate::run::claim::DISPATCHER;

impl OpenPort<'_> {
    /// The link. On an interface of the kernel it is the kernel's word: the drivers there always say yes.
    pub fn link(&self) -> LinkState {
        if let Some(interface) = self.interface() {
            let sys = Sys::at("/");
            let link = host::interface::link_of(&sys, interface);
            let served = !self.traits().needs_program || self.has_program(&sys, interface);
            return LinkState {
                up: served && link.is_some_and(|link| link.up),
                speed_mbps: link.and_then(|link| link.speed_mbps),
            };
        }
        let link = self.device().and_then(|port| port.link().ok());
        // Virtual devices make a speed up.
        let is_real = self.traits().medium == Medium::Nic;
        LinkState {
            up: link.is_some_and(|link| link.up),
            speed_mbps: link.and_then(|link| link.speed_mbps).filter(|_| is_real),
        }
    }

    /// Whether the interface has the program that it was opened with. libxdp puts a new dispatcher in its place when it adds one
    /// of somebody else's, and that calls ours, too; what we may not look at passes for one.
    fn has_program(&self, sys: &Sys, interface: &str) -> bool {
        let is_dispatcher = |id| XdpProgram::by_id(id).map_or(true, |found| found.name() == DISPATCHER);
        host::xdp::program(sys, interface)
            .is_some_and(|id| self.program.is_none_or(|own| own == id) || is_dispatcher(id))
    }

    /// Whether the other end can take frames, where that is more than having a link.
    pub fn takes_frames(&self) -> bool {
        !self.traits().peer_posts_late || self.device().is_none_or(Port::guest_is_ready)
    }

    /// The link, and what it takes to have one again.
    pub fn tend(&mut self) -> LinkState {
        // Before the link: what is lost after this is seen by the next look.
        let carrier_losses = self.carrier_losses();
        let link = self.link();
        if let Some(below) = &self.below {
            below.look();
        }
        // A few at a time, as the worker has use for the cache lines.
        self.had_service_tags |= self.kernel.sockets().has_service_tag(16);
        let device = match &mut self.carrier {
            Carrier::Devices(devices) => devices.first_mut(),
            Carrier::Sockets(_) => None,
        };
        self.tending.look(link.up, carrier_losses, device, &self.uri);
        link
    }

    /// How often the interface below it has lost its carrier, was set down, or had its program taken off or exchanged: of some
    /// kinds the kernel counts no carrier.
    pub(super) fn carrier_losses(&self) -> Option<u64> {
        let counted = host::interface::carrier_losses(&Sys::at("/"), self.interface()?)?;
        let watch = self.watch.as_ref().and_then(|watch| watch.as_ref().ok());
        Some(counted + watch.map_or(0, LinkWatch::losses))
    }

    /// Whether it has no link, and gets one by calling again.
    pub fn is_calling(&self) -> bool {
        let traits = self.traits();
        self.tending.is_down() && traits.calls && !traits.calls_once
    }

    /// Whether the interface below it has been removed, or was for a while.
    pub fn is_gone(&self) -> bool {
        self.below.as_ref().is_some_and(Below::is_gone)
    }
}
