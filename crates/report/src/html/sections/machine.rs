//! The machine: its facts, what the doctor found, ports, and the notes of the run.

use measure::PortSummary;
use serde_json::Value;

use super::super::element::{Cell, bad, details, section, table};
use super::list;
use crate::load::Loaded;
use crate::number::count;

/// What stands below everything else of a run.
pub fn sections(run: &Loaded, named: &str) -> String {
    let mut inner = String::new();
    let notes: Vec<String> = run.result.notes().iter().map(ToString::to_string).collect();
    inner += &list("Notes", &notes);
    inner += &findings(run.findings.as_ref());
    inner += &counters(run.result.ports());
    if let Some(host) = &run.host {
        let mut rows = Vec::new();
        facts(host, String::new(), &mut rows);
        inner += &details(
            "Facts about the machine",
            &table("host.json", &["fact", "value"], &rows),
        );
    }
    section(&format!("The machine{named}"), &inner)
}

fn counters(ports: &[PortSummary]) -> String {
    if ports.is_empty() {
        return String::new();
    }
    let row = |port: &PortSummary| {
        vec![
            Cell::Name(port.uri.clone()),
            Cell::Text(port.driver.clone()),
            Cell::Number(count(port.tx_packets)),
            Cell::Number(count(port.rx_packets)),
            bad(port.rx_missed),
            bad(port.rx_nombuf),
            bad(port.rx_errors),
            bad(port.tx_errors),
        ]
    };
    let head = [
        "port",
        "driver",
        "sent",
        "received",
        "missed",
        "no buffer",
        "rx errors",
        "tx errors",
    ];
    table(
        "Ports and their own counters",
        &head,
        &ports.iter().map(row).collect::<Vec<_>>(),
    )
}

/// What the doctor said before the start; what is well is not repeated.
fn findings(found: Option<&Value>) -> String {
    let Some(all) = found
        .and_then(|found| found.get("findings"))
        .and_then(Value::as_array)
    else {
        return String::new();
    };
    let text = |finding: &Value, key: &str| {
        finding
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|finding| {
            let verdict = text(finding, "verdict");
            let shown = if verdict == "bad" {
                Cell::Bad(verdict)
            } else {
                Cell::Text(verdict)
            };
            vec![
                Cell::Name(text(finding, "check")),
                shown,
                Cell::Text(text(finding, "says")),
                Cell::Text(text(finding, "costs")),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "<p class=note>The doctor found nothing that would cost packets.</p>\n".to_owned();
    }
    table(
        "What the doctor found before the start; dropless doctor tells what mends it",
        &["check", "", "finding", "costs"],
        &rows,
    )
}

/// Every leaf of a JSON value with the way to it.
fn facts(value: &Value, name: String, rows: &mut Vec<Vec<Cell>>) {
    let below = |key: &str| {
        if name.is_empty() {
            key.replace('_', " ")
        } else {
            format!("{name} {}", key.replace('_', " "))
        }
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, field)| facts(field, below(key), rows)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| facts(item, below(&at.to_string()), rows));
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(plain).collect();
            rows.push(vec![Cell::Name(name), Cell::Text(words.join(", "))]);
        }
        leaf => rows.push(vec![Cell::Name(name), Cell::Text(plain(leaf))]),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
