//! Counters of ports and queues, as the driver gives them.

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

/// What one receive queue lost, under the driver's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMissed {
    /// The receive queue.
    pub queue: u16,
    /// The driver's name of the counter.
    pub name: String,
    /// Packets.
    pub count: u64,
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

pub(crate) fn extended(port: u16) -> Result<Vec<(String, u64)>, i32> {
    // SAFETY: without room the shim only counts.
    let count = unsafe { sys::dl_port_xstats(port, std::ptr::null_mut(), 0) };
    let size = usize::try_from(count).map_err(|_| count)?;
    // SAFETY: all-zero is a value of this plain C structure.
    let mut room: Vec<sys::dl_xstat> = (0..size).map(|_| unsafe { std::mem::zeroed() }).collect();
    // SAFETY: `room` has `size` writable places.
    let written = unsafe { sys::dl_port_xstats(port, room.as_mut_ptr(), size as u32) };
    room.truncate(usize::try_from(written).map_err(|_| written)?);
    Ok(room.iter().map(|xstat| (name_of(xstat), xstat.value)).collect())
}

fn name_of(xstat: &sys::dl_xstat) -> String {
    let bytes = xstat.name.iter().take_while(|byte| **byte != 0);
    String::from_utf8_lossy(&bytes.map(|byte| *byte as u8).collect::<Vec<u8>>()).into_owned()
}

/// How drivers begin the name of a receive queue's counter; its number and `_` follow.
const QUEUE_PREFIXES: [&str; 3] = ["rx_q", "rxq_", "rxq"];
/// How they end the name of one that counts lost packets.
const LOST: [&str; 7] = [
    "missed",
    "dropped",
    "drops",
    "drop",
    "drop_pkts",
    "discards",
    "no_mbufs",
];
/// The drivers that count a queue's lost packets under DPDK's own `rx_q<n>_errors`; with all others it stays 0.
const ERRORS_ARE_LOST: [&str; 5] = ["net_ixgbe", "net_igc", "net_gve", "net_bnxt", "net_af_xdp"];

/// Picks the per-queue loss counters out of the extended ones: `rx_q0_dropped`, `rxq_1_drop_pkts`, `rx_q3_errors`.
pub(crate) fn queue_missed(driver: &str, xstats: &[(String, u64)]) -> Vec<QueueMissed> {
    let lost = |(name, count): &(String, u64)| {
        let rest = QUEUE_PREFIXES.iter().find_map(|prefix| {
            name.strip_prefix(prefix)
                .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        })?;
        let (queue, counter) = rest.split_once('_')?;
        let queue = queue.parse().ok()?;
        let is_lost = LOST.contains(&counter) || (counter == "errors" && ERRORS_ARE_LOST.contains(&driver));
        is_lost.then(|| QueueMissed {
            queue,
            name: name.clone(),
            count: *count,
        })
    };
    xstats.iter().filter_map(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(driver: &str) -> Vec<(u16, u64)> {
        let names = [
            "rx_good_packets",
            "rx_q0_packets",
            "rx_q0_errors",
            "rx_q12_dropped",
            "tx_q0_errors",
            "rx_qx_errors",
            "rxq_3_drop_pkts",
            "rxq_3_drop_octs",
            "rx_queue_drops",
        ];
        let xstats: Vec<_> = names
            .iter()
            .zip(1..)
            .map(|(name, value)| ((*name).to_owned(), value))
            .collect();
        queue_missed(driver, &xstats)
            .into_iter()
            .map(|missed| (missed.queue, missed.count))
            .collect()
    }

    #[test]
    fn loss_counters_are_picked_by_name() {
        assert_eq!(found("net_ixgbe"), [(0, 3), (12, 4), (3, 7)]);
    }

    #[test]
    fn errors_that_no_driver_counts_are_no_counter() {
        assert_eq!(found("net_i40e"), [(12, 4), (3, 7)]);
    }
}
