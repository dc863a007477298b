//! `dropless filter import`: the kernel's own chain and what was imported from it say the same of every packet.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use wire::checksum;

use crate::replay::replay;
use crate::support::pcap_file::{Made, PLAIN};
use crate::support::wire::Wire;
use crate::support::{Lab, Need, require};

/// Every construct of nftables that is taken over, but for rates.
const NFT: &str = "
table inet filter {
  set bad { type ipv4_addr; flags interval; elements = { 10.1.0.0/16, 10.2.0.1-10.2.0.9, 10.3.0.1, 10.3.0.3, 10.3.0.5, 10.3.0.7 } }
  set ports { type inet_service; flags interval; elements = { 5, 7-9 } }
  map fates { type inet_service : verdict; elements = { 11 : accept, 12 : drop, 13 : jump sub } }
  chain sub { ip saddr 10.4.0.0/16 accept; meta l4proto udp drop; return; }
  chain more { icmp type echo-request accept; icmpv6 type { echo-request, 129 } accept; }
  chain CHAIN { type filter hook HOOK priority 0; policy POLICY;
    iifname lo accept
    ip saddr @bad drop
    ip saddr != { 10.0.0.0/8, 192.0.2.1 } tcp dport { 1, 3-4 } counter accept comment \"outside\"
    tcp flags syn / syn,ack tcp dport 2 drop
    tcp flags fin,rst tcp dport @ports drop
    tcp flags == syn tcp dport 6 accept
    tcp flags & (syn|ack) == ack tcp sport 10-20 drop
    tcp flags ! syn,ack tcp sport 21 drop
    meta l4proto { tcp, udp } th dport 53 accept
    udp dport vmap { 1 : accept, 2 : drop, 3-6 : jump sub }
    tcp dport vmap @fates
    ip6 saddr 2001:db8::/32 reject
    ip6 daddr != 2001:2::2 udp sport 1 drop
    ip protocol gre accept
    meta nfproto ipv6 tcp sport != 1-30 accept
    tcp dport != 1-15 drop
    FRAGMENTS
    udp sport 5-20 goto sub
    jump more
    log prefix \"rest\"
  }
}";

const IPTABLES: &[&str] = &[
    "-N SUB",
    "-A SUB -s 10.4.0.0/16 -j ACCEPT",
    "-A SUB -p tcp -m tcp ! --dport 3:9 -j DROP",
    "-A SUB -j RETURN",
    "-A CHAIN -m iprange --src-range 10.2.0.1-10.2.0.9 -j DROP",
    "-A CHAIN -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -m multiport --dports 1,3:5 -j REJECT",
    "-A CHAIN -p udp -m multiport --ports 1,2:5 -j SUB",
    "-A CHAIN ! -s 10.0.0.0/8 -p udp -m udp --sport 10:20 -j DROP",
    "-A CHAIN -p icmp -m icmp --icmp-type 8 -j ACCEPT",
    "-A CHAIN -p tcp -g SUB",
    "-A CHAIN -p gre -m comment --comment \"a \\\"tunnel\\\"\" -j ACCEPT",
];

