//! Whether rules would cut off the SSH session that they are typed in.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anyhow::{Result, anyhow, bail};
use host::Sys;
use host::interface::{Interface, interfaces};
use host::roles::{ends_of, interface_of, is_on_link};
use host::threads::ancestors;
use rules::{Groups, RuleSet, Verdict, look};
use wire::TPID_CUSTOMER;
use wire::checksum::{self, ICMPV6, TCP};
use wire::headers::{TYPE_ARP, TYPE_IPV4, TYPE_IPV6};
use wire::neighbour::solicited_node;

const VARIABLE: &str = "SSH_CONNECTION";
/// A neighbour on the link.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);
/// ARP goes to everybody.
const BROADCAST: [u8; 6] = [0xFF; 6];

/// A session that comes in by the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    client: SocketAddr,
    server: SocketAddr,
    /// The client is on a link of ours, and asks for us itself; else its router does.
    is_near: bool,
    /// The tag that its packets have where rules meet them.
    vlan: Option<u16>,
}

impl Session {
    /// That of this process, or of one that started it: sudo(8) clears the environment.
    pub fn through(interface: &str) -> Option<Self> {
        let sys = Sys::live();
        let session = Self::parse(&connection(&sys)?)?;
        let all = interfaces(&sys);
        let owner = interface_of(&sys, (session.server.ip(), session.client.ip()))?;
        let owner = all.iter().find(|one| one.name == owner)?;
        let vlan = tags_over(&all, owner, interface, all.len())?.first().copied();
        let is_near = is_on_link(&sys, session.client.ip());
        Some(Self {
            is_near,
            vlan,
            ..session
        })
    }

    /// "client-address client-port server-address server-port".
    fn parse(text: &str) -> Option<Self> {
        let (client, server) = ends_of(text)?;
        Some(Self {
            client,
            server,
            is_near: true,
            vlan: None,
        })
    }

    /// Refuses rules by which it would end.
    pub fn is_kept_by(&self, set: &RuleSet) -> Result<()> {
        for (what, frame) in self.frames() {
            let found = look(&frame, frame.len(), set.reasons());
            let decision = set.judge(&found, 0, &mut Groups::default(), |_, _| {});
            if decision.verdict == Verdict::Allow {
                continue;
            }
            let rule = decision.rule.and_then(|rule| set.rules.get(usize::from(rule)));
            let by = rule.map_or_else(
                || "`default deny`".to_owned(),
                |rule| format!("{} `{}`", set.place(rule), rule.text),
            );
            bail!(
                "these rules would cut off the SSH session that they are typed in (from {} to {}): {what} is denied by {by}; allow it in a line before that, or add --force",
                self.client,
                self.server
            );
        }
        Ok(())
    }

    /// Rules that keep it, whatever stands behind them.
    pub fn allowance(&self) -> Result<RuleSet> {
        let (client, server) = (self.client.ip(), self.server.ip());
        let mut text = format!(
            "allow tcp from {client} to {server} dport {}\n",
            self.server.port()
        );
        if let IpAddr::V6(us) = server {
            // From the link alone: nobody hands these on.
            text += "allow icmp6 from fe80::/10 type 135-136\n";
            // A client on the link asks and answers from the address that it is known by (RFC 4861 section 7.2). Others may
            // take it from afar, so only what finds us is spared.
            if self.is_near {
                let group = solicited_node(us);
                let _ = writeln!(
                    text,
                    "allow icmp6 from {client} to {group},{us},fe80::/10 type 135-136"
                );
            }
        }
        rules::parse("SSH session", &|_| Ok(text.clone())).map_err(|problems| anyhow!("{problems:?}"))
    }

