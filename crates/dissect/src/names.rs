//! The few names that a line has for numbers.

/// Of a protocol over IP, by its number (IANA).
pub fn protocol(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPIP",
        6 => "TCP",
        17 => "UDP",
        41 => "IPv6",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMP6",
        59 => "no next header",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => return None,
    })
}

/// Of an ether type (IEEE).
pub fn ether_type(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x0842 => "Wake-on-LAN",
        0x8100 => "802.1Q",
        0x86DD => "IPv6",
        0x8808 => "Pause",
        0x8809 => "LACP",
        0x8847 | 0x8848 => "MPLS",
        0x8863 | 0x8864 => "PPPoE",
        0x888E => "EAPOL",
        0x88A8 => "802.1Q-QinQ",
        0x88CC => "LLDP",
        0x88E5 => "MACsec",
        0x88F7 => "PTP",
        _ => return None,
    })
}
