//! Flows: who talked to whom, the largest first.

use std::fmt::Write as _;
use std::net::IpAddr;

use maud::{Markup, html};
use measure::{FlowSummary, FlowsSummary};

use crate::number::{count, counted, time};
use crate::sheet::Sheet;
use crate::style::Style;

/// Flows shown in a terminal.
const IN_TERMINAL: usize = 10;
/// From this width on there is room for when it was.
const WIDE: usize = 110;

/// The largest in a terminal, and what was forgotten.
pub fn terminal(flows: &FlowsSummary, style: &Style) -> String {
    let shown = &flows.by_bytes[..flows.by_bytes.len().min(IN_TERMINAL)];
    format!(
        "{}    of {}\n",
        table(shown).terminal("Flows", style),
        words(flows)
    )
}

/// The same as tables of a page.
pub fn html(flows: &FlowsSummary) -> Markup {
    html! {
        (table(&flows.by_bytes).html(&format!("Those with most bytes, of {}", words(flows))))
        @if flows.by_packets != flows.by_bytes {
            (table(&flows.by_packets).html("Those with most packets"))
        }
    }
}

/// What the largest are a part of.
fn words(flows: &FlowsSummary) -> String {
    let mut words = format!("{}; all are in flows.csv", counted(flows.flows, "flow"));
    if flows.evictions > 0 {
        // Writing to a string does not fail.
        let _ = write!(
            words,
            "; for want of room some were forgotten {}, with {} (--flows gives more)",
            counted(flows.evictions, "time"),
            counted(flows.evicted_packets, "packet")
        );
    }
    if flows.other_packets > 0 {
        let _ = write!(words, "; {} of no flow", counted(flows.other_packets, "packet"));
    }
    words
}

fn table(flows: &[FlowSummary]) -> Sheet<&FlowSummary> {
    Sheet::of(flows)
        .name("from", |flow| end(flow.source, flow.ports.map(|ports| ports.0)))
        .words("to", |flow| {
            end(flow.destination, flow.ports.map(|ports| ports.1))
        })
        .words("protocol", |flow| {
            let number = || flow.protocol.to_string();
            flow.protocol_name.clone().unwrap_or_else(number)
        })
        .words("came by", |flow| format!("port {}", flow.port))
        .optional("VLAN", |flow| flow.vlan.map(|vlan| vlan.to_string()))
        .when(flows.iter().any(|flow| flow.vlan.is_some()))
        .number("packets", |flow| count(flow.packets))
        .number("bytes", |flow| count(flow.bytes))
        .number("lasted", |flow| time((flow.last_s - flow.first_s) * 1e9))
        .at_width(WIDE)
}

fn end(address: IpAddr, port: Option<u16>) -> String {
    match (address, port) {
        (IpAddr::V6(address), Some(port)) => format!("[{address}]:{port}"),
        (address, Some(port)) => format!("{address}:{port}"),
        (address, None) => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: &str, ports: Option<(u16, u16)>, packets: u64) -> FlowSummary {
        FlowSummary {
            port: 0,
            queue: 0,
            source: source.parse().expect("an address"),
            destination: "2001:db8::2".parse().expect("an address"),
            protocol: 17,
            protocol_name: Some("UDP".into()),
            ports,
            vlan: None,
            packets,
            bytes: packets * 60,
            first_s: 0.0,
            last_s: 1.5,
        }
    }

    #[test]
    fn what_the_largest_are_a_part_of_is_said_below_them() {
        let flows = FlowsSummary {
            flows: 1000,
            evictions: 7,
            evicted_packets: 9,
            other_packets: 1,
            by_bytes: vec![
                flow("2001:db8::1", Some((4000, 53)), 5),
                flow("198.18.0.1", None, 3),
            ],
            ..FlowsSummary::default()
        };
        let text = terminal(&flows, &Style::plain());
        assert!(text.contains("[2001:db8::1]:4000  [2001:db8::2]:53"), "{text}");
        assert!(text.contains("198.18.0.1 "), "{text}");
        assert!(
            text.contains("of 1,000 flows; all are in flows.csv; for want of room some were forgotten 7 times, with 9 packets"),
            "{text}"
        );
        assert!(text.trim_end().ends_with("1 packet of no flow"), "{text}");
    }
}
