//! `./dev bench filter`: what filtering costs, beside xdp-filter, nftables, iptables, testpmd and `librte_acl`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that cannot be made ends like a failed test, and its row says so"
)]

#[path = "../../tests/polling/support/mod.rs"]
mod support;

#[path = "../testpmd/attempt.rs"]
mod attempt;
#[path = "../testpmd/machine.rs"]
mod machine;
#[allow(dead_code, reason = "the benchmark beside testpmd uses the rest")]
#[path = "../testpmd/ours.rs"]
mod ours;
#[path = "../testpmd/page.rs"]
mod page;
#[allow(dead_code, reason = "the benchmark beside testpmd uses the rest")]
#[path = "../testpmd/rounds.rs"]
mod rounds;
#[path = "../testpmd/statistics.rs"]
mod statistics;
#[path = "../testpmd/tables.rs"]
mod tables;
#[allow(dead_code, reason = "the benchmark beside testpmd uses the rest")]
#[path = "../testpmd/theirs.rs"]
mod theirs;
#[path = "../testpmd/worker.rs"]
mod worker;

mod args;
mod classify;
mod contest;
mod flooded;
mod frames;
mod guarded;
mod reload;
mod results;
mod row;
mod user;
mod wire;

use std::process::ExitCode;

use args::Args;
use contest::{Filter, Row, Rules};
use frames::Frame;
use machine::Machine;
use results::Results;
use rounds::Bench;
use support::{Lab, Need};
use wire::Wire;

/// What can be asked for.
const PARTS: [&str; 8] = [
    "one", "fifty", "prefixes", "forward", "tables", "reload", "guard", "flood",
];
/// What the one rule is about.
const DENIED: u32 = u32::from_be_bytes([10, 1, 0, 5]);
const PASSES: u32 = u32::from_be_bytes([10, 1, 0, 6]);
const ON_WIRE: [Need; 6] = [
    Need::Root,
    Need::Namespaces,
    Need::Processors(2),
    Need::Tool("clang"),
    Need::Tool("ethtool"),
    Need::Tool("chrt"),
];

