//! `dropless filter status`: which interfaces have rules, whose, and what they met.

use anyhow::{Context as _, Result, bail};
use host::interface::interfaces;
use host::link::index;
use host::{Sys, quoted};
use measure::Judged;
use nix::errno::Errno;
use report::number::{self, count};
use report::out::Console;
use report::published::{Place, RulesInForce, State, unix_ms};
use report::style::Style;
use report::table::{Cell, Table};
use rules::{Totals, Verdict};
use serde::Serialize;
use xdp::{InForce, PROGRAM, StayError, Stayed};

use crate::run::claim;

/// Version of what `--json` prints.
const VERSION: u32 = 1;

/// List the interfaces that have rules in force: whose, which, since when, and what they met
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    version: u32,
    filters: Vec<OnInterface>,
}

/// Rules on an interface.
#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct OnInterface {
    interface: String,
    mode: Option<&'static str>,
    /// This and what they met: none where nothing stays, and the process tells nothing here.
    rules: Option<String>,
    generation: Option<u64>,
    since_unix_ms: Option<u64>,
    /// The process that looks after it, if one does.
    process: Option<u32>,
    /// It stays in force when its process ends.
    stays: bool,
    /// It should be there and is not: somebody took it off, or the interface went.
    is_gone: bool,
    /// It is in force in another network namespace, which its interface was moved to.
    is_elsewhere: bool,
    allowed: Option<u64>,
    denied: Option<u64>,
    /// Why the rules that were read last are not in force.
    refused: Option<String>,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    host::check_sys(&Sys::live(), "interfaces")?;
    let (mut filters, mut here) = (Vec::new(), Vec::new());
    let console = Console::json_or_text(args.json);
    let (stayed, unread) = match Stayed::all() {
        Err(StayError::NotMounted(_)) => (Vec::new(), Vec::new()),
        other => other?,
    };
    // The others are told all the same.
    for error in &unread {
        console.error(&error.to_string());
    }
    for interface in interfaces(&Sys::live()) {
        let Some(number) = index(&Sys::live(), &interface.name) else {
            continue;
        };
        let found = match InForce::on(number) {
            // It has gone meanwhile.
            Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => continue,
            found => found.with_context(|| interface.name.clone())?,
        };
        if found.as_ref().is_some_and(|found| found.name.is_none()) {
            bail!(
                "{} has an XDP program, and whose it is the kernel tells only who has CAP_BPF and CAP_SYS_ADMIN, through bpf(2); fix: sudo dropless filter status",
                interface.name
            );
        }
        let found = found.filter(|found| found.name.as_deref() == Some(PROGRAM));
        if let Some(found) = found {
            let moved = Stayed::of_program(found.program).ok().flatten();
            let stays = stayed
                .iter()
                .find(|stayed| stayed.is_in_force() && stayed.is_on(number))
                .or(moved.as_ref());
            here.push(number);
            filters.push(on(interface.name, (number, &found), stays)?);
        }
    }
    let is_here = |stayed: &Stayed| stayed.is_in_force() && here.iter().any(|number| stayed.is_on(*number));
    // What should be in force and is not is the worst to be silent about.
    for is_gone in [false, true] {
        let of_kind = stayed.iter().filter(|stayed| stayed.is_gone() == is_gone);
        for stayed in of_kind.filter(|stayed| !is_here(stayed)) {
            filters.push(missing(stayed)?);
        }
    }
    let text = text(&filters, &console.style());
    let listed = Listed {
        version: VERSION,
        filters,
    };
    console.either(&listed, &text)?;
    Ok(0)
}

/// Of rules that should be in force here: they went elsewhere with their interface, or were taken off.
fn missing(stayed: &Stayed) -> Result<OnInterface> {
    let (state, judged) = (stayed.state(), sums(&stayed.totals()?));
    Ok(OnInterface {
        interface: state.interface.clone(),
        mode: None,
        rules: Some(state.file.clone()),
        generation: Some(state.generation.into()),
        since_unix_ms: Some(state.since_unix_ms),
        process: None,
        stays: true,
        is_gone: stayed.is_gone(),
        is_elsewhere: !stayed.is_gone(),
        allowed: Some(judged.allowed),
        denied: Some(judged.denied),
        refused: None,
    })
}