    /// What it lives from: its packets, and what finds addresses on the link.
    fn frames(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut frames = vec![
            ("a new connection", self.tcp(0x02)),
            ("its traffic", self.tcp(0x10)),
        ];
        match (self.client.ip(), self.server.ip()) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                for (what, operation) in [("an ARP request", 1), ("an ARP answer", 2)] {
                    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 1];
                    arp.extend(client.octets());
                    arp.extend([0; 6]);
                    arp.extend(server.octets());
                    frames.push((what, ethernet(TYPE_ARP, &arp)));
                }
            }
            (IpAddr::V6(client), IpAddr::V6(us)) => {
                // Who looks for us asks the group that our address is in, and answers what we ask to that address.
                let group = solicited_node(us);
                let anybodys = [
                    ("a neighbour solicitation", 135, LINK_LOCAL, group),
                    ("a neighbour advertisement", 136, LINK_LOCAL, us),
                ];
                let clients = [
                    ("a neighbour solicitation of the client", 135, client, group),
                    ("a neighbour advertisement of the client", 136, client, us),
                ];
                let clients = clients.into_iter().filter(|_| self.is_near);
                for (what, kind, from, to) in anybodys.into_iter().chain(clients) {
                    let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
                    message.extend(us.octets());
                    frames.push((what, ip((from.into(), to.into()), ICMPV6, &message)));
                }
            }
            _ => {}
        }
        if let Some(vlan) = self.vlan {
            for (_, frame) in &mut frames {
                let tag = [TPID_CUSTOMER, vlan].map(u16::to_be_bytes);
                frame.splice(12..12, tag.concat());
            }
        }
        frames
    }

    fn tcp(&self, flags: u8) -> Vec<u8> {
        let ports = [self.client.port(), self.server.port()];
        let mut segment = ports.map(u16::to_be_bytes).concat();
        segment.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
        ip((self.client.ip(), self.server.ip()), TCP, &segment)
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [BROADCAST, [2, 0, 0, 0, 0, 1]].concat();
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn ip((from, to): (IpAddr, IpAddr), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    if from.is_ipv4() {
        let [high, low] = (len + 20).to_be_bytes();
        let mut header = vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        header.extend(octets(from));
        header.extend(octets(to));
        let sum = checksum::field(checksum::sum(&header));
        header[10..12].copy_from_slice(&sum);
        header.extend(payload);
        return ethernet(TYPE_IPV4, &header);
    }
    let [high, low] = len.to_be_bytes();
    let mut header = vec![0x60, 0, 0, 0, high, low, protocol, 255];
    header.extend(octets(from));
    header.extend(octets(to));
    header.extend(payload);
    ethernet(TYPE_IPV6, &header)
}

/// The variable of this process, or of the nearest of those above it that has one.
fn connection(sys: &Sys) -> Option<String> {
    let of = |process: u32| {
        let environment = fs::read(sys.path(format!("/proc/{process}/environ"))).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| {
            let text = std::str::from_utf8(variable).ok()?;
            Some(text.strip_prefix(VARIABLE)?.strip_prefix('=')?.to_owned())
        })
    };
    let above = || ancestors(sys, None).into_iter().filter(|process| *process > 1);
    sys.ssh_connection.clone().or_else(|| above().find_map(of))
}

/// The VLAN tags, outermost first, that packets for `upper` have where they come in by `name`; `None` if they do not, since it is
/// neither that nor stands on it (a VLAN, a bridge, a bond).
fn tags_over(all: &[Interface], upper: &Interface, name: &str, deep: usize) -> Option<Vec<u16>> {
    if upper.name == name {
        return Some(Vec::new());
    }
    let deep = deep.checked_sub(1)?;
    let mut lower = upper
        .lower
        .iter()
        .filter_map(|lower| all.iter().find(|one| one.name == *lower));
    let mut tags = lower.find_map(|lower| tags_over(all, lower, name, deep))?;
    tags.extend(tag_of(&upper.name));
    Some(tags)
}

