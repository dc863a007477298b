//! The queueing disciplines below an interface (tc(8)), and what they throw away.

use std::io;

use nix::sys::socket::SockProtocol;

use crate::netlink::{HEADER, attribute, list};

/// Of `linux/rtnetlink.h` and `linux/gen_stats.h`.
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// `struct nlmsghdr` with `struct tcmsg`.
const HEADERS: usize = HEADER + 20;

/// The interface sends at once: who sends learns what became of a frame.
const NONE: &str = "noqueue";
/// Those that refuse the newest frame and say so (`NET_XMIT_DROP`), so that who sends still has it, and those that have queues
/// below them, which count for themselves (net/sched/sch_*.c). All others throw away what they took, or say that it is sent.
const TELLING: [&str; 16] = [
    "bfifo",
    "cbs",
    "clsact",
    "drr",
    "ets",
    "etf",
    "fq",
    "hfsc",
    "htb",
    "ingress",
    "mq",
    "mqprio",
    "pfifo",
    "pfifo_fast",
    "prio",
    "tbf",
];

/// What the queues below the interface with this number have thrown away in silence; `None` where it has no queue.
pub fn dropped(index: u32) -> io::Result<Option<u64>> {
    let head = [&[0; 4], &index.to_ne_bytes()[..], &[0; 12]].concat();
    let answers = list(SockProtocol::NetlinkRoute, RTM_GETQDISC, &head)?;
    let mut dropped = None;
    for message in &answers {
        // Older kernels answer with those of all interfaces.
        if message.get(HEADER + 4..).and_then(|rest| rest.first_chunk()) != Some(&index.to_ne_bytes()) {
            continue;
        }
        let attributes = message.get(HEADERS..).unwrap_or_default();
        let kind = attribute(attributes, TCA_KIND).unwrap_or_default();
        let kind = String::from_utf8_lossy(kind);
        let kind = kind.trim_end_matches('\0');
        if kind == NONE {
            continue;
        }
        let is_told = TELLING.contains(&kind);
        let count = if is_told { 0 } else { drops(attributes) };
        dropped = Some(dropped.unwrap_or(0) + count);
    }
    Ok(dropped)
}

/// `struct gnet_stats_queue`: qlen, backlog, drops, requeues, overlimits.
fn drops(attributes: &[u8]) -> u64 {
    let stats = attribute(attributes, TCA_STATS2);
    let queue = stats.and_then(|stats| attribute(stats, TCA_STATS_QUEUE));
    let count = queue.and_then(|queue| queue.get(8..)?.first_chunk());
    count.map_or(0, |count| u32::from_ne_bytes(*count).into())
}