/// Measures a part.
type Measure = fn(&Bench<'_>, &mut Results);

fn main() -> ExitCode {
    let Some(args) = Args::parse() else {
        // `cargo test --all-targets` starts benchmarks too, and a test run is no place to measure.
        println!("measures only in `cargo bench`: ./dev bench filter");
        return ExitCode::SUCCESS;
    };
    let machine = match Machine::prepare() {
        Ok(machine) => machine,
        Err(reason) => {
            eprintln!("bench: {reason}");
            return ExitCode::from(2);
        }
    };
    for note in &machine.notes {
        eprintln!("bench: {note}");
    }
    let bench = Bench::new(&args, &machine);
    let mut results = Results::new(args.rounds);
    let parts: [(&[&str], Measure); 6] = [
        (&PARTS[..3], on_wire),
        (&PARTS[3..4], forward),
        (&PARTS[4..5], in_tables),
        (&PARTS[5..6], reloads),
        (&PARTS[6..7], guards),
        (&PARTS[7..], floods),
    ];
    for (names, measure) in parts {
        if names
            .iter()
            .any(|name| args.wants(name) || args.wants_some_of(name))
            && !machine.interrupted()
        {
            eprintln!("bench: {}", names.join(" "));
            measure(&bench, &mut results);
        }
    }
    let text = results.markdown(&machine);
    print!("\n{text}");
    let json = format!("{:#}\n", results.json(&machine));
    page::write(&page::target().join("bench/filter.json"), &json);
    if args.is_full() && !machine.interrupted() {
        page::replace("filter", &text);
    }
    results.exit_code()
}

/// Measures once; what fails it is its reason.
fn attempt<T>(needs: &[Need], measure: impl FnOnce(&Lab) -> Result<T, String>) -> Result<T, String> {
    attempt::attempt(needs, |lab| measure(&lab)).and_then(|measured| measured)
}

/// The rows on the wire.
#[allow(clippy::too_many_lines, reason = "it lists what is measured")]
fn on_wire(bench: &Bench<'_>, results: &mut Results) {
    let measured = attempt(&ON_WIRE, |lab| {
        let wire = Wire::new(lab, bench.machine.second, bench.machine.worker)?;
        let fifty = frames::disjoint(50);
        let sets = [50, 10_000, 500_000].map(|count| frames::prefixes(count, 1));
        let (denied, passes) = (
            frames::same(Frame::from(DENIED)),
            frames::same(Frame::from(PASSES)),
        );
        let (last, random) = (frames::meeting(&fifty[49..]), frames::meeting(&fifty));
        let out_of = sets.each_ref().map(|set| frames::out_of(set));
        let netfilter = [
            Filter::Dropless,
            Filter::NftInput,
            Filter::NftPrerouting,
            Filter::NftIngress,
            Filter::IptablesInput,
            Filter::IptablesRaw,
        ];
        let has_tool = Need::Tool("xdp-filter").is_met();
        if bench.args.wants(PARTS[0]) && !has_tool {
            eprintln!("bench: xdp-filter is not there: compared with the smallest program");
        }
        let ones = [
            Filter::Dropless,
            Filter::XdpTools,
            Filter::Hash,
            Filter::Everything,
        ];
        let ones: Vec<Filter> = ones
            .into_iter()
            .filter(|filter| has_tool || *filter != Filter::XdpTools)
            .collect();
        let passing: Vec<Filter> = [Filter::Dropless, Filter::XdpTools, Filter::Nothing]
            .into_iter()
            .filter(|filter| has_tool || *filter != Filter::XdpTools)
            .collect();
        let row = |name, filters, rules, frames, drops, timed| Row {
            name,
            filters,
            rules,
            frames,
            drops,
            timed,
        };
        let one = Rules::Source(DENIED);
        let ours = &[Filter::Dropless][..];
        let mut rows = Vec::new();
        if bench.args.wants(PARTS[0]) {
            rows.push(row(results::ONE_DENY, &ones[..], one, &denied[..], true, true));
            rows.push(row(
                results::ONE_ALLOW,
                &passing[..],
                one,
                &passes[..],
                false,
                true,
            ));
        }
        if bench.args.wants(PARTS[1]) {
            rows.push(row(
                results::LAST,
                &netfilter[..],
                Rules::Tuples(&fifty),
                &last[..],
                true,
                true,
            ));
            rows.push(row(
                results::RANDOM,
                &netfilter[..],
                Rules::Tuples(&fifty),
                &random[..],
                true,
                true,
            ));
        }
        if bench.args.wants(PARTS[2]) {
            rows.push(row(results::PREFIXES[0], ours, one, &denied[..], true, true));
            for (number, set) in sets.iter().enumerate() {
                let frames = &out_of[number][..];
                rows.push(row(
                    results::PREFIXES[number + 1],
                    ours,
                    Rules::Prefixes(set),
                    frames,
                    true,
                    true,
                ));
            }
        }
        let lasts = bench.seconds();
        for round in 0..bench.args.rounds {
            for row in &rows {
                if bench.machine.interrupted() {
                    return Err("interrupted".into());
                }
                let (done, failed) = row.measure(lab, &wire, (round % 2 == 1, lasts, bench.machine.worker));
                for contest in &done {
                    eprintln!(
                        "bench: {}: {}: {:.2} Mpps a core",
                        row.name,
                        contest.filter.name(),
                        contest.flood.per_core() / 1e6
                    );
                }
                results.contests.extend(done);
                for reason in failed {
                    results.fail(row.name, &reason);
                }
            }
        }
        Ok(())
    });
    if let Err(reason) = measured {
        results.fail("on the wire", &reason);
    }
}

fn forward(bench: &Bench<'_>, results: &mut Results) {
    let wanted = |row: &&row::Row| bench.args.wants(PARTS[3]) || bench.args.wants(row.name);
    for row in row::ROWS.iter().filter(wanted) {
        if bench.machine.interrupted() {
            break;
        }
        let rounds = rounds::of_row(bench, row);
        match &rounds.failed {
            Some(reason) => results.fail(row.work, reason),
            None => eprintln!(
                "bench: {}: {:.2} of {}",
                row.work,
                rounds.ratio().unwrap_or(0.0),
                row.beside
            ),
        }
        results.forward.push(rounds);
    }
}

fn in_tables(bench: &Bench<'_>, results: &mut Results) {
    let (one, fifty, many) = (frames::disjoint(1), frames::disjoint(50), frames::mixed(10_000));
    let prefixes = frames::prefixes(500_000, 1);
    let all = [
        ("1 rule", Rules::Tuples(&one), frames::meeting(&one)),
        ("50 rules", Rules::Tuples(&fifty), frames::meeting(&fifty)),
        ("10,000 rules", Rules::Tuples(&many), frames::meeting(&many)),
        (
            "500,000 prefixes",
            Rules::Prefixes(&prefixes),
            frames::out_of(&prefixes),
        ),
    ];
    for _ in 0..bench.args.rounds {
        for (name, rules, frames) in &all {
            match attempt(&[], |lab| {
                classify::measure(lab, bench.machine, (name, *rules), frames)
            }) {
                Ok(cost) => results.costs.push(cost),
                Err(reason) => results.fail(name, &reason),
            }
        }
    }
}

fn reloads(bench: &Bench<'_>, results: &mut Results) {
    let needs = [&ON_WIRE[..], &[Need::Tool("taskset")]].concat();
    for _ in 0..bench.args.rounds {
        match attempt(&needs, |lab| reload::of_filter(lab, bench.machine)) {
            Ok(reload) => results.reloads.push(reload),
            Err(reason) => results.fail("a reload of filter run", &reason),
        }
        match attempt(&[Need::Processors(2)], |lab| reload::of_forward(bench, lab)) {
            Ok(reload) => results.reloads.push(reload),
            Err(reason) => results.fail("a reload of forward", &reason),
        }
    }
}

fn guards(bench: &Bench<'_>, results: &mut Results) {
    for _ in 0..bench.args.rounds {
        match attempt(&ON_WIRE, |lab| guarded::measure(lab, bench.machine)) {
            Ok(guarded) => results.guards.push(guarded),
            Err(reason) => results.fail("guard", &reason),
        }
    }
}

fn floods(bench: &Bench<'_>, results: &mut Results) {
    for _ in 0..bench.args.rounds {
        match attempt(&ON_WIRE, |lab| {
            flooded::measure(lab, bench.machine, bench.seconds())
        }) {
            Ok(flooded) => results.floods.push(flooded),
            Err(reason) => results.fail("a flood", &reason),
        }
    }
}
