//! The queueing disciplines below an interface (tc(8)), and what they throw away in silence.

use std::io;

use nix::sys::socket::SockProtocol;

use crate::netlink::{HEADER, attribute, list, valued};

/// Of `linux/rtnetlink.h` and `linux/gen_stats.h`.
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Those that the kernel made by itself are wanted, too.
const TCA_DUMP_INVISIBLE: u16 = 10;
/// `struct nlmsghdr` with `struct tcmsg`.
const HEADERS: usize = HEADER + 20;

/// They queue nothing on the way out.
const NONE: [&str; 3] = ["clsact", "ingress", "noqueue"];
/// They refuse the newest frame and say so (`NET_XMIT_DROP`), so that who sends still has it (net/sched/sch_*.c). Of one with a
/// single queue below it, and of one that only adds up, what it counts is that of its queues. (`etf` takes nothing from sockets
/// that give no time.)
const TELLING: [&str; 11] = [
    "bfifo",
    "cbs",
    "etf",
    "fq",
    "mq",
    "mqprio",
    "pfifo",
    "pfifo_fast",
    "pie",
    "plug",
    "tbf",
];
/// They count what the queues below them count, and what finds no class: that is dropped in silence.
const CLASSFUL: [&str; 8] = ["drr", "ets", "hfsc", "htb", "multiq", "prio", "qfq", "taprio"];

/// One of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    handle: u32,
    parent: u32,
    kind: String,
    /// Frames, in as many bits as the kernel counts.
    drops: u32,
}

/// Those that frames wait in before the interface with this number; none where it sends at once, and who sends learns what became
/// of a frame.
pub fn of(index: u32) -> io::Result<Vec<Qdisc>> {
    let head = [&[0; 4], &index.to_ne_bytes()[..], &[0; 12]].concat();
    let request = [head, valued(TCA_DUMP_INVISIBLE, &[])].concat();
    let answers = list(SockProtocol::NetlinkRoute, RTM_GETQDISC, &request)?;
    let mut all: Vec<Qdisc> = answers
        .iter()
        .filter_map(|message| read(message, index))
        .collect();
    all.retain(|one| !NONE.contains(&one.kind.as_str()));
    Ok(all)
}

/// What a message says, if that is of this interface: the kernel lists those of all.
fn read(message: &[u8], index: u32) -> Option<Qdisc> {
    let number = |at: usize| Some(u32::from_ne_bytes(*message.get(HEADER + at..)?.first_chunk()?));
    if number(4)? != index {
        return None;
    }
    let attributes = message.get(HEADERS..)?;
    let kind = String::from_utf8_lossy(attribute(attributes, TCA_KIND)?);
    // `struct gnet_stats_queue`: qlen, backlog, drops, requeues, overlimits.
    let queue = attribute(attributes, TCA_STATS2).and_then(|stats| attribute(stats, TCA_STATS_QUEUE));
    let drops = queue.and_then(|queue| queue.get(8..)?.first_chunk());
    Some(Qdisc {
        handle: number(8)?,
        parent: number(12)?,
        kind: kind.trim_end_matches('\0').to_owned(),
        drops: drops.map_or(0, |drops| u32::from_ne_bytes(*drops)),
    })
}

/// What those of an interface have dropped in silence since they were looked at first.
#[derive(Debug, Default)]
pub struct Silent {
    seen: Vec<Seen>,
    has_begun: bool,
    has_changed: bool,
}

#[derive(Debug)]
struct Seen {
    last: Qdisc,
    is_there: bool,
    grown: u64,
}

impl Silent {
    /// Looks again.
    pub fn look(&mut self, now: Vec<Qdisc>) {
        for seen in &mut self.seen {
            let is_there = now.iter().any(|one| one.is(&seen.last));
            self.has_changed |= seen.is_there && !is_there;
            seen.is_there = is_there;
            // One of the same name that comes later counts from 0.
            seen.last.drops = if is_there { seen.last.drops } else { 0 };
        }
        for one in now {
            if let Some(seen) = self.seen.iter_mut().find(|seen| seen.last.is(&one)) {
                seen.grown += u64::from(one.drops.wrapping_sub(seen.last.drops));
                seen.last = one;
                continue;
            }
            let grown = if self.has_begun { one.drops.into() } else { 0 };
            self.has_changed |= self.has_begun;
            self.seen.push(Seen {
                last: one,
                is_there: true,
                grown,
            });
        }
        self.has_begun = true;
    }

    /// How much.
    pub fn dropped(&self) -> u64 {
        let dropped = |seen: &Seen| match seen.last.kind.as_str() {
            kind if TELLING.contains(&kind) => 0,
            kind if CLASSFUL.contains(&kind) => {
                let below = self.seen.iter().filter(|other| other.last.is_below(&seen.last));
                let below = below.map(|other| other.grown).sum::<u64>();
                seen.grown.saturating_sub(below)
            }
            _ => seen.grown,
        };
        self.seen.iter().map(dropped).sum()
    }

    /// Whether some were put there or taken away meanwhile: what waited in them is lost, and counted nowhere.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl Qdisc {
    fn is(&self, other: &Self) -> bool {
        (self.handle, self.parent, &self.kind) == (other.handle, other.parent, &other.kind)
    }

    /// Whether it is a queue of a class of `other`.
    fn is_below(&self, other: &Self) -> bool {
        other.handle != 0 && self.parent >> 16 == other.handle >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn qdisc(handle: u32, parent: u32, kind: &str, drops: u32) -> Qdisc {
        Qdisc {
            handle: handle << 16,
            parent,
            kind: kind.to_owned(),
            drops,
        }
    }

    const ROOT: u32 = u32::MAX;

    fn after(looks: &[Vec<Qdisc>]) -> (u64, bool) {
        let mut silent = Silent::default();
        for look in looks {
            silent.look(look.clone());
        }
        (silent.dropped(), silent.has_changed())
    }

    #[test]
    fn a_refusal_is_none_and_a_copy_is_counted_once() {
        let one = |kind, drops| vec![qdisc(1, ROOT, kind, drops)];
        assert_eq!(after(&[one("pfifo", 5), one("pfifo", 9)]), (0, false));
        assert_eq!(after(&[one("fq_codel", 5), one("fq_codel", 9)]), (4, false));
        assert_eq!(after(&[one("netem", u32::MAX), one("netem", 2)]), (3, false));
        let tree = |own, told, silent| {
            let below = [
                qdisc(2, 1 << 16 | 1, "pfifo", told),
                qdisc(3, 1 << 16 | 2, "sfq", silent),
            ];
            [vec![qdisc(1, ROOT, "htb", own)], below.to_vec()].concat()
        };
        // Seven of the queues below, and two that found no class.
        assert_eq!(after(&[tree(0, 0, 0), tree(9, 3, 4)]), (4 + 2, false));
    }

    #[test]
    fn what_is_exchanged_takes_nothing_back() {
        let one = |kind, drops| vec![qdisc(0, ROOT, kind, drops)];
        assert_eq!(after(&[one("codel", 5), one("codel", 9), vec![]]), (4, true));
        assert_eq!(after(&[one("codel", 5), one("sfq", 9)]), (9, true));
        assert_eq!(after(&[one("codel", 5), vec![], one("codel", 3)]), (3, true));
        assert_eq!(after(&[vec![], vec![]]), (0, false));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_broken(bytes in prop::collection::vec(any::<u8>(), 0..96)) {
            let _ = read(&bytes, 0);
        }
    }
}
