//! A configured port on the control path: start, stop, link, counters. Its queues live apart, with the workers.

use std::{cell::Cell, marker::PhantomData, sync::Arc};

use dpdk_sys as sys;

use crate::{
    Capabilities, Device, Eal, PortConfig, PortError, PortStats,
    device::{failed, is_chatty},
    gate::Gate,
    interface_kept, interrupts,
    pool::Pool,
    raw, stats, virtual_port,
};

/// A port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The link is up.
    pub up: bool,
    /// Its speed in Mbit/s, where it is known. Virtual devices make one up.
    pub speed_mbps: Option<u32>,
}

/// A configured port: stopped and closed when dropped. Its queues then give and take nothing.
#[derive(Debug)]
pub struct Port<'e> {
    eal: &'e Eal,
    id: u16,
    name: String,
    capabilities: Capabilities,
    granted: PortConfig,
    /// What differs from what was asked.
    notes: Vec<String>,
    gates: Vec<Arc<Gate>>,
    /// Where its receive queues take their buffers from. Pools live as long as EAL.
    pool: *mut sys::rte_mempool,
    started: bool,
    /// Not Sync: the control functions of a port are for one thread at a time.
    cell: PhantomData<Cell<()>>,
}

impl<'e> Port<'e> {
    /// Takes the port of this name, which must not be in use, to be configured.
    pub fn by_name(eal: &'e Eal, name: &str) -> Result<Device<'e>, PortError> {
        Device::by_name(eal, name)
    }

    pub(crate) fn new(
        (eal, pool): (&'e Eal, &'e Pool<'e>),
        id: u16,
        name: String,
        capabilities: Capabilities,
        (granted, notes): (PortConfig, Vec<String>),
        gates: Vec<Arc<Gate>>,
    ) -> Self {
        Self {
            eal,
            id,
            name,
            capabilities,
            granted,
            notes,
            gates,
            pool: pool.as_raw(),
            started: false,
            cell: PhantomData,
        }
    }

    /// Starts the port and opens its queues.
    pub fn start(&mut self) -> Result<(), PortError> {
        if !self.started {
            let id = self.id;
            // SAFETY: the port and all its queues are configured, and `&mut self` is its only control handle.
            let start = move || unsafe { sys::dl_port_start(id) };
            let result = if matches!(self.driver_name(), "net_af_packet" | "net_af_xdp") {
                interface_kept::keeping(start)
            } else {
                start()
            };
            self.check(result, "starting it")?;
            raw::find_rx_timestamp();
            self.started = true;
            self.gates.iter().for_each(|gate| gate.open());
        }
        Ok(())
    }

    /// Closes the queues, waits until no burst call is inside, and stops the port.
    pub fn stop(&mut self) -> Result<(), PortError> {
        if !self.started {
            return Ok(());
        }
        Gate::close_all(self.gates.iter().map(Arc::as_ref));
        let mut result = Ok(());
        self.undisturbed(|port| result = port.stop_shut());
        result
    }

    /// Stops a port whose gates are closed.
    fn stop_shut(&mut self) -> Result<(), PortError> {
        self.reap();
        self.started = false;
        // SAFETY: no thread is inside a burst call of this port, nor will be: its gates are closed.
        let result = unsafe { sys::dl_port_stop(self.id) };
        self.check(result, "stopping it")
    }

    /// The memif driver answers its peer on EAL's interrupt thread, without a lock: what takes the connection or the port away
    /// from another thread can meet it there (seen with 22.11: SIGSEGV where a client called again as its server ended).
    fn undisturbed(&mut self, mut work: impl FnMut(&mut Self)) {
        if self.driver_name() == "net_memif" {
            interrupts::between(&mut || work(self));
        } else {
            work(self);
        }
    }

    /// What the other side has read, the drivers of `AF_XDP` and zero-copy memif take back when they are next called to
    /// send: once more, with nothing.
    fn reap(&self) {
        if !self.keeps_buffers() && self.driver_name() != "net_memif" {
            return;
        }
        let mut spare = std::ptr::null_mut();
        // SAFETY: one writable place; the pool lives as long as EAL, which `self` borrows.
        if unsafe { sys::dl_alloc_raw(self.pool, &raw mut spare, 1) } != 0 {
            return;
        }
        for queue in 0..self.granted.tx_queues {
            // SAFETY: the port runs and its gates are closed, so this is the only caller. No packet is offered, but
            // memif looks at the first one all the same (DPDK 25.11).
            unsafe { sys::dl_tx_burst(self.id, queue, &raw mut spare, 0) };
        }
        // SAFETY: ours, and given up here.
        unsafe { raw::free(&mut [spare]) };
    }

    /// Whether the driver keeps the buffers in its rings for ever when it is closed: that of `AF_XDP` does.
    pub fn keeps_buffers(&self) -> bool {
        self.driver_name() == "net_af_xdp"
    }

    /// Whether the port runs.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// The link as it is now; does not wait for negotiation.
    pub fn link(&self) -> Result<Link, PortError> {
        let (mut up, mut speed) = (0, 0);
        // SAFETY: two writable places; the port exists.
        let result = unsafe { sys::dl_port_link(self.id, &raw mut up, &raw mut speed) };
        self.check(result, "reading its link")?;
        // 0 is "none", all ones is "unknown".
        let speed_mbps = (speed != 0 && speed != u32::MAX).then_some(speed);
        Ok(Link {
            up: up != 0,
            speed_mbps,
        })
    }

    /// Whether the guest of a `net_vhost` port has posted receive buffers; true too where that cannot be told.
    pub fn guest_is_ready(&self) -> bool {
        // SAFETY: no argument but a number, which the library checks.
        unsafe { sys::dl_port_guest_posted(self.id) != 0 }
    }

    /// The port's MAC address.
    pub fn mac(&self) -> Result<[u8; 6], PortError> {
        let mut mac = [0; 6];
        // SAFETY: six writable bytes; the port exists.
        let result = unsafe { sys::dl_port_mac(self.id, mac.as_mut_ptr()) };
        self.check(result, "reading its MAC address")?;
        Ok(mac)
    }

    /// Gives the port another MAC address.
    pub fn set_mac(&mut self, mac: [u8; 6]) -> Result<(), PortError> {
        // SAFETY: six readable bytes; the port exists, and `&mut self` is its only control handle.
        let result = unsafe { sys::dl_port_set_mac(self.id, mac.as_ptr()) };
        self.check(result, "setting its MAC address")
    }

    /// The port's counters since it was started.
    pub fn stats(&self) -> Result<PortStats, PortError> {
        stats::port(self.id).map_err(|code| failed(&self.name, "reading its counters", code))
    }

    /// The port's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port's DPDK id.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The driver, such as `net_ring`.
    pub fn driver_name(&self) -> &str {
        &self.capabilities.driver
    }

    /// The NUMA node, where it is known.
    pub fn numa_node(&self) -> Option<u32> {
        self.capabilities.numa_node
    }

    /// What the device can.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// What was granted of the configuration.
    pub fn granted(&self) -> &PortConfig {
        &self.granted
    }

    /// What differs from what was asked, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The MTU in force, bytes.
    pub fn mtu(&self) -> Result<u16, PortError> {
        // SAFETY: the port exists.
        let result = unsafe { sys::dl_port_mtu(self.id) };
        self.check(result, "reading its MTU")?;
        Ok(result as u16)
    }

    fn check(&self, result: i32, step: &str) -> Result<(), PortError> {
        if result < 0 {
            Err(failed(&self.name, step, result))
        } else {
            Ok(())
        }
    }
}

impl Drop for Port<'_> {
    fn drop(&mut self) {
        Gate::close_all(self.gates.iter().map(Arc::as_ref));
        // All at once: whoever calls a memif between would be served by a port that is gone.
        self.undisturbed(|port| {
            // A driver that refuses to stop is closed all the same: the gates are shut in any case.
            if port.started {
                let _ = port.stop_shut();
            }
            if port.granted.promiscuous {
                // An interface of the kernel keeps the mode otherwise.
                // SAFETY: the port is still configured, and `&mut self` is its only control handle.
                unsafe { sys::dl_port_promiscuous(port.id, 0) };
            }
            let close = || {
                // SAFETY: stopped, and its queues stay shut for ever. The claim stays too: the id is never handed out
                // again.
                unsafe { sys::dl_port_close(port.id) };
            };
            port.eal.hush(is_chatty(port.driver_name()), close);
        });
        virtual_port::closed(self.eal, self.id);
    }
}
