//! Rules and frames: the same for all that is compared, and the same in each run.

use std::fmt::Write as _;

use wire::checksum::{self, UDP};

/// Frames in a list: more than the caches of a core hold of what they lead to.
pub const FRAMES: usize = 1 << 16;
/// Bytes of a frame, without FCS.
pub const FRAME: usize = 60;
const ETHERNET: usize = 14;
/// Where all of them go.
const TO: u32 = u32::from_be_bytes([198, 18, 0, 2]);

/// Numbers that look like chance (xorshift64*).
pub struct Chance(u64);

impl Chance {
    /// Always the same ones.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// One below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// A UDP frame's tuple.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub source: u32,
    pub destination: u32,
    pub source_port: u16,
    pub destination_port: u16,
}

impl Frame {
    /// From this address.
    pub fn from(source: u32) -> Self {
        Self {
            source,
            destination: TO,
            source_port: 1025,
            destination_port: 9,
        }
    }

    /// The whole frame, to this MAC address.
    pub fn bytes(&self, to: [u8; 6]) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        bytes[..6].copy_from_slice(&to);
        bytes[6] = 2;
        bytes[12] = 8;
        let ip_len = (FRAME - ETHERNET) as u16;
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&ip_len.to_be_bytes());
        bytes[22] = 64;
        bytes[23] = UDP;
        bytes[26..30].copy_from_slice(&self.source.to_be_bytes());
        bytes[30..34].copy_from_slice(&self.destination.to_be_bytes());
        bytes[34..36].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[36..38].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes());
        let sum = checksum::field(checksum::sum(&bytes[14..34]));
        bytes[24..26].copy_from_slice(&sum);
        bytes
    }

    /// What differs from frame to frame, as the generator's `struct head` has it.
    pub fn head(&self) -> [u8; 16] {
        let bytes = self.bytes([0; 6]);
        let mut head = [0; 16];
        head[..12].copy_from_slice(&bytes[26..38]);
        head[12..14].copy_from_slice(&bytes[24..26]);
        head
    }
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    pub address: u32,
    pub len: u32,
}

impl Prefix {
    fn new(address: u32, len: u32) -> Self {
        Self {
            address: address & Self::mask(len),
            len,
        }
    }

    const fn mask(len: u32) -> u32 {
        if len == 0 { 0 } else { u32::MAX << (32 - len) }
    }

    fn any(self, chance: &mut Chance) -> u32 {
        self.address | (chance.next() as u32 & !Self::mask(self.len))
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", std::net::Ipv4Addr::from(self.address), self.len)
    }
}

/// A rule about the tuple of UDP packets, which denies.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub source: Prefix,
    pub destination: Prefix,
    pub source_port: (u16, u16),
    pub destination_port: (u16, u16),
}

const ALL_PORTS: (u16, u16) = (0, u16::MAX);

/// So many rules, no two of which are about one source.
pub fn disjoint(count: usize) -> Vec<Rule> {
    let rule = |number: usize| Rule {
        source: Prefix::new(10 << 24 | (number as u32) << 16, 16),
        destination: Prefix::new(TO, 15),
        source_port: ALL_PORTS,
        destination_port: (1000 + number as u16, 1000 + number as u16),
    };
    (0..count).map(rule).collect()
}

/// So many rules of all shapes, as large access lists have them.
pub fn mixed(count: usize) -> Vec<Rule> {
    let mut chance = Chance::new(0x5EED);
    let mut rule = || {
        let len = [16, 20, 24, 24, 24, 28, 32, 32][chance.below(8) as usize];
        let source = Prefix::new(10 << 24 | chance.next() as u32 >> 8, len);
        let of = 198 << 24 | 18 << 16 | (chance.below(256) << 8);
        let destination = Prefix::new(of | chance.below(256), [24, 32][chance.below(2) as usize]);
        let mut ports = |all_of_ten| {
            let low = 1 + chance.below(60_000) as u16;
            match chance.below(10) {
                kind if kind < all_of_ten => ALL_PORTS,
                9 => (low, low + 1 + chance.below(1000) as u16),
                _ => (low, low),
            }
        };
        Rule {
            source,
            destination,
            source_port: ports(8),
            destination_port: ports(1),
        }
    };
    (0..count).map(|_| rule()).collect()
}

