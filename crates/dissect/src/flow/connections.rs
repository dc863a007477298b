//! Connections by protocol, addresses and ports, both directions joined.

use std::net::IpAddr;

use serde::Serialize;
use wire::Ip;
use wire::checksum::TCP;

use super::count::{Count, Evicted};
use super::table::{Entry, Table};
use crate::line::tcp_flags;
use crate::text::Text;
use crate::view::{Network, View};

const SYN: u8 = 2;
const ACK: u8 = 16;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct End {
    /// Its address.
    pub address: IpAddr,
    /// Its port; 0 for protocols without, and for fragments that do not have it.
    pub port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    /// The lower end first, so that both directions have the same key.
    ends: [End; 2],
    protocol: u8,
}

/// What went one way.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    count: Count,
    flags: u8,
}

#[derive(Debug, Default)]
struct Flow {
    /// From the lower end to the higher, and back.
    ways: [Way; 2],
    /// Which of the ends began.
    began: usize,
    /// First and last time seen, where any was told.
    times_ns: Option<(i64, i64)>,
}

impl Entry for Flow {
    fn count(&self) -> Count {
        let [mut count, back] = self.ways.map(|way| way.count);
        count.add_all(back);
        count
    }
}

/// A connection, and what went over it. What it names first is who began, as far as it was seen: who sent the first
/// packet, or, of TCP, got the first SYN-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its protocol over IP (IANA).
    pub protocol: u8,
    /// Who began.
    pub from: End,
    /// Whom to.
    pub to: End,
    /// What went there.
    pub sent: Count,
    /// What came back.
    pub returned: Count,
    /// First and last time seen, ns since the epoch of Unix.
    pub times_ns: Option<(i64, i64)>,
    /// TCP flags seen that way, and back.
    pub flags: Option<(u8, u8)>,
}

impl Connection {
    /// The name of its protocol, if it has one here.
    pub fn protocol_name(&self) -> Option<&'static str> {
        crate::names::protocol(self.protocol)
    }

    /// TCP flags as letters, each way.
    pub fn flag_letters(&self) -> Option<(String, String)> {
        let letters = |set: u8| {
            let mut text = Text::default();
            tcp_flags(&mut text, set);
            String::from_utf8_lossy(text.as_bytes()).into_owned()
        };
        self.flags.map(|(there, back)| (letters(there), letters(back)))
    }

    fn bytes(&self) -> u64 {
        self.sent.bytes + self.returned.bytes
    }
}

/// Counts connections.
#[derive(Debug)]
pub struct Connections {
    table: Table<Key, Flow>,
    /// Packets that are no IP, or not whole enough to tell.
    other: Count,
}

impl Connections {
    /// Remembers so many at once.
    pub fn new(max: usize) -> Self {
        Self {
            table: Table::new(max),
            other: Count::default(),
        }
    }

    /// Counts a packet of `len` bytes.
    #[inline]
    pub fn add(&mut self, view: &View<'_>, time_ns: Option<i64>, len: u32) {
        let Network::Ip(ip) = view.network else {
            return self.other.add(len);
        };
        let Some((source, destination)) = ip.addresses(view.data) else {
            return self.other.add(len);
        };
        let (from, to) = ip.ports(view.data).unwrap_or_default();
        let (from, to) = (
            End {
                address: source,
                port: from,
            },
            End {
                address: destination,
                port: to,
            },
        );
        let way = usize::from(from > to);
        let ends = if way == 0 { [from, to] } else { [to, from] };
        let flow = self.table.entry(Key {
            ends,
            protocol: ip.protocol,
        });
        let flags = flags(view.data, &ip);
        if flow.count().packets == 0 {
            flow.began = way ^ usize::from(flags & (SYN | ACK) == SYN | ACK);
        }
        flow.ways[way].count.add(len);
        flow.ways[way].flags |= flags;
        if let Some(now) = time_ns {
            let (first, last) = flow.times_ns.unwrap_or((now, now));
            flow.times_ns = Some((first.min(now), last.max(now)));
        }
    }

    /// All connections, the most bytes first; what was forgotten; and what is none.
    pub fn finish(self) -> (Vec<Connection>, Evicted, Count) {
        let (flows, evicted) = self.table.into_parts();
        let mut all: Vec<Connection> = flows.map(|(key, flow)| connection(&key, &flow)).collect();
        all.sort_unstable_by(|one, other| {
            let order = other.bytes().cmp(&one.bytes());
            // Equal ones in an order that does not depend on the table's.
            order.then_with(|| (one.times_ns, one.from, one.to).cmp(&(other.times_ns, other.from, other.to)))
        });
        (all, evicted, self.other)
    }
}

/// TCP's flags; none of other protocols and of later fragments.
#[inline]
fn flags(data: &[u8], ip: &Ip) -> u8 {
    let is_tcp = ip.protocol == TCP && !ip.later_fragment;
    let flags = data.get(ip.transport + 13).filter(|_| is_tcp);
    flags.copied().unwrap_or(0)
}

fn connection(key: &Key, flow: &Flow) -> Connection {
    let (there, back) = (flow.began, 1 - flow.began);
    Connection {
        protocol: key.protocol,
        from: key.ends[there],
        to: key.ends[back],
        sent: flow.ways[there].count,
        returned: flow.ways[back].count,
        times_ns: flow.times_ns,
        flags: (key.protocol == TCP).then_some((flow.ways[there].flags, flow.ways[back].flags)),
    }
}
