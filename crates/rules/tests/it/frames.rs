//! Random frames and rules out of few values, so that they meet.

use proptest::prelude::*;
use proptest::sample::select;
use wire::checksum;

pub const V4: [[u8; 4]; 7] = [
    [10, 0, 0, 1],
    [10, 0, 1, 1],
    [10, 1, 0, 1],
    [192, 0, 2, 1],
    [192, 0, 2, 200],
    [198, 51, 100, 7],
    [255, 255, 255, 255],
];
pub const V6: [[u16; 8]; 5] = [
    [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1],
    [0x2001, 0xdb8, 0, 1, 0, 0, 0, 2],
    [0x2001, 0xdb8, 0xffff, 1, 2, 3, 4, 5],
    [0xfe80, 0, 0, 0, 0, 0, 0, 1],
    [0x0a00, 1, 0, 0, 0, 0, 0, 0],
];
pub const PORTS: [u16; 7] = [0, 53, 80, 443, 1023, 8080, 65535];
const VLANS: [u16; 4] = [0, 7, 100, 4095];
const PROTOCOLS: [u8; 9] = [6, 17, 1, 58, 132, 47, 0, 44, 255];
const ETHER_TYPES: [u16; 4] = [0x0806, 0x88CC, 0x0004, 0xFFFF];

/// A frame: well-formed as a rule, then perhaps damaged or cut.
pub fn frame() -> impl Strategy<Value = Vec<u8>> {
    let whole = (tags(), network()).prop_map(|(tags, (ether_type, rest))| {
        let mut frame = vec![2; 12];
        frame.extend(tags);
        frame.extend(ether_type.to_be_bytes());
        frame.extend(rest);
        frame
    });
    (whole, damage()).prop_map(|(mut frame, damage)| {
        match damage {
            Damage::None => {}
            Damage::Byte(at, value) => {
                let at = at.index(frame.len().min(80));
                frame[at] = value;
            }
            Damage::Cut(at) => frame.truncate(at.index(frame.len() + 1)),
            Damage::Longer(by) => frame.resize(frame.len() + by, 0),
        }
        frame
    })
}

#[derive(Clone, Debug)]
enum Damage {
    None,
    Byte(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Longer(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => Just(Damage::None),
        2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, value)| Damage::Byte(at, value)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        1 => (0..30_usize).prop_map(Damage::Longer),
    ]
}

fn tags() -> impl Strategy<Value = Vec<u8>> {
    let tag = (select(vec![0x8100_u16, 0x88A8]), select(VLANS.to_vec()))
        .prop_map(|(tpid, id)| [tpid.to_be_bytes(), (id | 0x6000).to_be_bytes()].concat());
    prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(tag, 1..4).prop_map(|tags| tags.concat()),
    ]
}

fn network() -> impl Strategy<Value = (u16, Vec<u8>)> {
    prop_oneof![
        4 => (transport(), select(V4.to_vec()), select(V4.to_vec()), fragment(), 0..3_usize).prop_map(v4),
        4 => (transport(), select(V6.to_vec()), select(V6.to_vec()), extensions()).prop_map(v6),
        1 => (select(ETHER_TYPES.to_vec()), prop::collection::vec(any::<u8>(), 0..50)),
    ]
}

/// Offset in units of eight bytes, and whether more follow.
fn fragment() -> impl Strategy<Value = (u16, bool)> {
    prop_oneof![
        4 => Just((0, false)),
        1 => Just((0, true)),
        1 => Just((1, false)),
        1 => (2..100_u16, any::<bool>()),
    ]
}

type V4Parts = ((u8, Vec<u8>), [u8; 4], [u8; 4], (u16, bool), usize);

fn v4(((protocol, payload), from, to, (offset, more), options): V4Parts) -> (u16, Vec<u8>) {
    let len = 20 + options * 4;
    let mut header = vec![0; len];
    header[0] = 0x40 | (len / 4) as u8;
    header[2..4].copy_from_slice(&((len + payload.len()) as u16).to_be_bytes());
    header[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&from);
    header[16..20].copy_from_slice(&to);
    let sum = checksum::sum(&header);
    header[10..12].copy_from_slice(&checksum::field(sum));
    header.extend(payload);
    (0x0800, header)
}

type V6Parts = ((u8, Vec<u8>), [u16; 8], [u16; 8], ((u16, bool), Vec<(u8, u8)>));