/// So many different prefixes, of the lengths that lists of bad addresses have.
pub fn prefixes(count: usize, seed: u64) -> Vec<Prefix> {
    let mut chance = Chance::new(seed);
    let mut known = std::collections::HashSet::with_capacity(count);
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let len = [16, 19, 20, 21, 22, 22, 23, 23, 24, 24, 24, 24, 24, 24, 28, 32][chance.below(16) as usize];
        // Nothing of what is special, nor where frames go.
        let address = 1 << 24 | chance.below(190 << 24);
        let prefix = Prefix::new(address, len);
        if known.insert(prefix) {
            all.push(prefix);
        }
    }
    all
}

/// Frames that meet these rules, each by chance one of them.
pub fn meeting(rules: &[Rule]) -> Vec<Frame> {
    let mut chance = Chance::new(0x00F4_A3E5);
    let mut frame = || {
        let rule = &rules[chance.below(rules.len() as u32) as usize];
        let mut port = |(low, high): (u16, u16)| low + chance.below(u32::from(high - low) + 1) as u16;
        let (source_port, destination_port) = (port(rule.source_port), port(rule.destination_port));
        Frame {
            source: rule.source.any(&mut chance),
            destination: rule.destination.any(&mut chance),
            source_port,
            destination_port,
        }
    };
    (0..FRAMES).map(|_| frame()).collect()
}

/// Frames from these prefixes, each by chance from one of them.
pub fn out_of(prefixes: &[Prefix]) -> Vec<Frame> {
    let mut chance = Chance::new(0xADD4);
    let mut frame = || {
        let prefix = prefixes[chance.below(prefixes.len() as u32) as usize];
        Frame::from(prefix.any(&mut chance))
    };
    (0..FRAMES).map(|_| frame()).collect()
}

/// One frame again and again.
pub fn same(frame: Frame) -> Vec<Frame> {
    vec![frame; FRAMES]
}

fn ports(range: (u16, u16)) -> Option<String> {
    (range != ALL_PORTS).then(|| match range {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    })
}

impl Rule {
    fn ours(&self) -> String {
        let mut text = format!("deny udp from {} to {}", self.source, self.destination);
        for (name, range) in [("sport", self.source_port), ("dport", self.destination_port)] {
            if let Some(ports) = ports(range) {
                let _ = write!(text, " {name} {ports}");
            }
        }
        text
    }

    fn nft(&self) -> String {
        let mut text = format!("ip saddr {} ip daddr {}", self.source, self.destination);
        for (name, range) in [("sport", self.source_port), ("dport", self.destination_port)] {
            if let Some(ports) = ports(range) {
                let _ = write!(text, " udp {name} {ports}");
            }
        }
        text + " drop"
    }

    fn iptables(&self, chain: &str) -> String {
        let mut text = format!("-A {chain} -s {} -d {} -p udp", self.source, self.destination);
        for (name, range) in [("sport", self.source_port), ("dport", self.destination_port)] {
            if let Some(ports) = ports(range) {
                let _ = write!(text, " --{name} {}", ports.replace('-', ":"));
            }
        }
        text + " -j DROP"
    }

    /// As `acl.c` reads it.
    pub fn acl(&self) -> Vec<u8> {
        let words = [
            self.source.address,
            self.source.len,
            self.destination.address,
            self.destination.len,
        ];
        let halves = [
            self.source_port.0,
            self.source_port.1,
            self.destination_port.0,
            self.destination_port.1,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(halves.iter().flat_map(|half| half.to_ne_bytes()));
        bytes
    }
}

/// Our rule file.
pub fn ours(rules: &[Rule]) -> String {
    rules
        .iter()
        .fold(String::new(), |text, rule| text + &rule.ours() + "\n")
}

/// What `nft -f` reads, of this chain.
pub fn nft(rules: &[Rule], family: &str, hook: &str) -> String {
    let rules = rules.iter().map(Rule::nft).collect::<Vec<_>>().join("\n");
    format!(
        "table {family} bench {{ chain bench {{ type filter hook {hook} priority 0; policy accept;\n{rules}\n}}\n}}\n"
    )
}

/// What `iptables-nft-restore` reads.
pub fn iptables(rules: &[Rule], table: &str, chain: &str) -> String {
    let rules = rules.iter().map(|rule| rule.iptables(chain)).collect::<Vec<_>>();
    format!("*{table}\n{}\nCOMMIT\n", rules.join("\n"))
}

/// A list of prefixes, one a line.
pub fn list(prefixes: &[Prefix]) -> String {
    prefixes
        .iter()
        .fold(String::with_capacity(prefixes.len() * 20), |mut text, prefix| {
            let _ = writeln!(text, "{prefix}");
            text
        })
}
