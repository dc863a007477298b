//! Addresses by what they sent and received.

use std::net::IpAddr;

use serde::Serialize;

use super::count::{Count, Evicted};
use super::table::{Entry, Table};
use crate::view::{Network, View};

#[derive(Debug, Default)]
struct Sums {
    sent: Count,
    received: Count,
}

impl Entry for Sums {
    fn count(&self) -> Count {
        let mut count = self.sent;
        count.add_all(self.received);
        count
    }
}

/// An address, and what it sent and received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Talker {
    /// The address.
    pub address: IpAddr,
    /// What it is the source of.
    pub sent: Count,
    /// What it is the destination of.
    pub received: Count,
}

/// Counts by address.
#[derive(Debug)]
pub struct Talkers {
    table: Table<IpAddr, Sums>,
    /// Packets without addresses of IP.
    other: Count,
}

impl Talkers {
    /// Remembers so many addresses at once.
    pub fn new(max: usize) -> Self {
        Self {
            table: Table::new(max),
            other: Count::default(),
        }
    }

    /// Counts a packet of `len` bytes.
    #[inline]
    pub fn add(&mut self, view: &View<'_>, len: u32) {
        let addresses = match view.network {
            Network::Ip(ip) => ip.addresses(view.data),
            _ => None,
        };
        let Some((source, destination)) = addresses else {
            return self.other.add(len);
        };
        self.table.entry(source).sent.add(len);
        self.table.entry(destination).received.add(len);
    }

    /// All addresses, those with most bytes first; what was forgotten, each packet at both of its addresses; and what has
    /// no address.
    pub fn finish(self) -> (Vec<Talker>, Evicted, Count) {
        let (sums, evicted) = self.table.into_parts();
        let mut all: Vec<Talker> = sums
            .map(|(address, sums)| Talker {
                address,
                sent: sums.sent,
                received: sums.received,
            })
            .collect();
        all.sort_unstable_by_key(|talker| {
            let bytes = talker.sent.bytes + talker.received.bytes;
            (std::cmp::Reverse(bytes), talker.address)
        });
        (all, evicted, self.other)
    }
}
