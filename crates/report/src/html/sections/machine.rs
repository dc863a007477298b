//! The machine: its facts, what the doctor found, ports, and the notes of the run.

use maud::{Markup, html};
use serde_json::Value;

use super::super::element::{details, section};
use super::list;
use crate::load::Loaded;
use crate::machine;
use crate::sheet::Sheet;
use crate::style::Paint;
use crate::table::Cell;

/// What stands below everything else of a run.
pub fn sections(run: &Loaded, named: &str) -> Markup {
    let notes: Vec<String> = run.result.notes().iter().map(ToString::to_string).collect();
    let inner = html! {
        (list("Notes", &notes))
        (findings(run.findings.as_ref()))
        (machine::ports(run.result.ports()).html("Ports and their own counters"))
        @if let Some(host) = &run.host { (details("Facts about the machine", &as_table(host))) }
    };
    section(&format!("The machine{named}"), &inner)
}

fn as_table(host: &Value) -> Markup {
    let mut leaves = Vec::new();
    facts(host, String::new(), &mut leaves);
    Sheet::of(leaves)
        .always()
        .name("fact", |(name, _)| name.clone())
        .words("value", |(_, value)| value.clone())
        .html("host.json")
}

/// What the doctor said before the start; what is well is not repeated.
fn findings(found: Option<&Value>) -> Markup {
    let Some(all) = found
        .and_then(|found| found.get("findings"))
        .and_then(Value::as_array)
    else {
        return Markup::default();
    };
    if all.is_empty() {
        return html! { p.note { "The doctor found nothing that would cost packets." } };
    }
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    Sheet::of(all)
        .name("check", |finding| text(finding, "check"))
        .cell("", |finding| match text(finding, "verdict") {
            verdict if verdict == "bad" => Cell::right(verdict).paint(Paint::Bad),
            verdict => Cell::left(verdict),
        })
        .words("finding", |finding| text(finding, "says"))
        .words("costs", |finding| text(finding, "costs"))
        .html("What the doctor found before the start; dropless doctor tells what mends it")
}

/// Every leaf of a JSON value with the way to it.
fn facts(value: &Value, name: String, leaves: &mut Vec<(String, String)>) {
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
            .for_each(|(key, field)| facts(field, below(key), leaves)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| facts(item, below(&at.to_string()), leaves));
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(plain).collect();
            leaves.push((name, words.join(", ")));
        }
        leaf => leaves.push((name, plain(leaf))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