fn v6(((protocol, payload), from, to, ((offset, more), extensions)): V6Parts) -> (u16, Vec<u8>) {
    let mut next: Vec<u8> = extensions.iter().map(|(kind, _)| *kind).collect();
    next.push(protocol);
    let mut body = Vec::new();
    for (place, (kind, units)) in extensions.iter().enumerate() {
        let len = if *kind == 51 {
            8 + 4 * usize::from(*units)
        } else {
            8 + 8 * usize::from(*units)
        };
        let mut extension = vec![0; len];
        extension[0] = next[place + 1];
        extension[1] = *units;
        if *kind == 44 {
            extension[2..4].copy_from_slice(&(offset << 3 | u16::from(more)).to_be_bytes());
        }
        body.extend(extension);
    }
    body.extend(payload);
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((body.len() as u16).to_be_bytes());
    header.extend([next[0], 64]);
    header.extend(from.iter().chain(&to).flat_map(|word| word.to_be_bytes()));
    header.extend(body);
    (0x86DD, header)
}

/// The part of TCP's SYN to port 22 that begins at `offset` (in units of eight bytes), of `len` bytes with the destination
/// options before it.
pub fn part_of_syn(offset: u16, more: bool, len: usize) -> Vec<u8> {
    let mut rest = vec![6, 0, 1, 4, 0, 0, 0, 0, 4, 0, 0, 22];
    rest.resize(28, 0);
    (rest[20], rest[21]) = (5 << 4, 2);
    let from = usize::from(offset) * 8;
    let part = rest[from..from + len].to_vec();
    let (_, packet) = v6(((60, part), V6[0], V6[1], ((offset, more), vec![(44, 0)])));
    [&[2; 12][..], &[0x86, 0xDD], &packet].concat()
}

/// What the Fragment header says, and kinds and lengths of all headers.
fn extensions() -> impl Strategy<Value = ((u16, bool), Vec<(u8, u8)>)> {
    let one = (select(vec![0_u8, 43, 60, 51]), 0..3_u8);
    let others = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(one, 1..10),
    ];
    (fragment(), any::<prop::sample::Index>(), others).prop_map(|(fragment, place, mut all)| {
        // Some of the header stand for a whole packet ("atomic", RFC 6946).
        if fragment != (0, false) || place.index(4) == 0 {
            all.insert(place.index(all.len() + 1), (44, 0));
        }
        (fragment, all)
    })
}

fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let ports = (select(PORTS.to_vec()), select(PORTS.to_vec()));
    let flags = select(vec![2_u8, 18, 16, 24, 4, 17, 0, 3, 1, 0x29, 0xC2]);
    let body = prop::collection::vec(any::<u8>(), 0..40);
    let tcp = (ports.clone(), flags, body.clone(), 4..7_u8).prop_map(|((from, to), flags, body, words)| {
        let mut header = [from.to_be_bytes(), to.to_be_bytes()].concat();
        header.resize(20, 0);
        header[12] = words << 4;
        header[13] = flags;
        header.extend(body);
        (6, header)
    });
    let udp = (ports.clone(), body.clone()).prop_map(|((from, to), body)| {
        let mut header = [from.to_be_bytes(), to.to_be_bytes()].concat();
        header.extend((body.len() as u16 + 8).to_be_bytes());
        header.extend([0, 0]);
        header.extend(body);
        (17, header)
    });
    let icmp = (
        select(vec![1_u8, 58]),
        select(vec![8_u8, 0, 128, 3]),
        body.clone(),
    )
        .prop_map(|(protocol, kind, body)| {
            let mut header = vec![kind, 0, 0, 0, 0, 0, 0, 0];
            header.extend(body);
            (protocol, header)
        });
    prop_oneof![
        3 => tcp,
        3 => udp,
        2 => icmp,
        1 => (select(PROTOCOLS.to_vec()), body),
    ]
}

/// Lines of rules, of which some may be refused.
pub fn rules() -> impl Strategy<Value = String> {
    rules_of(1..12)
}

/// So many of them.
pub fn rules_of(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let line = (action(), prop::collection::vec(condition(), 0..4)).prop_map(|(action, conditions)| {
        let mut words = vec![action];
        words.extend(conditions);
        words.join(" ")
    });
    let malformed = (select(vec!["allow", "deny"]), select(reasons()))
        .prop_map(|(action, reason)| format!("{action} malformed {reason}"));
    let line = prop_oneof![9 => line, 1 => malformed];
    (prop::collection::vec(line, count), select(vec!["allow", "deny"]))
        .prop_map(|(lines, default)| format!("{}\ndefault {default}\n", lines.join("\n")))
}

