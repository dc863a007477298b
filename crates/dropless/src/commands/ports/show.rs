//! The listing for people: one row a port, below it what it is, and what stands in its way.

use std::fmt::Write as _;

use host::{Carrier, CarrierKind, Link, Usable, Warning};
use report::style::Paint;
use report::table::{Cell, Table};
use report::wrap::{mends, paragraph, wrapped};
use report::{Style, number};

/// Columns that everything below a row is set in by.
const INDENT: usize = 6;
/// A longer URI has a line of its own: what one copies is never shortened.
const URI_MAX: usize = 26;
/// The sections and their titles, in the order of the listing.
const SECTIONS: [(CarrierKind, &str); 4] = [
    (CarrierKind::Pci, "PCI"),
    (CarrierKind::Vmbus, "VMBus"),
    (CarrierKind::Interface, "Interfaces"),
    (CarrierKind::Virtual, "Software"),
];

pub fn listing(carriers: &[Carrier], warnings: &[Warning], style: &Style) -> String {
    let mut text = String::new();
    for (kind, title) in SECTIONS {
        let of_kind: Vec<&Carrier> = carriers.iter().filter(|carrier| carrier.kind == kind).collect();
        if !of_kind.is_empty() {
            text.push_str(&section(title, &of_kind, style));
            text.push('\n');
        }
    }
    if !carriers
        .iter()
        .any(|carrier| matches!(carrier.kind, CarrierKind::Pci | CarrierKind::Vmbus))
    {
        let absent = "No PCI or VMBus network device: a NIC that DPDK drives itself would stand here.";
        text.push_str(&paragraph(absent, 0, style));
        text.push('\n');
    }
    if !warnings.is_empty() {
        text.push_str(&style.paint(Paint::Head, "This machine"));
        text.push('\n');
        for warning in warnings {
            text.push_str(&paragraph(&warning.text, 2, style));
            if let Some(fix) = &warning.fix {
                mends(&mut text, &fix.commands, fix.advice.as_deref(), style);
            }
        }
        text.push('\n');
    }
    text.push_str(&paragraph(&summary(carriers), 0, style));
    text
}

/// The rows of one sort, each followed by what is said about it.
fn section(title: &str, carriers: &[&Carrier], style: &Style) -> String {
    let mut table = Table::section(title, &["usable", "driver", ">NUMA", "link", ">queues"]);
    for carrier in carriers {
        let name = if carrier.uri.len() > URI_MAX {
            ""
        } else {
            &carrier.uri
        };
        let (word, paint) = match carrier.usable {
            Usable::Yes => ("yes", Paint::Good),
            Usable::Caution { .. } => ("with care", Paint::Warn),
            Usable::No { .. } => ("no", Paint::None),
        };
        table.item(
            name,
            [
                Cell::left(word).paint(paint),
                Cell::left(carrier.driver.clone().unwrap_or_else(|| "-".into())),
                Cell::right(carrier.numa_node.map_or("-".into(), |node| node.to_string())),
                Cell::left(carrier.link.map_or("-".into(), link)),
                Cell::right(
                    carrier
                        .queues
                        .map_or("-".into(), |queues| format!("{}+{}", queues.rx, queues.tx)),
                ),
            ],
        );
    }
    let mut rows = table.render_rows(style).into_iter();
    let mut text = rows.next().unwrap_or_default();
    for (carrier, row) in carriers.iter().zip(rows) {
        if carrier.uri.len() > URI_MAX {
            let _ = writeln!(text, "  {}", carrier.uri);
        }
        text.push_str(&row);
        text.push_str(&details(carrier, style));
    }
    text
}

fn link(link: Link) -> String {
    match (link.up, link.speed_mbps) {
        (false, _) => "down".into(),
        (true, None) => "up".into(),
        (true, Some(mbps)) => format!("up {}", number::link_speed(mbps)),
    }
}

/// What it is, what this machine is reached by through it, what stands in its way, and what changes that.
fn details(carrier: &Carrier, style: &Style) -> String {
    let mut text = String::new();
    let mut about = vec![carrier.description.clone()];
    about.extend(carrier.mac.map(|mac| mac.to_string()));
    about.extend(carrier.addresses.iter().map(ToString::to_string));
    about.retain(|part| !part.is_empty());
    wrapped(&mut text, &about.join(", "), INDENT, Paint::Dim, style);
    let why = match &carrier.usable {
        Usable::Yes => "",
        Usable::Caution { why } | Usable::No { why, .. } => why,
    };
    // The reason usually says it already.
    for role in carrier
        .roles
        .iter()
        .filter(|role| !why.contains(&role.to_string()))
    {
        wrapped(
            &mut text,
            &format!("it carries {role} of this machine"),
            INDENT,
            Paint::Warn,
            style,
        );
    }
    let paint = if matches!(carrier.usable, Usable::Caution { .. }) {
        Paint::Warn
    } else {
        Paint::None
    };
    wrapped(&mut text, why, INDENT, paint, style);
    if let Usable::No { fix, .. } = &carrier.usable {
        mends(&mut text, &fix.commands, fix.advice.as_deref(), style);
    }
    text
}

/// The last line: how many of each, and what always works.
fn summary(carriers: &[Carrier]) -> String {
    let count = |pick: fn(&Usable) -> bool| carriers.iter().filter(|carrier| pick(&carrier.usable)).count();
    format!(
        "{} usable now, {} with care, {} not. Capital words in a URI are yours to fill in.",
        count(|usable| matches!(usable, Usable::Yes)),
        count(|usable| matches!(usable, Usable::Caution { .. })),
        count(|usable| matches!(usable, Usable::No { .. })),
    )
}