fn on(name: String, (index, found): (u32, &InForce), stayed: Option<&Stayed>) -> Result<OnInterface> {
    // One in another network namespace holds the program, and no lock here.
    let process = claim::holder_of(index).or_else(|| host::xdp::holder(&Sys::live(), found.program));
    let told = process.and_then(told);
    let kept = stayed.map(Stayed::state);
    let judged = match &told {
        Some(told) => Some(told.judged.clone()),
        None => stayed
            .map(Stayed::totals)
            .transpose()?
            .map(|totals| sums(&totals)),
    };
    let told = told.as_ref();
    Ok(OnInterface {
        interface: name,
        mode: found.mode.map(xdp::Mode::name),
        rules: told
            .map(|told| &told.file)
            .or(kept.map(|kept| &kept.file))
            .cloned(),
        generation: told
            .map(|told| told.generation)
            .or(kept.map(|kept| kept.generation.into())),
        since_unix_ms: kept
            .map(|kept| kept.since_unix_ms)
            .or(told.map(|told| told.since_unix_ms)),
        process,
        stays: stayed.is_some(),
        is_gone: false,
        is_elsewhere: false,
        allowed: judged.as_ref().map(|judged| judged.allowed),
        denied: judged.as_ref().map(|judged| judged.denied),
        refused: told
            .and_then(|told| told.refused.as_ref())
            .map(|refused| refused.text.clone()),
    })
}

/// What a process says of its rules, and no other that had its number before.
fn told(process: u32) -> Option<RulesInForce> {
    let places = Place::visible();
    let alive = places
        .iter()
        .map(|place| place.look(process))
        .filter(|found| found.alive);
    let mut states = alive.filter_map(|found| found.state.ok());
    states.find_map(|state: State| state.rules)
}

/// How many packets passed, and how many did not.
pub(super) fn sums(totals: &Totals) -> Judged {
    let mut judged = Judged::default();
    for (rule, met) in &totals.rules {
        match rule.verdict {
            Verdict::Allow => judged.allowed += met.packets,
            Verdict::Deny => judged.denied += met.packets,
        }
    }
    judged
}

fn text(filters: &[OnInterface], style: &Style) -> String {
    if filters.is_empty() {
        return "no interface here has rules of dropless in force\n".to_owned();
    }
    let titles = [
        "mode",
        "rules",
        ">generation",
        "since",
        ">allowed",
        ">denied",
        "by",
    ];
    let mut table = Table::section("Interface", &titles);
    for filter in filters {
        let by = match (filter.process, filter.stays) {
            _ if filter.is_elsewhere => "in force in another network namespace".to_owned(),
            _ if filter.is_gone => "NOT IN FORCE: it was taken off".to_owned(),
            (Some(process), true) => format!("process {process}, stays"),
            (Some(process), false) => format!("process {process}"),
            (None, true) => "stays, no process".to_owned(),
            (None, false) => "unknown".to_owned(),
        };
        table.item(
            &filter.interface,
            [
                Cell::left(if filter.is_gone || filter.is_elsewhere {
                    "none"
                } else {
                    filter.mode.unwrap_or("unknown")
                }),
                Cell::left(filter.rules.as_deref().unwrap_or("-")),
                known(filter.generation, |generation| generation.to_string()),
                known(filter.since_unix_ms, |since| {
                    number::span(unix_ms().saturating_sub(since) as f64 / 1e3)
                }),
                known(filter.allowed, count),
                known(filter.denied, count),
                Cell::left(by),
            ],
        );
    }
    let silent = filters.iter().filter(|filter| filter.allowed.is_none()).map(|filter| {
        let who = filter
            .process
            .map_or_else(|| "its process".to_owned(), |process| format!("process {process}"));
        format!(
            "{}: {who} tells nothing here: it has another DROPLESS_LIVE_DIR, or is in another PID namespace; fix: ask where it runs, or with its DROPLESS_LIVE_DIR\n",
            filter.interface
        )
    });
    let gone = filters.iter().filter(|filter| filter.is_gone).map(|filter| {
        let rules = quoted(filter.rules.as_deref().unwrap_or_default());
        let interface = &filter.interface;
        format!(
            "{interface}: rules that should stay in force are not; fix: dropless filter run {rules} --dev {interface} --stay, or, if they should not: dropless filter stop {interface}\n"
        )
    });
    let refused = filters.iter().filter_map(|filter| {
        let why = filter.refused.as_ref()?;
        Some(format!(
            "{}: what was read last is NOT in force: {why}\n",
            filter.interface
        ))
    });
    table.render(style) + &gone.chain(silent).chain(refused).collect::<String>()
}

/// A number, where it is known.
fn known(number: Option<u64>, text: impl Fn(u64) -> String) -> Cell {
    Cell::right(number.map_or_else(|| "-".to_owned(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_no_zero() {
        let silent = OnInterface {
            interface: "eth9".into(),
            mode: Some("native"),
            rules: None,
            generation: None,
            since_unix_ms: None,
            process: Some(4711),
            stays: false,
            is_gone: false,
            is_elsewhere: false,
            allowed: None,
            denied: None,
            refused: None,
        };
        let json = serde_json::to_value(&silent).unwrap();
        for name in ["rules", "generation", "since_unix_ms", "allowed", "denied"] {
            assert!(json[name].is_null(), "{name}: {json}");
        }
        let told = text(&[silent], &Style::plain());
        assert!(told.contains("process 4711 tells nothing here"), "{told}");
        assert!(!told.contains(" 0 "), "{told}");
    }
}
