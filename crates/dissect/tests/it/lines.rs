//! Lines of packets, for people and for scripts.

use capture::input::{LinkType, Packet};
use capture::pcapng::Direction;
use dissect::{Clock, Printer, Show, Text, TimeFormat, json};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{between, ethernet, interface, ipv4, ipv6, packet, tcp, udp};

fn line(show: Show, packet: &Packet<'_>) -> String {
    let mut text = Text::default();
    Printer::new(Clock::new(TimeFormat::Clock, true), show).line(&mut text, packet);
    String::from_utf8(text.as_bytes().to_vec()).unwrap()
}

/// What is said of a frame behind the time.
fn said_of(link: LinkType, data: &[u8]) -> String {
    let interface = interface(link);
    let whole = line(Show::default(), &packet(&interface, data, Some(0)));
    let said = whole.strip_prefix("00:00:00.000000 ").unwrap();
    said.strip_suffix('\n').unwrap().to_owned()
}

fn said(frame: &[u8]) -> String {
    said_of(LinkType::Ethernet, frame)
}

const ANY: [LinkType; 7] = [
    LinkType::Ethernet,
    LinkType::Raw,
    LinkType::Sll,
    LinkType::Sll2,
    LinkType::Null,
    LinkType::Loopback,
    LinkType::Other(9),
];

#[test]
fn udp_and_what_carries_it() {
    let datagram = udp(5000, 7, 30);
    let of_ip = "IP 10.0.0.1.5000 > 10.0.0.2.7: UDP, length 30";
    let v4 = ipv4(17, 0, &datagram);
    assert_eq!(said(&ethernet(&[], 0x0800, &v4)), of_ip);
    let tagged = [0x88, 0xA8, 0xA0, 5, 0x81, 0, 0, 7];
    assert_eq!(
        said(&ethernet(&tagged, 0x0800, &v4)),
        format!("vlan 5, p 5, vlan 7, p 0, {of_ip}")
    );
    assert_eq!(
        said(&ethernet(&[], 0x86DD, &ipv6(17, &datagram))),
        "IP6 2001:db8::1.5000 > 2001:db8::2.7: UDP, length 30"
    );
    assert_eq!(said_of(LinkType::Raw, &v4), of_ip);
    assert_eq!(said_of(LinkType::Null, &[&[2, 0, 0, 0][..], &v4].concat()), of_ip);
    let sll = [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0][..], &v4].concat();
    assert_eq!(said_of(LinkType::Sll, &sll), format!("Out {of_ip}"));
    let mut sll2 = vec![8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    sll2.extend(&v4);
    assert_eq!(said_of(LinkType::Sll2, &sll2), format!("In {of_ip}"));
    assert_eq!(said_of(LinkType::Other(9), &v4), "link type 9, length 58");
}

#[test]
fn tcp_with_all_that_it_says() {
    let of = |flags, options: &[u8], payload: &[u8]| {
        let whole = said(&ethernet(&[], 0x0800, &ipv4(6, 0, &tcp(flags, options, payload))));
        let said = whole.strip_prefix("IP 10.0.0.1.1000 > 10.0.0.2.80: ");
        said.unwrap().to_owned()
    };
    assert_eq!(
        of(
            2,
            &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7],
            &[]
        ),
        "Flags [S], seq 10, win 256, options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7], length 0"
    );
    assert_eq!(
        of(0x18, &[], b"abc"),
        "Flags [P.], seq 10:13, ack 20, win 256, length 3"
    );
    assert_eq!(of(0x10, &[], &[]), "Flags [.], ack 20, win 256, length 0");
    assert_eq!(of(0x20, &[], &[]), "Flags [U], win 256, urg 7, length 0");
    assert_eq!(of(0, &[], &[]), "Flags [none], win 256, length 0");
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9];
    assert_eq!(
        of(0x10, &sack, &[]),
        "Flags [.], ack 20, win 256, options [nop,nop,sack 1 {1:9}], length 0"
    );
    // An option that is longer than all of them.
    assert_eq!(
        of(0x10, &[2, 200, 1, 1], &[]),
        "Flags [.], ack 20, win 256, options [[|tcp]], length 0"
    );
    let short = ethernet(&[], 0x0800, &ipv4(6, 0, &tcp(2, &[], &[])));
    assert_eq!(said(&short[..40]), "IP 10.0.0.1.1000 > 10.0.0.2.80: [|tcp]");
}

