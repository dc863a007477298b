//! Debian's Prometheus, which scrapes a run.

use std::net::{SocketAddr, TcpListener};

use serde_json::Value;

use super::served::get;
use super::{Lab, Running};

/// A Prometheus that scrapes `address`, and where it is asked.
pub fn prometheus(lab: &Lab, address: SocketAddr) -> (Running, SocketAddr) {
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: dropless\n    static_configs: [{{targets: ['{address}']}}]\n"
    );
    std::fs::write(lab.path("prometheus.yml"), config).expect("writing");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let own = free.expect("a free port");
    let script = format!(
        "exec prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address={own} --log.level=warn"
    );
    (lab.shell(&script), own)
}

/// The series that an instant query gives; none where nobody answers, or it is no query.
pub fn series(prometheus: SocketAddr, expression: &str) -> Option<Vec<Value>> {
    let quote = |text: String, byte: u8| text + &format!("%{byte:02X}");
    let quoted = expression.bytes().fold(String::new(), quote);
    let (_, body) = get(prometheus, &format!("/api/v1/query?query={quoted}"))?;
    let answer: Value = serde_json::from_str(&body).ok()?;
    assert_eq!(answer["status"], "success", "{expression}: {answer}");
    answer["data"]["result"].as_array().cloned()
}

/// The value of an instant query; none while there is no such sample.
pub fn query(prometheus: SocketAddr, expression: &str) -> Option<f64> {
    let series = series(prometheus, expression)?;
    series.first()?["value"][1].as_str()?.parse().ok()
}
