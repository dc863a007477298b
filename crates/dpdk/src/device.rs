//! A port before it is configured: what it can, and the step that turns it into a [`Port`] with its queues.

use std::{ffi::CString, sync::Arc};

use dpdk_sys as sys;

use crate::{
    Capabilities, Eal, Pool, Port, PortConfig, PortError, RxQueue, TxQueue, eal::QUOTED_LINES,
    error::os_error, gate::Gate, log,
};

/// Ethernet header and FCS, bytes: what a frame has beyond the MTU, VLAN tags aside.
const FRAME_OVERHEAD: usize = 18;
const DEFAULT_MTU: usize = 1500;

/// A port that is taken but not configured yet.
#[derive(Debug)]
pub struct Device<'e> {
    eal: &'e Eal,
    id: u16,
    name: String,
    capabilities: Capabilities,
}

impl<'e> Device<'e> {
    pub(crate) fn by_name(eal: &'e Eal, name: &str) -> Result<Self, PortError> {
        let unknown = || PortError::Unknown {
            name: name.to_owned(),
            ports: eal.ports(),
            log: log::tail(QUOTED_LINES),
        };
        let c_name = CString::new(name).map_err(|_| unknown())?;
        // SAFETY: a zero-terminated name; EAL runs while `eal` lives.
        let id = u16::try_from(unsafe { sys::dl_port_by_name(c_name.as_ptr()) }).map_err(|_| unknown())?;
        let capabilities = Capabilities::of(id).map_err(|code| failed(name, "asking what it can", code))?;
        if !eal.claim(id) {
            return Err(PortError::Taken(name.to_owned()));
        }
        Ok(Self {
            eal,
            id,
            name: name.to_owned(),
            capabilities,
        })
    }

