//! What Wireshark can capture from: runs under way, and interfaces of the kernel.

use anyhow::{Context, Result};
use host::{CarrierKind, Sys, Usable};
use report::published::{Found, Place};

use crate::run::tap::can_be_looked_into;

/// Begins the names of all our interfaces.
const PREFIX: &str = "dropless-";
/// The kinds of port that take an interface of the kernel.
const KINDS: [&str; 2] = ["packet", "xdp"];

/// An interface of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The run of a process.
    Run(u32),
    /// A port, by its URI.
    Port(String),
}

impl Source {
    /// What a name of [`list`] means.
    pub fn parse(name: &str) -> Result<Self> {
        let rest = name.strip_prefix(PREFIX);
        let run = |rest: &str| rest.parse().ok().map(Self::Run);
        let port = |rest: &str| {
            let (kind, interface) = rest.split_once('-')?;
            let is_whole = KINDS.contains(&kind) && !interface.is_empty();
            is_whole.then(|| Self::Port(format!("{kind}:{interface}")))
        };
        let source = rest.and_then(|rest| run(rest).or_else(|| port(rest)));
        source.with_context(|| format!("no interface of dropless is called '{name}'; tshark -D lists them"))
    }

    /// The options that Wireshark shows.
    pub fn options(&self) -> String {
        let mut lines = vec![
            "arg {number=0}{call=--snaplen}{display=Bytes kept of each packet}{type=unsigned}{default=262144}{range=14,262144}\n".to_owned(),
        ];
        if matches!(self, Self::Run(_)) {
            lines.push(
                "arg {number=1}{call=--direction}{display=Direction}{type=selector}{default=both}\n".into(),
            );
            for (value, display) in [("both", "both"), ("in", "received"), ("out", "sent")] {
                let default = value == "both";
                lines.push(format!(
                    "value {{arg=1}}{{value={value}}}{{display={display}}}{{default={default}}}\n"
                ));
            }
        }
        lines.concat()
    }
}

/// All that can be captured from now.
pub fn list() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut lines = vec![format!("extcap {{version={version}}}{{display=dropless}}\n")];
    let mut add = |value: String, display: &str| {
        let display = plain(display);
        lines.push(format!(
            "interface {{value={PREFIX}{value}}}{{display={display}}}\n"
        ));
    };
    for found in Place::visible().into_iter().flat_map(|place| place.list()) {
        if let Some(display) = of_run(&found) {
            add(found.process.to_string(), &display);
        }
    }
    for carrier in host::discover(&Sys::live()) {
        if carrier.kind == CarrierKind::Interface && !matches!(carrier.usable, Usable::No { .. }) {
            // Not `xdp`, which takes what arrives away from the kernel: whoever wants that names it.
            let name = &carrier.name;
            add(format!("packet-{name}"), &format!("dropless, packet:{name}"));
        }
    }
    lines.concat()
}

/// What is shown of a run that can be looked into.
fn of_run(found: &Found) -> Option<String> {
    let state = found
        .state
        .as_ref()
        .ok()
        .filter(|state| found.alive && state.ended.is_none())?;
    let command = state.process.command.as_str();
    let ports: Vec<&str> = state.ports.iter().map(|port| port.uri.as_str()).collect();
    let place = match ports[..] {
        // It is waited for.
        [] => ", which starts".to_owned(),
        _ => format!(" on {}", ports.join(" ")),
    };
    can_be_looked_into(state).then(|| format!("dropless {command}{place} (process {})", found.process))
}

/// Without what ends a value.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|letter| !matches!(letter, '{' | '}') && !letter.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_meant() {
        assert_eq!(Source::parse("dropless-4711").unwrap(), Source::Run(4711));
        let port = Source::parse("dropless-packet-br-0").unwrap();
        assert_eq!(port, Source::Port("packet:br-0".into()));
        for wrong in [
            "eth0",
            "dropless-",
            "dropless-packet-",
            "dropless-pcap-/etc/passwd",
            "dropless-x",
        ] {
            assert!(
                Source::parse(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains("tshark -D"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_run_that_starts_has_no_ports_to_name() {
        let mut state = report::published::State::default();
        state.process.command = "send".into();
        let shown = |state: &report::published::State| {
            of_run(&Found {
                process: 4711,
                path: "4711".into(),
                state: Ok(state.clone()),
                alive: true,
            })
        };
        let starts = shown(&state);
        assert_eq!(
            starts.as_deref(),
            Some("dropless send, which starts (process 4711)")
        );
        state.ports = vec![measure::PortSummary {
            uri: "packet:eth1".into(),
            ..measure::PortSummary::default()
        }];
        let runs = shown(&state);
        assert_eq!(
            runs.as_deref(),
            Some("dropless send on packet:eth1 (process 4711)")
        );
        state.process.command = "guard".into();
        state.phase = report::published::Phase::Forwarding;
        assert!(shown(&state).is_some());
        // That of an interface has none, ever.
        state.ports.clear();
        assert_eq!(shown(&state), None);
        state.process.command = "capture".into();
        assert_eq!(shown(&state), None);
    }

    #[test]
    fn the_list_begins_with_who_we_are() {
        let list = list();
        assert!(list.starts_with("extcap {version="), "{list}");
        let mut others = list.lines().skip(1);
        assert!(
            others.all(|line| line.starts_with("interface {value=dropless-")),
            "{list}"
        );
    }
}
