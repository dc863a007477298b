//! What a network interface does to frames before XDP, or anybody else, sees them: its features, which ethtool -k lists.

use nix::sys::socket::SockProtocol;

use crate::interface::{Interface, Sort};
use crate::link::virtual_kind;
use crate::netlink::{HEADER, NLA_F_NESTED, ask, attribute, attributes, kind, numbered, valued};
use crate::{Fix, Sys, Warning};

/// Of `linux/genetlink.h` and `linux/ethtool_netlink.h`.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const FEATURES_GET: u8 = 11;
const FEATURES_HEADER: u16 = 1;
const FEATURES_ACTIVE: u16 = 4;
const HEADER_DEV_INDEX: u16 = 1;
const BITSET_BITS: u16 = 3;
const BIT_NAME: u16 = 2;
/// With `struct genlmsghdr`.
const HEADERS: usize = HEADER + 4;
/// Both kinds of tags, as the kernel and as ethtool calls them.
const TAGS: [(&str, &str); 2] = [
    ("rx-vlan-hw-parse", "rxvlan"),
    ("rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse"),
];
const GRO: &str = "rx-gro";

/// Where the VLAN tags are of what an interface receives, when an XDP program sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// In the frame.
    InFrame,
    /// Taken off by the interface, which can be told to leave them.
    TakenOff(Fix),
    /// In the frame or beside it: that is up to who sends it, or cannot be told.
    Unknown(Fix),
}

/// Where the tags are of what this interface receives.
pub fn tags(sys: &Sys, interface: &Interface) -> Tags {
    let name = &interface.name;
    let (kind, active) = (virtual_kind(sys, name), active(sys, name));
    let found = tags_by(interface, kind.as_deref(), active.as_deref());
    if found != Tags::InFrame {
        return found;
    }
    // What is stacked on others gets what they leave.
    let below = interface.lower.iter();
    let mut below = below.filter_map(|name| crate::interface::interface(sys, name));
    let taken = below.find_map(|below| match tags(sys, &below) {
        Tags::InFrame => None,
        Tags::TakenOff(fix) | Tags::Unknown(fix) => Some(Tags::Unknown(fix)),
    });
    taken.unwrap_or(Tags::InFrame)
}

fn tags_by(interface: &Interface, kind: Option<&str>, active: Option<&[String]>) -> Tags {
    if kind == Some("veth") {
        // Its own features change nothing: the far end hands over packets as its kernel has them.
        return Tags::Unknown(Fix::advice(
            "at the far end of the pair: ethtool -K IF txvlan off tx-vlan-stag-hw-insert off",
        ));
    }
    let is_on = |name: &str| active.is_none_or(|active| active.iter().any(|found| found == name));
    let on = TAGS.iter().filter(|(name, _)| is_on(name));
    let on: Vec<String> = on.map(|(_, option)| format!("{option} off")).collect();
    if on.is_empty() {
        return Tags::InFrame;
    }
    let fix = Fix::one(format!("ethtool -K {} {}", interface.name, on.join(" ")));
    // What is stacked on others has its tags taken off by them.
    if interface.sort == Sort::Device && active.is_some() {
        Tags::TakenOff(fix)
    } else {
        Tags::Unknown(fix)
    }
}

/// That VLAN tags may be beside the frames that an XDP program sees.
pub fn tags_warning(sys: &Sys, interface: &Interface) -> Option<Warning> {
    let name = &interface.name;
    let (text, fix) = match tags(sys, interface) {
        Tags::InFrame => return None,
        Tags::TakenOff(fix) => (
            format!(
                "{name} takes VLAN tags off what it receives, and XDP does not get them: tagged frames are seen, and go on, without their tag"
            ),
            fix,
        ),
        Tags::Unknown(fix) => (
            format!(
                "XDP sees only VLAN tags that are in the frame, and on {name} some may come beside it: such frames are seen, and go on, without their tag"
            ),
            fix,
        ),
    };
    Some(Warning::new("vlan-stripped", text).with_fix(fix))
}

/// That the kernel may have joined packets before generic XDP sees them.
pub fn joined_warning(sys: &Sys, interface: &Interface) -> Option<Warning> {
    let name = &interface.name;
    let is_card = interface.sort == Sort::Device;
    let is_off = active(sys, name).is_some_and(|active| active.iter().all(|found| found != GRO));
    if is_card && is_off {
        return None;
    }
    let text = format!(
        "in generic mode the kernel hands over packets of a stream joined, up to 64 KiB as one: where that was done on {name}, packets are counted, and rates hold them back, as far fewer than there were"
    );
    // What a kernel of this machine sends is not cut before there is a card.
    let far = if is_card {
        ""
    } else {
        ", and at the far end (IF) of a veth: ethtool -K IF tso off gso off"
    };
    let fix = format!("--mode native, or: ethtool -K {name} gro off{far}");
    Some(Warning::new("packets-joined", text).with_fix(Fix::advice(fix)))
}

