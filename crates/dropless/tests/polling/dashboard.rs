//! The Grafana dashboard: whole, and asking only for what runs serve.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::support::prometheus::{prometheus, query, series};
use crate::support::served::{scraped, serve};
use crate::support::{Need, require, until};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);
/// What Grafana puts in the place of its own variables.
const INSTANCE: &str = "$instance";
const INTERVAL: &str = "$__rate_interval";
/// Grafana's grid has so many columns.
const COLUMNS: u64 = 24;

fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/dropless.json");
    let text = std::fs::read_to_string(path).expect("the file");
    serde_json::from_str(&text).expect("JSON")
}

/// What a panel asks for: the expression, and the labels that its legend names.
struct Question {
    panel: String,
    expression: String,
    labels: Vec<String>,
}

fn questions(dashboard: &Value) -> Vec<Question> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().expect("what it asks for");
        targets.iter().map(move |target| (panel, target))
    });
    let question = |(panel, target): (&Value, &Value)| Question {
        panel: panel["title"].as_str().expect("a title").to_owned(),
        expression: target["expr"].as_str().expect("an expression").to_owned(),
        labels: target["legendFormat"]
            .as_str()
            .expect("a legend")
            .split("{{")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once("}}")?.0.trim().to_owned()))
            .collect(),
    };
    targets.map(question).collect()
}

/// What its import needs: Grafana takes almost anything, and shows nothing.
#[test]
fn the_dashboard_is_whole() {
    let dashboard = dashboard();
    assert!(
        dashboard["schemaVersion"].as_u64() >= Some(36),
        "data sources are objects since then"
    );
    // An id would overwrite the dashboard that has it where it is imported.
    assert!(dashboard["id"].is_null());
    assert!(dashboard["uid"].is_string() && dashboard["title"].is_string());
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let variable = |name: &str| variables.iter().find(|variable| variable["name"] == name);
    let chosen = variable("datasource").expect("a data source to choose");
    assert_eq!(
        (&chosen["type"], &chosen["query"]),
        (&json!("datasource"), &json!("prometheus"))
    );
    let instance = variable("instance").expect("a run to choose");
    assert_eq!(instance["datasource"], source);
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        assert_eq!(panel["datasource"], source, "{panel}");
        for target in panel["targets"].as_array().expect("what it asks for") {
            assert_eq!(target["datasource"], source, "{target}");
            // What is said of now is not that of a run that has gone, or of a phase that is over.
            let is_of_now = (&target["instant"], &target["range"]) == (&json!(true), &json!(false));
            assert_eq!(is_of_now, panel["type"] == "stat", "{panel}");
        }
        let at = |name: &str| panel["gridPos"][name].as_u64().expect("a place");
        assert!(
            at("x") + at("w") <= COLUMNS && at("w") > 0 && at("h") > 0,
            "{panel}"
        );
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "two panels are at {x}, {y}: {panel}");
            }
        }
    }
}

/// Every expression, asked of a Prometheus that scrapes a run, gives something with the labels that are shown.
#[test]
fn a_run_serves_what_every_panel_asks_for() {
    let Some(lab) = require(&[Need::Tool("prometheus")]) else {
        return;
    };
    let arguments = [
        "send",
        "--port",
        "ring",
        "--no-huge",
        "--no-doctor",
        "--rate",
        "2kpps",
        "--duration",
        "10min",
        "--drain",
        "500ms",
        "--fault",
        "drop=1%,duplicate=1%",
    ];
    let (running, address) = serve(&lab, &arguments);
    let (server, own) = prometheus(&lab, address);
    // A rate takes two samples.
    let scrapes = "count_over_time(dropless_latency_seconds_count[1m])";
    let enough = || query(own, scrapes) >= Some(2.0) && scraped(address)["dropless_lost_packets_total"] > 0.0;
    assert!(until(LIMIT, enough), "{server:?} {running:?}");
    let questions = questions(&dashboard());
    assert!(questions.len() > 10);
    for question in questions {
        let Question {
            panel,
            expression,
            labels,
        } = question;
        let asked = expression.replace(INSTANCE, ".+").replace(INTERVAL, "1m");
        assert!(
            !asked.contains('$'),
            "{panel}: a variable that nobody knows in {expression}"
        );
        let answer = until(LIMIT, || {
            series(own, &asked).is_some_and(|series| !series.is_empty())
        });
        assert!(answer, "{panel}: nothing comes of {expression}");
        for one in series(own, &asked).expect("an answer") {
            for label in &labels {
                assert!(
                    one["metric"][label].is_string(),
                    "{panel}: no {label} in {one} of {expression}"
                );
            }
        }
    }
    let names = "group by (instance) (dropless_build_info)";
    assert_eq!(
        series(own, names).map(|series| series.len()),
        Some(1),
        "the runs to choose from"
    );
    drop((running, server));
}
