//! What runs were not made alike in: the settings of their plans, and the facts of their machines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::load::Loaded;

/// What a run draws or finds for itself, and what a file says of itself.
const OWN: [&str; 7] = [
    "version",
    "label",
    "host build.command_line",
    "seed",
    "host memory_available_bytes",
    "host hugepages",
    "host pid",
];

/// A setting that is not the same in all runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name in `plan.json`, or `host` and its name in `host.json`.
    pub name: String,
    /// Of each run; `-` where it is not set.
    pub values: Vec<String>,
}

impl Setting {
    /// Its name in words.
    pub fn label(&self) -> String {
        self.name.trim_end_matches("_ns").replace('_', " ")
    }

    /// Its value of the run with this index, as it is asked for.
    pub fn value(&self, run: usize) -> String {
        let value = &self.values[run];
        match self.name.as_str() {
            "sample" if value != "-" => format!("1/{value}"),
            _ => value.clone(),
        }
    }
}

/// The settings that differ among the runs that kept theirs; those of the plan first.
pub fn differing(runs: &[&Loaded]) -> Vec<Setting> {
    let mut settings = of(runs, "", |run| run.plan.as_ref());
    settings.extend(of(runs, "host ", |run| run.host.as_ref()));
    settings
}

fn of(runs: &[&Loaded], kind: &str, pick: fn(&Loaded) -> Option<&Value>) -> Vec<Setting> {
    // A run that did not keep its settings is none that differs.
    let all: Vec<Option<BTreeMap<String, String>>> = runs
        .iter()
        .map(|run| {
            let mut leaves = BTreeMap::new();
            flatten(pick(run)?, kind, &mut leaves);
            Some(leaves)
        })
        .collect();
    let kept: Vec<&BTreeMap<String, String>> = all.iter().flatten().collect();
    let names: BTreeSet<&String> = kept.iter().flat_map(|leaves| leaves.keys()).collect();
    let is_own = |name: &str| OWN.iter().any(|own| name.starts_with(own));
    let differs = |name: &String| kept.iter().any(|leaves| leaves.get(name) != kept[0].get(name));
    let value = |leaves: &Option<BTreeMap<String, String>>, name| {
        let value = leaves.as_ref().and_then(|leaves| leaves.get(name));
        value.map_or("-", String::as_str).to_owned()
    };
    names
        .into_iter()
        .filter(|name| !is_own(name) && differs(name))
        .map(|name| Setting {
            name: name.clone(),
            values: distinct(all.iter().map(|leaves| value(leaves, name)).collect()),
        })
        .collect()
}

/// Everything that is set below `value`: what is none, 0, off or empty is not.
fn flatten(value: &Value, name: &str, leaves: &mut BTreeMap<String, String>) {
    let below = |part: &str| {
        let dot = if name.is_empty() || name.ends_with(' ') {
            ""
        } else {
            "."
        };
        format!("{name}{dot}{part}")
    };
    match value {
        Value::Object(fields) => {
            // How long, where the share that it happens to is 0: it never happens.
            let is_idle = |field: &str| {
                let share = field.strip_suffix("_ns").and_then(|share| fields.get(share));
                share.and_then(Value::as_f64) == Some(0.0)
            };
            for (field, value) in fields.iter().filter(|(field, _)| !is_idle(field)) {
                flatten(value, &below(field), leaves);
            }
        }
        // The only stream is the stream.
        Value::Array(values) if values.len() == 1 => flatten(&values[0], name, leaves),
        Value::Array(values) if values.iter().any(Value::is_object) => {
            for (at, value) in values.iter().enumerate() {
                flatten(value, &below(&at.to_string()), leaves);
            }
        }
        Value::Array(values) => {
            let words: Vec<String> = values.iter().filter_map(|value| shown(value, name)).collect();
            if !words.is_empty() {
                leaves.insert(name.to_owned(), words.join(","));
            }
        }
        value => {
            if let Some(text) = shown(value, name) {
                leaves.insert(name.to_owned(), text);
            }
        }
    }
}

fn shown(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Number(number) if number.as_f64() != Some(0.0) => match number.as_f64() {
            Some(ns) if name.ends_with("_ns") => Some(crate::number::time(ns)),
            _ => Some(number.to_string()),
        },
        _ => None,
    }
}

/// Of values with many words, such as a kernel's command line, only those words that not all of them have.
fn distinct(values: Vec<String>) -> Vec<String> {
    let words = |value: &String| value.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = values.iter().map(words).collect();
    if all.iter().all(|words| words.len() < 4) {
        return values;
    }
    let own = |mine: &Vec<String>| {
        let mut own = mine.clone();
        own.retain(|word| !all.iter().all(|words| words.contains(word)));
        if own.is_empty() {
            "-".to_owned()
        } else {
            own.join(" ")
        }
    };
    all.iter().map(own).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    fn leaves(value: &Value) -> Vec<(String, String)> {
        let mut leaves = BTreeMap::new();
        flatten(value, "", &mut leaves);
        leaves.into_iter().collect()
    }

    #[test]
    fn only_what_is_set_is_a_setting() {
        let plan = json!({
            "rate": "10kpps", "fault": {"drop": 0.02, "limit": null, "delay": 0.0, "delay_ns": 1_000_000}, "tx_only": false, "force": true,
            "drain_ns": 2_000_000_000_u64, "streams": [{"size": "64", "vlans": [], "to_ports": [7, 8]}], "cores": "",
        });
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            leaves(&plan),
            [
                pair("drain_ns", "2.000 s"),
                pair("fault.drop", "0.02"),
                pair("force", "yes"),
                pair("rate", "10kpps"),
                pair("streams.size", "64"),
                pair("streams.to_ports", "7,8"),
            ]
        );
        let two = json!({"streams": [{"size": "64"}, {"size": "512"}]});
        assert_eq!(
            leaves(&two),
            [pair("streams.0.size", "64"), pair("streams.1.size", "512")]
        );
    }

    #[test]
    fn people_see_a_setting_as_they_wrote_it() {
        let shown = |name: &str, value: &str| {
            let setting = Setting {
                name: name.to_owned(),
                values: vec![value.to_owned(), "-".to_owned()],
            };
            (setting.label(), setting.value(0), setting.value(1))
        };
        let three = |name: &str, value: &str| (name.to_owned(), value.to_owned(), "-".to_owned());
        assert_eq!(shown("sample", "5"), three("sample", "1/5"));
        assert_eq!(shown("idle_exit_ns", "2.000 s"), three("idle exit", "2.000 s"));
        assert_eq!(shown("snap_len", "64"), three("snap len", "64"));
    }

    #[test]
    fn of_a_command_line_only_the_words_that_differ() {
        let lines = [
            "quiet ro panic=1 isolcpus=1",
            "quiet ro panic=1",
            "quiet ro panic=1 isolcpus=2 nohz",
        ];
        let lines = lines.map(str::to_owned).to_vec();
        assert_eq!(distinct(lines), ["isolcpus=1", "-", "isolcpus=2 nohz"]);
        let few = vec!["a b".to_owned(), "b c".to_owned()];
        assert_eq!(distinct(few.clone()), few);
    }
}
