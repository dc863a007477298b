//! The Grafana dashboard: whole, and asking only for what runs serve.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails the test by panicking"
)]

mod support;

use std::path::Path;

use serde_json::Value;
use support::require;
use support::served::{lossy, scraped};

#[test]
fn the_dashboard_asks_only_for_what_is_exported() {
    let Some(lab) = require(&[]) else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/dropless.json");
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON");
    let mut wanted = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = target["expr"].as_str().expect("an expression");
            let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            wanted.extend(
                names
                    .filter(|name| name.starts_with("dropless_"))
                    .map(String::from),
            );
        }
    }
    assert!(wanted.len() > 10, "{wanted:?}");
    let (running, address) = lossy(&lab);
    let exported = scraped(address);
    for name in wanted {
        let known = |sample: &String| sample.split('{').next() == Some(&name);
        assert!(exported.keys().any(known), "{name} is not exported");
    }
    drop(running);
}
