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
    let sys::dl_port_stats {
        ipackets,
        opackets,
        ibytes,
        obytes,
        imissed,
        ierrors,
        oerrors,
        rx_nombuf,
    } = stats;
    Ok(PortStats {
        ipackets,
        opackets,
        ibytes,
        obytes,
        imissed,
        ierrors,
        oerrors,
        rx_nombuf,
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

/// What a queue counter of lost packets ends with, in the drivers that have one.
const LOST: [&str; 8] = [
    "missed",
    "dropped",
    "drops",
    "drop",
    "discards",
    "no_mbufs",
    "mbuf_allocation_errors",
    "errors",
];

/// Picks the per-queue loss counters out of the extended ones: `rx_q3_errors`, `rx_q0_dropped`, `rx_q1_discards`.
pub(crate) fn queue_missed(xstats: &[(String, u64)]) -> Vec<QueueMissed> {
    let lost = |(name, count): &(String, u64)| {
        let rest = name
            .strip_prefix("rx_q")
            .or_else(|| name.strip_prefix("rx_queue_"))?;
        let (queue, counter) = rest.split_once('_')?;
        let queue = queue.parse().ok()?;
        let count = *count;
        LOST.iter()
            .any(|end| counter.ends_with(end))
            .then(|| QueueMissed {
                queue,
                name: name.clone(),
                count,
            })
    };
    xstats.iter().filter_map(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_counters_are_picked_by_name() {
        let names = [
            "rx_good_packets",
            "rx_q0_packets",
            "rx_q0_errors",
            "rx_q12_dropped",
            "tx_q0_errors",
            "rx_qx_errors",
        ];
        let xstats: Vec<_> = names
            .iter()
            .zip(1..)
            .map(|(name, value)| ((*name).to_owned(), value))
            .collect();
        let found: Vec<_> = queue_missed(&xstats)
            .into_iter()
            .map(|missed| (missed.queue, missed.count))
            .collect();
        assert_eq!(found, [(0, 3), (12, 4)]);
    }
}