/// Numbers that repeat from a seed (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A well-formed frame; its IP id or flow label is `id`.
fn frame(dice: &mut Dice, mac: [u8; 6], id: u16, is_forward: bool) -> Vec<u8> {
    let is_v6 = dice.below(3) == 0;
    let protocol = dice.one(&[6_u8, 6, 6, 17, 17, if is_v6 { 58 } else { 1 }, 47]);
    let mut payload = match protocol {
        6 | 17 => {
            let (source, destination) = (dice.below(32) as u16, dice.one(&[dice_port(id), 53, 22]));
            [source.to_be_bytes(), destination.to_be_bytes()].concat()
        }
        1 | 58 => vec![dice.one(&[8, 0, 13, 128, 129, 140]), 0, 0, 0, 0, 0, 0, 0],
        _ => vec![0; 8],
    };
    if protocol == 6 {
        payload.extend([0; 8]);
        payload.extend([0x50, dice.below(64) as u8, 0, 0, 0, 0, 0, 0]);
    } else if protocol == 17 {
        payload.extend([0, 12, 0, 0, 1, 2, 3, 4]);
    }
    let mut frame = [&mac[..], &[2, 0, 0, 0, 0, 1]].concat();
    let far = if is_forward { 99 } else { 2 };
    if is_v6 {
        frame.extend([0x86, 0xDD, 0x60, 0, (id >> 8) as u8, id as u8]);
        frame.extend((payload.len() as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        let source = dice.one(&[[0x20, 0x01, 0x0D, 0xB8], [0x20, 0x01, 0x0D, 0xB9]]);
        frame.extend([&source[..], &[0; 11], &[7]].concat());
        frame.extend([&[0x20, 0x01, 0, 2][..], &[0; 11], &[far]].concat());
    } else {
        let source = [10, dice.below(6) as u8, 0, dice.below(12) as u8];
        let source = dice.one(&[source, source, [192, 0, 2, 1], [192, 0, 2, 2]]);
        // The rest of a packet whose ports are elsewhere; long enough for the kernel to send it on.
        let offset = if is_forward && dice.below(4) == 0 {
            0x2000 | 64
        } else {
            0_u16
        };
        let mut header = [
            &[0x45, 0][..],
            &(20 + payload.len() as u16).to_be_bytes(),
            &id.to_be_bytes(),
        ]
        .concat();
        header.extend(offset.to_be_bytes());
        header.extend([64, protocol, 0, 0]);
        header.extend([&source[..], &[198, 18, 0, far]].concat());
        let sum = checksum::field(checksum::sum(&header));
        header[10..12].copy_from_slice(&sum);
        frame.extend([8, 0]);
        frame.extend(header);
    }
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn dice_port(id: u16) -> u16 {
    id % 17
}

/// Ids of frames that were counted so.
fn seen(wire: &Wire, name: &str) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    for set in [format!("{name}4"), format!("{name}6")] {
        let listed: Value =
            serde_json::from_str(&wire.far.run("nft", &["-j", "list", "set", "inet", "seen", &set]))
                .expect("JSON");
        let objects = listed["nftables"].as_array().expect("a list");
        let elements = objects.iter().find_map(|object| object["set"]["elem"].as_array());
        all.extend(elements.into_iter().flatten().filter_map(Value::as_u64));
    }
    all
}

/// Sends frames through the kernel's chain and through the rules that were imported from it.
fn agree(lab: &Lab, wire: &Wire, rules: &str, hook: &str, seed: u64) {
    let chains = format!(
        "table inet seen {{
           set arrived4 {{ typeof ip id; flags dynamic; size 65535; }}
           set arrived6 {{ typeof ip6 flowlabel; flags dynamic; size 65535; }}
           set passed4 {{ typeof ip id; flags dynamic; size 65535; }}
           set passed6 {{ typeof ip6 flowlabel; flags dynamic; size 65535; }}
           chain arrived {{ type filter hook {hook} priority -10; ether saddr 02:00:00:00:00:01 add @arrived4 {{ ip id }}
             ether saddr 02:00:00:00:00:01 add @arrived6 {{ ip6 flowlabel }}
           }}
           chain passed {{ type filter hook {hook} priority 10; ether saddr 02:00:00:00:00:01 add @passed4 {{ ip id }}
             ether saddr 02:00:00:00:00:01 add @passed6 {{ ip6 flowlabel }}
           }}
         }}"
    );

    let path = lab.path("seen.nft");
    fs::write(&path, chains).expect("a ruleset");
    wire.far.run("nft", &["-f", &path.display().to_string()]);
    let mac = wire.far.mac_bytes("far0");
    let mut dice = Dice(seed);
    let packets: Vec<Made> = (1..=1500_u16)
        .map(|id| {
            let at_ns = 1_700_000_000_000_000_000 + u64::from(id) * 50_000;
            Made::whole(at_ns, frame(&mut dice, mac, id, hook == "forward"))
        })
        .collect();
    let file = PLAIN.write(lab, "frames.pcap", &packets);
    let sent = replay(lab, wire, &file, &[]);
    let arrived = seen(wire, "arrived");
    assert_eq!(arrived.len(), 1500, "every frame comes to the chain: {sent}");
    let passed = seen(wire, "passed");
    let path = lab.path("imported.rules");
    fs::write(&path, rules).expect("rules");
    let rules = path.display().to_string();
    let tested = lab.dropless(&["filter", "test", &rules, &file]).run();
    assert_eq!(tested.code, Some(0), "{tested}");
    let lines = tested.stdout.lines().take(1500).map(|line| {
        let mut words = line.split_whitespace();
        let id: u64 = words.next().and_then(|word| word.parse().ok()).expect("a number");
        (id, words.next() == Some("allow"), line)
    });
    for (id, is_allowed, line) in lines {
        assert_eq!(is_allowed, passed.contains(&id), "seed {seed}: {line}");
    }
    let share = passed.len();
    assert!(
        (150..1350).contains(&share),
        "{share} of 1500 passed: too few or too many to tell"
    );
    wire.far.run("nft", &["delete", "table", "inet", "seen"]);
}

