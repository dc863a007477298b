//! What was measured, in a strip below the verdict: how the run was asked for, and with which versions.

use maud::{Markup, html};
use serde_json::Value;

use crate::kind::Tile;
use crate::load::Loaded;
use crate::number::round;

/// The strip of one run; nothing where neither its plan nor its machine is known.
pub fn strip(run: &Loaded) -> Markup {
    let host = |place: &str| text(run.host.as_ref()?.pointer(place)?);
    let plan = |place: &str| run.plan.as_ref().and_then(|plan| plan.pointer(place));
    let versions = [
        ("dropless", host("/build/version")),
        ("DPDK", host("/build/dpdk")),
        ("Linux", host("/kernel")),
    ];
    let versions = versions
        .into_iter()
        .filter_map(|(name, version)| Some(format!("{name} {}", version?)));
    let versions = versions.collect::<Vec<_>>().join(", ");
    let command = host("/build/command_line");
    let facts = Tile::known([
        ("frames", frames(plan("/streams"))),
        ("rate asked", plan("/rate").and_then(text)),
        ("faults", plan("/fault").and_then(faults)),
        ("with", Some(versions).filter(|versions| !versions.is_empty())),
    ]);
    html! {
        @if command.is_some() || !facts.is_empty() {
            dl.made {
                @if let Some(line) = command { div { dt { "command" } dd { code { (line) } } } }
                @for fact in &facts { (fact) }
            }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// The sizes of all streams, each once, in bytes with FCS.
fn frames(streams: Option<&Value>) -> Option<String> {
    let mut sizes: Vec<String> = Vec::new();
    for stream in streams?.as_array()? {
        let size = stream.get("size").and_then(text)?;
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    // Several are no number of thousands; `imix` is no number.
    let sizes = sizes.join(" and ").replace(',', ", ");
    let is_number = sizes.starts_with(|first: char| first.is_ascii_digit());
    let unit = if is_number { " bytes" } else { "" };
    (!sizes.is_empty()).then(|| sizes + unit)
}

/// What was done to packets on purpose.
fn faults(spec: &Value) -> Option<String> {
    let mut told = Vec::new();
    for (name, value) in spec.as_object()? {
        let share = || value.as_f64().filter(|share| *share > 0.0);
        match name.as_str() {
            "delay_ns" => {}
            "delay" => told.extend(share().map(|share| {
                let by = spec["delay_ns"].as_f64().unwrap_or(0.0);
                format!("delay {} by {}", percent(share), round(&crate::number::time(by)))
            })),
            "limit" => told.extend(
                value["pps"]
                    .as_f64()
                    .map(|pps| format!("limit {}", round(&crate::number::pps(pps)))),
            ),
            name => told.extend(share().map(|share| format!("{name} {}", percent(share)))),
        }
    }
    (!told.is_empty()).then(|| told.join(", "))
}

fn percent(share: f64) -> String {
    // Without the tail of a binary fraction.
    let percent = (share * 1e10).round() / 1e8;
    format!("{percent} %")
}