#[test]
fn fragments_say_which_and_where() {
    let first = ethernet(&[], 0x0800, &ipv4(17, 0x2000, &udp(5000, 7, 24)));
    assert_eq!(
        said(&first),
        "IP 10.0.0.1.5000 > 10.0.0.2.7: UDP, length 24 (frag 4711:32@0+)"
    );
    let last = ethernet(&[], 0x0800, &ipv4(17, 4, &[0; 16]));
    assert_eq!(
        said(&last),
        "IP 10.0.0.1 > 10.0.0.2: UDP, length 16 (frag 4711:16@32)"
    );
    let v6 = ipv6(44, &[17, 0, 0, 33, 0, 0, 0x12, 0x67, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        said(&ethernet(&[], 0x86DD, &v6)),
        "IP6 2001:db8::1 > 2001:db8::2: UDP, length 8 (frag 4711:8@32+)"
    );
    let options = [60, 0, 0, 1, 0, 0, 0x12, 0x67, 17, 0, 1, 4, 0, 0, 0, 0];
    let first = ipv6(44, &[&options[..], &udp(5000, 7, 24)].concat());
    assert_eq!(
        said(&ethernet(&[], 0x86DD, &first)),
        "IP6 2001:db8::1.5000 > 2001:db8::2.7: UDP, length 24 (frag 4711:40@0+)"
    );
}

#[test]
fn messages_of_hosts() {
    let unreachable = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &ipv4(17, 0, &udp(5000, 7, 0))].concat();
    let of_v4 = |message: &[u8]| said(&ethernet(&[], 0x0800, &ipv4(1, 0, message)));
    assert_eq!(
        of_v4(&unreachable),
        "IP 10.0.0.1 > 10.0.0.2: ICMP 10.0.0.2 udp port 7 unreachable, length 36"
    );
    assert_eq!(
        of_v4(&[8, 0, 0, 0, 0, 5, 0, 6]),
        "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 5, seq 6, length 8"
    );
    assert_eq!(
        of_v4(&[200, 1, 0, 0, 0, 0, 0, 0]),
        "IP 10.0.0.1 > 10.0.0.2: ICMP type 200 code 1, length 8"
    );
    let unreachable = [&[1, 4, 0, 0, 0, 0, 0, 0][..], &ipv6(17, &udp(5000, 7, 0))].concat();
    assert_eq!(
        said(&ethernet(&[], 0x86DD, &ipv6(58, &unreachable))),
        "IP6 2001:db8::1 > 2001:db8::2: ICMP6, destination unreachable, unreachable port, 2001:db8::2 udp port 7, length 56"
    );
    let mut solicit = vec![135, 0, 0, 0, 0, 0, 0, 0];
    solicit.extend([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(
        said(&ethernet(&[], 0x86DD, &ipv6(58, &solicit))),
        "IP6 2001:db8::1 > 2001:db8::2: ICMP6, neighbor solicitation, who has fe80::1, length 24"
    );
    let mut arp = vec![
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];
    assert_eq!(
        said(&ethernet(&[], 0x0806, &arp)),
        "ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28"
    );
    arp[7] = 2;
    assert_eq!(
        said(&ethernet(&[], 0x0806, &arp)),
        "ARP, Reply 10.0.0.1 is-at 02:00:00:00:00:01, length 28"
    );
    assert_eq!(said(&ethernet(&[], 0x0806, &arp[..20])), "ARP, [|arp], length 20");
}

#[test]
fn what_is_no_ip_or_not_whole() {
    assert_eq!(
        said(&ethernet(&[], 0x88CC, &[0; 46])),
        "02:00:00:00:00:01 > 02:00:00:00:00:02, LLDP, length 46"
    );
    assert_eq!(
        said(&ethernet(&[], 0x88B5, &[0; 46])),
        "02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype 0x88b5, length 46"
    );
    assert_eq!(
        said(&ethernet(&[], 38, &[0x42; 46])),
        "02:00:00:00:00:01 > 02:00:00:00:00:02, 802.3, length 46"
    );
    assert_eq!(said(&[1, 2, 3]), "truncated, length 3");
    assert_eq!(
        said(&ethernet(&[], 0x0800, &[0x43; 20])),
        "IP, malformed header, length 34"
    );
    assert_eq!(
        said(&ethernet(&[], 0x0800, &ipv4(132, 0, &[0, 1, 0, 2]))),
        "IP 10.0.0.1.1 > 10.0.0.2.2: SCTP, length 4"
    );
    assert_eq!(
        said(&ethernet(&[], 0x0800, &ipv4(200, 0, &[0; 4]))),
        "IP 10.0.0.1 > 10.0.0.2: ip-proto-200, length 4"
    );
}

/// What a card cuts or a kernel has joined is captured with a length of 0: it is as long as its frame, also where only its
/// beginning was captured, behind tags, and on every kind of link.
#[test]
fn ipv4_without_a_length_is_as_long_as_its_frame() {
    let mut segment = vec![
        3, 232, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0, 100, 0, 0, 0, 0,
    ];
    segment.resize(20 + 3000, 7);
    let mut whole = ipv4(6, 0, &segment);
    whole[2..4].fill(0);
    let told = "IP 10.0.0.1.1000 > 10.0.0.2.80: Flags [P.], seq 1:3001, ack 2, win 100, length 3000";
    assert_eq!(said(&ethernet(&[], 0x0800, &whole)), told);
    let tagged = said(&ethernet(&[0x81, 0, 0, 5], 0x0800, &whole));
    assert_eq!(tagged.strip_prefix("vlan 5, p 0, "), Some(told));
    assert_eq!(said_of(LinkType::Raw, &whole), told);
    let frame = ethernet(&[], 0x0800, &whole);
    let interface = interface(LinkType::Ethernet);
    let mut cut = packet(&interface, &frame[..96], Some(0));
    cut.original_len = frame.len() as u32;
    assert!(line(Show::default(), &cut).contains(told));
    // What has no room for its header, or another version, is none for all that.
    let malformed = |bytes: &[u8]| said(&ethernet(&[], 0x0800, bytes)).contains("malformed");
    let mut six = whole.clone();
    six[0] = 0x65;
    assert!(malformed(&six));
    whole[0] = 0x44;
    assert!(malformed(&whole));
    assert!(said(&ethernet(&[], 0x86DD, &six)).contains("IP6"));
}

#[test]
fn what_is_asked_for_stands_before() {
    let mut told = interface(LinkType::Ethernet);
    told.resolution = capture::input::Resolution::NANOSECOND;
    let frame = ethernet(
        &[],
        0x0800,
        &between([1, 2, 3, 4], [255, 0, 99, 100], 47, 0, &[0; 6]),
    );
    let mut packet = packet(&told, &frame, Some(3_600_000_000_007));
    packet.direction = Some(Direction::In);
    packet.original_len = 1000;
    packet.interface_count = 2;
    assert_eq!(
        line(Show { ethernet: true }, &packet),
        "01:00:00.000000007 eth0 In 02:00:00:00:00:01 > 02:00:00:00:00:02, length 1000: IP 1.2.3.4 > 255.0.99.100: GRE, length 6\n"
    );
}

/// A comment is anybody's: nothing in it gets through but plain signs, and not without end.
#[test]
fn comments_are_made_plain() {
    let interface = interface(LinkType::Ethernet);
    let frame = ethernet(&[], 0x0800, &ipv4(17, 0, &udp(5000, 7, 30)));
    let mut packet = packet(&interface, &frame, Some(0));
    packet.comment = Some(b"denied by \"edge\".rules:1\n\x1b[2J\xE2\x80\xAE\xFF\\");
    let plain = "denied by \"edge\".rules:1??[2J??\\";
    assert_eq!(
        line(Show::default(), &packet),
        format!("00:00:00.000000 IP 10.0.0.1.5000 > 10.0.0.2.7: UDP, length 30 # {plain}\n")
    );
    let object: serde_json::Value = serde_json::from_str(&as_json(&packet)).unwrap();
    assert_eq!(object["comment"], plain);
    let long = [b'x'; 5000];
    packet.comment = Some(&long);
    let said = line(Show::default(), &packet);
    assert!(said.ends_with("xxx...\n") && said.len() < 1200, "{said}");
}

fn as_json(packet: &Packet<'_>) -> String {
    let mut text = Text::default();
    json(&mut text, &mut Clock::new(TimeFormat::Iso, true), packet);
    String::from_utf8(text.as_bytes().to_vec()).unwrap()
}

#[test]
fn a_packet_for_scripts() {
    let mut told = interface(LinkType::Ethernet);
    told.name = "\"quoted\\\" eth".into();
    let frame = ethernet(&[0x81, 0, 0, 7], 0x0800, &ipv4(6, 0, &tcp(0x12, &[], b"xyz")));
    let mut packet = packet(&told, &frame, Some(1_767_366_245_678_901_234));
    packet.dropped = Some(3);
    packet.queue = Some(1);
    packet.direction = Some(Direction::Out);
    let object: serde_json::Value = serde_json::from_str(&as_json(&packet)).unwrap();
    assert_eq!(
        object,
        serde_json::json!({
            "time": "2026-01-02T15:04:05.678901234Z", "interface": told.name, "length": 61, "captured": 61,
            "direction": "out", "queue": 1, "dropped_before": 3,
            "mac_source": "02:00:00:00:00:01", "mac_destination": "02:00:00:00:00:02", "vlans": [7],
            "network": "ipv4", "source": "10.0.0.1", "destination": "10.0.0.2",
            "protocol": 6, "protocol_name": "TCP", "source_port": 1000, "destination_port": 80, "payload": 23,
            "tcp": {"flags": "S.", "seq": 10, "ack": 20, "window": 256},
        })
    );
}

proptest! {
    /// No byte of a packet gets through as it is.
    #[test]
    fn any_bytes_are_one_plain_line(
        mut data in vec(any::<u8>(), 0..120),
        link in 0..ANY.len(),
        head in 0..6_usize,
        time_ns in prop::option::of(any::<i64>()),
        original_len: u32,
        comment in prop::option::of(vec(any::<u8>(), 0..40)),
    ) {
        // Often the beginning of something that goes on.
        let heads = [
            Vec::new(),
            ethernet(&[], 0x0800, &[0x45]),
            ethernet(&[], 0x86DD, &ipv6(58, &[])),
            ethernet(&[], 0x0800, &ipv4(6, 0, &[0; 12])),
            ethernet(&[], 0x0800, &ipv4(1, 0, &[3])),
            ethernet(&[0x81, 0], 0x0806, &[]),
        ];
        data.splice(0..0, heads[head].iter().copied());
        let interface = interface(ANY[link]);
        let mut packet = packet(&interface, &data, time_ns);
        packet.original_len = original_len;
        packet.interface_count = 2;
        packet.comment = comment.as_deref();
        let line = line(Show { ethernet: true }, &packet);
        prop_assert!(line.ends_with('\n') && line.lines().count() == 1);
        prop_assert!(line.trim_end_matches('\n').chars().all(|c| (' '..='~').contains(&c)), "{line:?}");
        let object = as_json(&packet);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&object).unwrap().is_object());
        prop_assert_eq!(object.lines().count(), 1);
    }
}