/// Rules about few sources each, among many about others: of those that ask for its source a packet meets few.
pub fn narrow() -> impl Strategy<Value = String> {
    let v4 = (select(V4.to_vec()), 24..=32_u8)
        .prop_map(|(address, len)| rules::Prefix::new(address.into(), len).unwrap());
    let v6 = (select(V6.to_vec()), 100..=128_u8).prop_map(|(address, len)| {
        rules::Prefix::new(std::net::Ipv6Addr::from(address).into(), len).unwrap()
    });
    let from = prop_oneof![v4, v6].prop_map(|prefix| format!("from {prefix}"));
    let line = (action(), from, prop::collection::vec(condition(), 0..4))
        .prop_map(|(action, from, conditions)| format!("{action} {from} {}", conditions.join(" ")));
    (prop::collection::vec(line, 30..60), select(vec!["allow", "deny"])).prop_map(|(lines, default)| {
        let with_others = lines.iter().enumerate().map(|(number, line)| {
            let others = (0..16).map(|other| format!("deny from 100.64.{number}.{other}\n"));
            others.fold(format!("{line}\n"), |text, other| text + &other)
        });
        let text: String = with_others.collect();
        text + "default " + default + "\n"
    })
}

fn reasons() -> Vec<&'static str> {
    let mut all = vec!["", "ip-checksum,land", "tcp-flags"];
    all.extend(rules::Malformed::ALL.iter().map(|reason| reason.name()));
    all
}

fn action() -> impl Strategy<Value = String> {
    let rate = (
        1..5_u32,
        select(vec!["source", "destination/24", "source/8,32"]),
        1..3_u32,
    )
        .prop_map(|(rate, of, burst)| format!("rate {rate}pps per {of} burst {burst}"));
    prop_oneof![
        4 => select(vec!["allow", "deny"]).prop_map(str::to_owned),
        1 => rate,
    ]
}

fn condition() -> impl Strategy<Value = String> {
    let not = || select(vec!["", "", "not "]);
    let prefix = || {
        let v4 = (select(V4.to_vec()), 0..=32_u8)
            .prop_map(|(address, len)| rules::Prefix::new(address.into(), len).unwrap().to_string());
        let v6 = (select(V6.to_vec()), 0..=128_u8).prop_map(|(address, len)| {
            rules::Prefix::new(std::net::Ipv6Addr::from(address).into(), len)
                .unwrap()
                .to_string()
        });
        prop::collection::vec(prop_oneof![v4, v6], 1..4).prop_map(|all| all.join(","))
    };
    let port = || {
        let range = (select(PORTS.to_vec()), 0..3000_u16)
            .prop_map(|(first, more)| format!("{first}-{}", first.saturating_add(more)));
        let one = select(PORTS.to_vec()).prop_map(|port| port.to_string());
        prop::collection::vec(prop_oneof![range, one], 1..3).prop_map(|all| all.join(","))
    };
    let address =
        (select(vec!["from", "to"]), not(), prefix()).prop_map(|(end, not, of)| format!("{end} {not}{of}"));
    let ports =
        (select(vec!["sport", "dport"]), not(), port()).prop_map(|(end, not, of)| format!("{end} {not}{of}"));
    let word = select(vec![
        "tcp",
        "udp",
        "icmp",
        "icmp6",
        "sctp",
        "protocol 47,17",
        "ip",
        "ip4",
        "ip6",
        "non-ip",
        "arp",
        "ethertype 0-1500,lldp",
        "vlan 7",
        "vlan 100-4095,0",
        "untagged",
        "fragment",
        "fragment first",
        "fragment later",
        "whole",
        "flags syn",
        "flags syn/syn,ack",
        "tcp flags none",
        "icmp type 8",
        "icmp6 type echo-request,0-3",
    ])
    .prop_map(str::to_owned);
    prop_oneof![3 => address, 2 => ports, 4 => word]
}

/// How many cases: more by `RULES_CASES`, a factor.
pub fn cases(few: u32) -> u32 {
    let factor = std::env::var("RULES_CASES")
        .ok()
        .and_then(|factor| factor.parse::<u32>().ok());
    few * factor.unwrap_or(1)
}

/// The rules of these lines that are good.
pub fn good(text: &str) -> rules::RuleSet {
    let mut limits = 0;
    let fits = |line: &&str| {
        limits += usize::from(line.starts_with("rate"));
        limits <= rules::LIMITS_MAX || !line.starts_with("rate")
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| read(line).is_ok())
        .filter(fits)
        .collect();
    read(&lines.join("\n")).unwrap()
}

pub fn read(text: &str) -> Result<rules::RuleSet, Vec<rules::Problem>> {
    rules::parse("rules", &|_| Ok(text.to_owned()))
}
