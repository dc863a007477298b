//! What is wanted of a port, and granted, and what the device can.

use std::ffi::CStr;

use dpdk_sys as sys;

/// What is wanted of a port, or was granted of that.
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Receive queues; 0 for a port that only sends, where the driver allows it.
    pub rx_queues: u16,
    /// Transmit queues.
    pub tx_queues: u16,
    /// Descriptors of each receive queue.
    pub rx_descriptors: u16,
    /// Descriptors of each transmit queue.
    pub tx_descriptors: u16,
    /// The largest frame, bytes with FCS, VLAN tags not counted.
    pub max_frame_size: usize,
    /// Spread what is received over the queues by addresses and UDP ports.
    pub rss: bool,
    /// Receive frames for any address.
    pub promiscuous: bool,
    /// Let the NIC put in UDP checksums ([`crate::Burst::request_udp_checksum`]).
    pub tx_checksum_offload: bool,
    /// Let the NIC say when it received a frame ([`crate::Burst::rx_timestamp`]). Virtual drivers that do it always do.
    pub rx_timestamp: bool,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            max_frame_size: 1518,
            rss: true,
            promiscuous: true,
            tx_checksum_offload: false,
            rx_timestamp: false,
        }
    }
}

/// What a device can.
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The driver, such as `net_ring`.
    pub driver: String,
    /// The NUMA node, where it is known.
    pub numa_node: Option<u32>,
    /// Most receive queues.
    pub max_rx_queues: u16,
    /// Most transmit queues.
    pub max_tx_queues: u16,
    /// Smallest MTU, bytes.
    pub min_mtu: u16,
    /// Largest MTU, bytes.
    pub max_mtu: u16,
    /// It can put in UDP checksums.
    pub tx_udp_checksum: bool,
    /// It can say when it received a frame.
    pub rx_timestamp: bool,
    /// It can spread a frame over several buffers.
    pub rx_scatter: bool,
    /// It can spread by UDP or IP (DPDK's `RTE_ETH_RSS_*` bits).
    pub rss_types: u64,
    /// It can send a frame from several buffers.
    pub tx_segments: bool,
}

impl Capabilities {
    pub(crate) fn of(port: u16) -> Result<Self, i32> {
        // SAFETY: all-zero is a value of this plain C structure.
        let mut info: sys::dl_port_info = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is writable; EAL runs while its caller lives.
        let result = unsafe { sys::dl_port_info(port, &raw mut info) };
        if result != 0 || info.driver.is_null() {
            return Err(result);
        }
        Ok(Self {
            // SAFETY: the driver's name is a constant zero-terminated string.
            driver: unsafe { CStr::from_ptr(info.driver) }
                .to_string_lossy()
                .into_owned(),
            numa_node: u32::try_from(info.socket).ok(),
            max_rx_queues: info.max_rx_queues,
            max_tx_queues: info.max_tx_queues,
            min_mtu: info.min_mtu,
            max_mtu: info.max_mtu,
            tx_udp_checksum: info.tx_udp_checksum != 0,
            rx_timestamp: info.rx_timestamp != 0,
            rx_scatter: info.rx_scatter != 0,
            rss_types: info.rss_types,
            tx_segments: info.tx_segments != 0,
        })
    }
}