    /// What the device can.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The port's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Configures the port and makes its queues, which take their buffers from `pool`. Where the device can less
    /// than is asked, [`Port::granted`] says what it got. The port is still to be started.
    pub fn configure(self, wanted: &PortConfig, pool: &'e Pool<'e>) -> Result<Parts<'e>, PortError> {
        let (eal, chatty) = (self.eal, is_chatty(&self.capabilities.driver));
        eal.hush(chatty, || self.configure_aloud(wanted, pool))
    }

    fn configure_aloud(self, wanted: &PortConfig, pool: &'e Pool<'e>) -> Result<Parts<'e>, PortError> {
        let (mut granted, mut notes) = self.grant(wanted);
        if granted.rx_queues == 0 && granted.tx_queues == 0 {
            return Err(self.invalid("neither receive nor transmit queues are left".to_owned()));
        }
        self.apply(&mut granted, &mut notes, pool)?;
        self.setup_queues(&granted, pool)?;
        if wanted.promiscuous {
            // SAFETY: the port is configured and ours alone.
            granted.promiscuous = unsafe { sys::dl_port_promiscuous(self.id, 1) } == 0;
            if !granted.promiscuous {
                notes.push("the driver has no promiscuous mode".to_owned());
            }
        }
        let gates = |count: u16| (0..count).map(|_| Gate::new()).collect::<Vec<_>>();
        let (rx_gates, tx_gates) = (gates(granted.rx_queues), gates(granted.tx_queues));
        let rx = (0..)
            .zip(&rx_gates)
            .map(|(index, gate)| RxQueue::new(Arc::clone(gate), self.id, index));
        let tx = (0..)
            .zip(&tx_gates)
            .map(|(index, gate)| TxQueue::new(Arc::clone(gate), self.id, index));
        let (rx, tx) = (rx.collect(), tx.collect());
        let gates = rx_gates.into_iter().chain(tx_gates).collect();
        let Self {
            eal,
            id,
            ref name,
            ref capabilities,
        } = self;
        let port = Port::new(
            (eal, pool),
            id,
            name.clone(),
            capabilities.clone(),
            (granted, notes),
            gates,
        );
        // The port owns the claim from here on.
        std::mem::forget(self);
        Ok((port, rx, tx))
    }

    /// The wishes, cut to what the device can, and what was cut.
    fn grant(&self, wanted: &PortConfig) -> (PortConfig, Vec<String>) {
        let can = &self.capabilities;
        let (rx, tx) = (wanted.rx_queues, wanted.tx_queues);
        let (max_rx, max_tx, max_mtu) = (can.max_rx_queues, can.max_tx_queues, can.max_mtu);
        let size = wanted.max_frame_size;
        let mtu = size.saturating_sub(FRAME_OVERHEAD).max(DEFAULT_MTU);
        let spreads = wanted.rss && rx.min(max_rx) > 1;
        let granted = PortConfig {
            rx_queues: rx.min(max_rx),
            tx_queues: tx.min(max_tx),
            max_frame_size: mtu.min(usize::from(max_mtu)) + FRAME_OVERHEAD,
            rss: spreads && can.rss_types != 0,
            promiscuous: false,
            tx_checksum_offload: wanted.tx_checksum_offload && can.tx_udp_checksum,
            rx_timestamp: wanted.rx_timestamp && can.rx_timestamp,
            ..wanted.clone()
        };
        let cuts = [
            (
                max_rx < rx,
                format!("{rx} receive queues asked, the device has {max_rx}"),
            ),
            (
                max_tx < tx,
                format!("{tx} transmit queues asked, the device has {max_tx}"),
            ),
            (
                mtu > usize::from(max_mtu),
                format!("frames of {size} bytes asked, the device's MTU ends at {max_mtu}"),
            ),
            (
                wanted.tx_checksum_offload && !can.tx_udp_checksum,
                "the device cannot put in UDP checksums".to_owned(),
            ),
            (
                wanted.rx_timestamp && !can.rx_timestamp,
                "the device cannot say when it received a frame".to_owned(),
            ),
            (
                spreads && can.rss_types == 0,
                "the device cannot spread what it receives over its queues (no RSS)".to_owned(),
            ),
        ];
        let notes = cuts.into_iter().filter(|(is_cut, _)| *is_cut);
        (granted, notes.map(|(_, note)| note).collect())
    }

    fn apply(
        &self,
        granted: &mut PortConfig,
        notes: &mut Vec<String>,
        pool: &Pool<'e>,
    ) -> Result<(), PortError> {
        let can = &self.capabilities;
        let mtu = granted.max_frame_size - FRAME_OVERHEAD;
        // 8: two VLAN tags may come on top.
        let scatter = granted.rx_queues > 0 && granted.max_frame_size + 8 > pool.data_room();
        if scatter && !can.rx_scatter {
            let room = pool.data_room();
            notes.push(format!(
                "a frame above {room} bytes fits no buffer, and the device cannot scatter"
            ));
        }
        let setup = sys::dl_port_setup {
            rx_queues: granted.rx_queues,
            tx_queues: granted.tx_queues,
            // The default is left to the driver: some know no MTU at all.
            mtu: if mtu == DEFAULT_MTU { 0 } else { mtu as u16 },
            rss_types: if granted.rss { can.rss_types } else { 0 },
            tx_checksum: granted.tx_checksum_offload.into(),
            segments: (scatter && can.rx_scatter && can.tx_segments).into(),
            rx_timestamp: granted.rx_timestamp.into(),
        };
        let (mut rx, mut tx) = (granted.rx_descriptors, granted.tx_descriptors);
        // SAFETY: the port exists and is ours alone; the structures live through the calls.
        let (configured, adjusted) = unsafe {
            (
                sys::dl_port_configure(self.id, &raw const setup),
                sys::dl_port_adjust_descriptors(self.id, &raw mut rx, &raw mut tx),
            )
        };
        self.check(configured, "configuring it")?;
        self.check(adjusted, "fitting its descriptors")?;
        if (rx, tx) != (granted.rx_descriptors, granted.tx_descriptors) {
            let (old_rx, old_tx) = (granted.rx_descriptors, granted.tx_descriptors);
            notes.push(format!(
                "{old_rx}/{old_tx} receive/transmit descriptors asked, the device takes {rx}/{tx}"
            ));
            (granted.rx_descriptors, granted.tx_descriptors) = (rx, tx);
        }
        Ok(())
    }

    fn setup_queues(&self, granted: &PortConfig, pool: &Pool<'e>) -> Result<(), PortError> {
        let socket = socket_of(self.capabilities.numa_node);
        for queue in 0..granted.rx_queues {
            let descriptors = granted.rx_descriptors;
            // SAFETY: the port is configured and ours alone; the pool's memory lives as long as 'e.
            let result =
                unsafe { sys::dl_rx_queue_setup(self.id, queue, descriptors, socket, pool.as_raw()) };
            self.check(result, &format!("making receive queue {queue}"))?;
        }
        for queue in 0..granted.tx_queues {
            // SAFETY: the port is configured and ours alone.
            let result = unsafe { sys::dl_tx_queue_setup(self.id, queue, granted.tx_descriptors, socket) };
            self.check(result, &format!("making transmit queue {queue}"))?;
        }
        Ok(())
    }

    fn check(&self, result: i32, step: &str) -> Result<(), PortError> {
        if result < 0 {
            Err(failed(&self.name, step, result))
        } else {
            Ok(())
        }
    }

    fn invalid(&self, problem: String) -> PortError {
        PortError::Invalid {
            name: self.name.clone(),
            problem,
        }
    }
}

impl Drop for Device<'_> {
    fn drop(&mut self) {
        self.eal.release(self.id);
    }
}

/// Whether libraries below this driver print to standard error by themselves: libbpf and libxdp do.
pub(crate) fn is_chatty(driver: &str) -> bool {
    driver == "net_af_xdp"
}

/// A configured port and its queues.
pub type Parts<'e> = (Port<'e>, Vec<RxQueue<'e>>, Vec<TxQueue<'e>>);

/// DPDK's number of a NUMA node: -1 is any.
pub(crate) fn socket_of(node: Option<u32>) -> i32 {
    node.and_then(|node| i32::try_from(node).ok()).unwrap_or(-1)
}

/// The error of a driver's step.
pub(crate) fn failed(name: &str, step: &str, code: i32) -> PortError {
    PortError::Driver {
        name: name.to_owned(),
        step: step.to_owned(),
        source: os_error(code),
        log: log::tail(QUOTED_LINES),
    }
}
