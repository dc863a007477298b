//! Counters of a port, as the driver gives them.

use dpdk_sys as sys;

/// A port's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets received.
    pub ipackets: u64,
    /// Packets sent.
    pub opackets: u64,
    /// Bytes received.
    pub ibytes: u64,
    /// Bytes sent.
    pub obytes: u64,
    /// Packets lost because a receive ring was full.
    pub imissed: u64,
    /// Erroneous packets received.
    pub ierrors: u64,
    /// Packets that could not be sent.
    pub oerrors: u64,
    /// Packets lost because the pool was empty (not counted by every driver).
    pub rx_nombuf: u64,
}

impl std::iter::Sum for PortStats {
    fn sum<I: Iterator<Item = Self>>(ports: I) -> Self {
        ports.fold(Self::default(), |sum, port| Self {
            ipackets: sum.ipackets + port.ipackets,
            opackets: sum.opackets + port.opackets,
            ibytes: sum.ibytes + port.ibytes,
            obytes: sum.obytes + port.obytes,
            imissed: sum.imissed + port.imissed,
            ierrors: sum.ierrors + port.ierrors,
            oerrors: sum.oerrors + port.oerrors,
            rx_nombuf: sum.rx_nombuf + port.rx_nombuf,
        })
    }
}

pub(crate) fn port(port: u16) -> Result<PortStats, i32> {
    // SAFETY: all-zero is a value of this plain C structure.
    let mut stats: sys::dl_port_stats = unsafe { std::mem::zeroed() };
    // SAFETY: `stats` is writable; the caller's port exists.
    let result = unsafe { sys::dl_port_stats(port, &raw mut stats) };
    if result != 0 {
        return Err(result);
    }
    Ok(PortStats {
        ipackets: stats.ipackets,
        opackets: stats.opackets,
        ibytes: stats.ibytes,
        obytes: stats.obytes,
        imissed: stats.imissed,
        ierrors: stats.ierrors,
        oerrors: stats.oerrors,
        rx_nombuf: stats.rx_nombuf,
    })
}
