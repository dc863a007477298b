//! Names that nft and iptables print for numbers.

/// IP protocols, as in `/etc/protocols`; all others as numbers.
pub fn protocol(name: &str) -> Option<u8> {
    Some(match name {
        "icmp" => 1,
        "igmp" => 2,
        "ipencap" => 4,
        "tcp" => 6,
        "egp" => 8,
        "udp" => 17,
        "dccp" => 33,
        "ipv6" => 41,
        "gre" => 47,
        "esp" => 50,
        "ah" => 51,
        "ipv6-icmp" | "icmpv6" => 58,
        "ospf" => 89,
        "pim" => 103,
        "comp" | "ipcomp" => 108,
        "vrrp" => 112,
        "l2tp" => 115,
        "sctp" => 132,
        "udplite" => 136,
        _ => return name.parse().ok(),
    })
}

/// Types of ICMP (RFC 792) or `ICMPv6` (RFC 4443, 4861, 3810) by the names that nft prints.
#[allow(clippy::match_same_arms, reason = "a table of both families")]
pub fn icmp_type(name: &str, is_v6: bool) -> Option<u8> {
    Some(match (name, is_v6) {
        ("echo-reply", false) => 0,
        ("destination-unreachable", false) => 3,
        ("source-quench", false) => 4,
        ("redirect", false) => 5,
        ("echo-request", false) => 8,
        ("router-advertisement", false) => 9,
        ("router-solicitation", false) => 10,
        ("time-exceeded", false) => 11,
        ("parameter-problem", false) => 12,
        ("timestamp-request", false) => 13,
        ("timestamp-reply", false) => 14,
        ("info-request", false) => 15,
        ("info-reply", false) => 16,
        ("address-mask-request", false) => 17,
        ("address-mask-reply", false) => 18,
        ("destination-unreachable", true) => 1,
        ("packet-too-big", true) => 2,
        ("time-exceeded", true) => 3,
        ("parameter-problem", true) => 4,
        ("echo-request", true) => 128,
        ("echo-reply", true) => 129,
        ("mld-listener-query", true) => 130,
        ("mld-listener-report", true) => 131,
        ("mld-listener-done" | "mld-listener-reduction", true) => 132,
        ("nd-router-solicit", true) => 133,
        ("nd-router-advert", true) => 134,
        ("nd-neighbor-solicit", true) => 135,
        ("nd-neighbor-advert", true) => 136,
        ("nd-redirect", true) => 137,
        ("router-renumbering", true) => 138,
        ("ind-neighbor-solicit", true) => 141,
        ("ind-neighbor-advert", true) => 142,
        ("mld2-listener-report", true) => 143,
        _ => return None,
    })
}