fn wire(lab: &Lab) -> Wire {
    let wire = Wire::to_kernel(lab);
    let keys = "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
        for key in all far0; do echo 0 >/proc/sys/net/ipv4/conf/$key/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/$key/send_redirects; done";
    wire.far.run("sh", &["-c", keys]);
    for family in ["-4", "-6"] {
        wire.far.ip(&[family, "route", "add", "default", "dev", "far0"]);
    }
    wire
}

fn imported(lab: &Lab, name: &str, text: &str, arguments: &[&str]) -> String {
    let path = lab.path(name);
    fs::write(&path, text).expect("a listing");
    let path = path.display().to_string();
    let imported = lab
        .dropless(&[&["filter", "import", &path][..], arguments].concat())
        .run();
    assert_eq!(
        (imported.code, imported.stderr.as_str()),
        (Some(0), ""),
        "{imported}"
    );
    imported.stdout
}

#[test]
fn the_kernel_and_what_was_imported_agree_on_every_packet() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("nft")]) else {
        return;
    };
    let wire = wire(&lab);
    for (seed, (hook, policy)) in (1..).zip([
        ("input", "drop"),
        ("input", "accept"),
        ("forward", "drop"),
        ("forward", "accept"),
    ]) {
        let fragments = if hook == "forward" {
            "ip saddr 10.0.0.0/16 ip frag-off & 0x1fff != 0 drop"
        } else {
            ""
        };
        let text = NFT
            .replace("CHAIN", hook)
            .replace("HOOK", hook)
            .replace("POLICY", policy)
            .replace("FRAGMENTS", fragments);
        let path = lab.path("filter.nft");
        fs::write(&path, text).expect("a ruleset");
        wire.far.run("nft", &["-f", &path.display().to_string()]);
        let listed = wire.far.run("nft", &["-j", "list", "ruleset"]);
        let rules = imported(&lab, "listed.json", &listed, &["--chain", hook]);
        agree(&lab, &wire, &rules, hook, seed);
        wire.far.run("nft", &["flush", "ruleset"]);
    }
}

#[test]
fn iptables_and_what_was_imported_agree_on_every_packet() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("nft"), Need::Tool("iptables-nft")]) else {
        return;
    };
    let wire = wire(&lab);
    for (seed, hook) in (11..).zip(["input", "forward"]) {
        let chain = hook.to_uppercase();
        wire.far.run(
            "sh",
            &[
                "-c",
                &format!("iptables-nft -P {chain} DROP; ip6tables-nft -P {chain} ACCEPT"),
            ],
        );
        for rule in IPTABLES {
            wire.far.run(
                "sh",
                &["-c", &format!("iptables-nft {}", rule.replace("CHAIN", &chain))],
            );
        }
        let sixth = format!(
            "ip6tables-nft -A {chain} -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT; ip6tables-nft -A {chain} -s 2001:db8::/32 -j DROP"
        );
        wire.far.run("sh", &["-c", &sixth]);
        if hook == "forward" {
            wire.far.run("sh", &["-c", "iptables-nft -I FORWARD -f -s 10.0.0.0/14 -j DROP; iptables-nft -I FORWARD ! -f -s 10.5.0.0/16 -j ACCEPT"]);
        }
        let saved = wire
            .far
            .run("sh", &["-c", "iptables-nft-save; ip6tables-nft-save"]);
        let rules = imported(&lab, "saved.txt", &saved, &["--chain", hook]);
        agree(&lab, &wire, &rules, hook, seed);
        wire.far.run("nft", &["flush", "ruleset"]);
    }
}