/// The tag of a VLAN interface.
fn tag_of(name: &str) -> Option<u16> {
    let text = Sys::live().text(format!("/proc/net/vlan/{name}"))?;
    let (_, behind) = text.split_once("VID:")?;
    behind.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rules: &str, session: &str) -> Option<String> {
        let set = rules::parse("edge.rules", &|_| Ok(rules.to_owned())).unwrap();
        let session = Session::parse(session).unwrap();
        session.is_kept_by(&set).err().map(|error| error.to_string())
    }

    #[test]
    fn rules_that_end_the_session_are_named() {
        let v4 = "192.0.2.7 50000 198.51.100.1 22";
        assert_eq!(refused("deny malformed\ndefault allow\n", v4), None);
        // The sum of the words of its header carries twice.
        let carries = "192.168.57.127 50000 192.168.128.1 22";
        assert_eq!(refused("deny malformed\ndefault allow\n", carries), None);
        let said = refused("allow arp\ndeny tcp dport 22\n", v4).unwrap();
        assert!(said.contains("(from 192.0.2.7:50000 to 198.51.100.1:22): a new connection is denied by edge.rules:2 `deny tcp dport 22`"), "{said}");
        let said = refused(
            "allow tcp flags syn/syn,ack dport 22\nallow arp\ndefault deny\n",
            v4,
        )
        .unwrap();
        assert!(said.contains("its traffic"), "{said}");
        // Once the neighbour's entry has gone, nothing arrives any more.
        let said = refused("allow tcp dport 22\ndefault deny\n", v4).unwrap();
        assert!(said.contains("an ARP request"), "{said}");
        assert_eq!(refused("allow tcp dport 22\nallow arp\ndefault deny\n", v4), None);
        let v6 = "2001:db8::7 50000 2001:db8::1 22";
        let said = refused("allow tcp dport 22\ndefault deny\n", v6).unwrap();
        assert!(said.contains("a neighbour solicitation"), "{said}");
        assert_eq!(
            refused(
                "deny malformed\nallow tcp dport 22\nallow icmp6\ndefault deny\n",
                v6
            ),
            None
        );
        // The group that 2001:db8::1 is in (RFC 4291 section 2.7.1).
        for (asks, answers, missing) in [
            ("from fe80::/10 to 2001:db8::1", "", "a neighbour solicitation is"),
            (
                "from fe80::/10 to ff02::1:ff00:1",
                "",
                "a neighbour solicitation of the client is",
            ),
            (
                "to ff02::1:ff00:1",
                "from fe80::/10",
                "a neighbour advertisement of the client is",
            ),
        ] {
            let rules = format!(
                "allow tcp dport 22\nallow icmp6 {asks} type 135\nallow icmp6 {answers} type 136\ndefault deny\n"
            );
            let said = refused(&rules, v6).unwrap();
            assert!(said.contains(missing), "{said}");
        }
        // From behind a router it is the router that asks and answers.
        let far = Session {
            is_near: false,
            ..Session::parse(v6).unwrap()
        };
        let rules = "allow tcp dport 22\nallow icmp6 from fe80::/10 type 135-136\ndefault deny\n";
        assert!(refused(rules, v6).is_some());
        let set = rules::parse("edge.rules", &|_| Ok(rules.to_owned())).unwrap();
        far.is_kept_by(&set).unwrap();
        let first = far.allowance().unwrap();
        let deny = rules::parse("edge.rules", &|_| Ok("default deny\n".to_owned())).unwrap();
        far.is_kept_by(&RuleSet::joined(&[&first, &deny])).unwrap();
    }

    #[test]
    fn a_session_over_a_vlan_has_its_tag() {
        let session = Session::parse("192.0.2.7 50000 198.51.100.1 22").unwrap();
        let tagged = Session {
            vlan: Some(100),
            ..session
        };
        for (text, tag, is_kept) in [
            ("deny vlan 100\n", tagged, false),
            ("deny vlan 100\n", session, true),
            ("allow vlan 100\ndefault deny\n", tagged, true),
            ("deny tcp dport 22\n", tagged, false),
        ] {
            let set = rules::parse("edge.rules", &|_| Ok(text.to_owned())).unwrap();
            assert_eq!(tag.is_kept_by(&set).is_ok(), is_kept, "{text}");
        }
    }

    #[test]
    fn an_allowance_keeps_it_before_any_rules() {
        for session in [
            "192.0.2.7 50000 198.51.100.1 22",
            "2001:db8::7 50000 2001:db8::1 22",
        ] {
            let session = Session::parse(session).unwrap();
            let text = "deny ip\nallow arp\ndefault deny\n";
            let set = rules::parse("edge.rules", &|_| Ok(text.to_owned())).unwrap();
            assert!(session.is_kept_by(&set).is_err());
            let first = session.allowance().unwrap();
            session.is_kept_by(&RuleSet::joined(&[&first, &set])).unwrap();
        }
    }
}