/// The features of an interface that are on, by the kernel's names; `None` where nobody can say.
fn active(sys: &Sys, name: &str) -> Option<Vec<String>> {
    let index = crate::link::index(sys, name).filter(|_| sys.is_live())?;
    let wanted = valued(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
    let found = generic(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &wanted)?;
    let family = attribute(found.get(HEADERS..)?, CTRL_ATTR_FAMILY_ID)?;
    let family = u16::from_ne_bytes(*family.first_chunk()?);
    let of = numbered(HEADER_DEV_INDEX, index);
    let found = generic(family, FEATURES_GET, &valued(FEATURES_HEADER | NLA_F_NESTED, &of))?;
    names(attribute(found.get(HEADERS..)?, FEATURES_ACTIVE)?)
}

/// The names in a set of bits that lists those that are on.
fn names(set: &[u8]) -> Option<Vec<String>> {
    let bits = attributes(attribute(set, BITSET_BITS)?);
    let names = bits.filter_map(|(_, bit)| attribute(bit, BIT_NAME));
    let text = |name: &[u8]| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    Some(names.map(text).collect())
}

/// The answer of a family of generic netlink.
fn generic(family: u16, command: u8, attributes: &[u8]) -> Option<Vec<u8>> {
    let found = ask(
        SockProtocol::NetlinkGeneric,
        (family, 0),
        &[&[command, 1, 0, 0], attributes],
    );
    found.ok().filter(|found| kind(found) == Some(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(sort: Sort) -> Interface {
        Interface {
            name: "eth1".to_owned(),
            sort,
            enabled: true,
            link: None,
            mtu: None,
            mac: None,
            addresses: Vec::new(),
            driver: None,
            numa_node: None,
            rx_queues: 1,
            tx_queues: 1,
            master: None,
            lower: Vec::new(),
            pci: None,
            vmbus: None,
        }
    }

    #[test]
    fn who_takes_tags_off_and_what_mends_it() {
        let by = |sort, kind, active: Option<&[&str]>| {
            let active = active.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            tags_by(&interface(sort), kind, active.as_deref())
        };
        let off = |command: &str| Fix::one(format!("ethtool -K eth1 {command}"));
        let card = |active: &[&str]| by(Sort::Device, None, Some(active));
        assert_eq!(card(&["rx-gro", "tx-vlan-hw-insert"]), Tags::InFrame);
        assert_eq!(card(&["rx-vlan-hw-parse"]), Tags::TakenOff(off("rxvlan off")));
        let stag = card(&["rx-vlan-stag-hw-parse"]);
        assert_eq!(stag, Tags::TakenOff(off("rx-vlan-stag-hw-parse off")));
        let both = off("rxvlan off rx-vlan-stag-hw-parse off");
        assert_eq!(
            by(Sort::Device, None, None),
            Tags::Unknown(both),
            "nobody can say"
        );
        assert!(matches!(
            by(Sort::Paired, Some("veth"), Some(&[])),
            Tags::Unknown(_)
        ));
        assert_eq!(by(Sort::Tap, Some("tun"), Some(&[])), Tags::InFrame);
        let stacked = by(Sort::Bond, Some("bond"), Some(&["rx-vlan-hw-parse"]));
        assert!(matches!(stacked, Tags::Unknown(_)));
    }

    #[test]
    fn the_kernel_says_what_is_on() {
        let features = active(&Sys::live(), "lo");
        let features = features.expect("a kernel with ethtool's netlink");
        assert!(features.iter().any(|name| name == "loopback"), "{features:?}");
        assert_eq!(active(&Sys::live(), "there-is-none"), None);
    }

    #[test]
    fn names_are_those_of_bits_that_are_listed() {
        let bit = |name: &str| {
            valued(
                1 | NLA_F_NESTED,
                &valued(BIT_NAME, format!("{name}\0").as_bytes()),
            )
        };
        let bits = [bit("rx-gro"), bit("rx-vlan-hw-parse")].concat();
        let set = [valued(1, &[]), valued(BITSET_BITS | NLA_F_NESTED, &bits)].concat();
        assert_eq!(names(&set).unwrap(), ["rx-gro", "rx-vlan-hw-parse"]);
        assert_eq!(names(&[]), None);
    }
}
