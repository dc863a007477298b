//! `dropless compare`: the same probes by every way there is here, and which one to take.

pub mod args;
mod cpu;
mod firewall;
mod missing;
mod plan;
mod show;
mod trial;
mod wire;

use std::time::Duration;

use anyhow::{Result, ensure};
use host::Sys;
use measure::Note;
use measure::comparison::{self as result, advise};
use measure::search::{self, Limit, Step};
use report::Style;
use report::published::{Bounds, Ended};
use report::rundir::{RunDir, WriteError, file};
use report::terminal::render;

use crate::run;
use crate::run::finish::{Finish, Outcome};
use crate::run::signals::Interrupt;
use crate::status::Trials;
pub use args::Args;
use plan::{ComparePlan, Way};
use result::{Comparison, MethodResult};
use trial::{Ends, STARTING, Scene};
use wire::Wire;

/// A way is ready by then: its wire is laid and its reflector started.
const PREPARING: Duration = STARTING.saturating_add(Duration::from_secs(10));

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let sys = Sys::live();
    let plan = ComparePlan::from_args(args, &sys)?;
    let console = args.output.console();
    ensure!(
        plan.possible().next().is_some(),
        "nothing can be compared: {}",
        plan.ways
            .iter()
            .filter_map(|way| Some(format!("{}: {}", way.method, way.missing.as_ref()?)))
            .collect::<Vec<_>>()
            .join("; ")
    );
    if args.dry_run {
        console.human(&show::dry_run(&plan, &console.style()))?;
        console.object(&plan)?;
        return Ok(0);
    }
    let mut told = Trials::open(&args.status.settings()?, "compare")?;
    let interrupt = Interrupt::install()?;
    let dir = run::directory(&args.output.place(), &plan, told.board())?;
    let trials = dir.file(file::TRIALS);
    report::ours::make_dirs(&trials)?;
    if !console.quiet {
        report::out::print_stderr(&show::beginning(&plan))?;
    }
    let mut comparison = Comparison {
        version: measure::VERSION,
        command: "compare".into(),
        run: dir.path().display().to_string(),
        link: plan.link(),
        size: plan.size,
        duration_s: plan.duration.as_secs_f64(),
        wanted_pps: plan.wanted_pps,
        firewall_rules: plan.firewall_rules,
        cores: plan.cores.to_vec(),
        ..Comparison::default()
    };
    let scene = Scene {
        directory: &trials,
        console,
        interrupt: &interrupt,
    };
    let mut not_begun = Vec::new();
    for way in &plan.ways {
        let mut measured = unmeasured(way);
        if measured.missing.is_none() && interrupt.is_set() {
            measured.missing = Some("not begun".into());
            not_begun.push(way.method.name());
        } else if measured.missing.is_none() {
            measure_way(&plan, way, &scene, &mut told, &mut measured);
        }
        comparison.methods.push(measured);
    }
    comparison.interrupted = interrupt.is_set();
    comparison.recommendation = recommend(&plan, &comparison);
    comparison.notes = notes(&plan, &comparison, &not_begun);
    let finish = Finish {
        dir: &dir,
        console,
        board: Some(told.board()),
    };
    let exit = finish.with(comparison, |comparison, state| {
        told.settle(!comparison.interrupted, state);
    })?;
    told.board().linger(&interrupt);
    Ok(exit)
}

impl Outcome for Comparison {
    fn notes(&mut self) -> &mut Vec<Note> {
        &mut self.notes
    }

    fn write(&self, dir: &RunDir) -> Result<(), WriteError> {
        dir.write_result(self)
    }

    fn text(&self, style: &Style) -> String {
        render(self, style)
    }

    fn ended(&self) -> Ended {
        let exit = exit_code(self);
        let verdict = match exit {
            _ if self.interrupted => "",
            measure::summary::EXIT_INVALID => "invalid",
            _ => "valid",
        };
        Ended {
            verdict: verdict.into(),
            exit,
            ..Ended::default()
        }
    }
}

/// 0: measured; 1: and no way carries what is needed; 2: not measured, or not to the end.
fn exit_code(comparison: &Comparison) -> u8 {
    let has_measured = comparison.methods.iter().any(|method| method.missing.is_none());
    if comparison.interrupted || !has_measured {
        return measure::summary::EXIT_INVALID;
    }
    // Shared memory alone answers no question about a network that nobody asked.
    let was_asked = comparison.wanted_pps.is_some()
        || comparison
            .methods
            .iter()
            .any(MethodResult::has_measured_a_network);
    u8::from(was_asked && comparison.recommendation.method.is_none())
}

/// Which way to take, if the comparison came so far that it can tell.
fn recommend(plan: &ComparePlan, comparison: &Comparison) -> result::Recommendation {
    let nothing = |why: &str| result::Recommendation {
        method: None,
        sentences: vec![format!("Nothing is recommended: {why}.")],
    };
    if comparison.interrupted {
        return nothing("the comparison was interrupted");
    }
    if comparison.methods.iter().all(|method| method.missing.is_some()) {
        return nothing("no way was measured to its end; the reasons are listed");
    }
    advise(
        &comparison.methods,
        plan.wanted_pps,
        plan.lays_a_wire(),
        comparison.own_share(plan.shares_a_core()),
    )
}

fn unmeasured(way: &Way) -> MethodResult {
    MethodResult {
        name: way.method.name().into(),
        words: way.method.words().into(),
        near: way.near.clone(),
        far: way.far.clone().unwrap_or_default(),
        missing: way.missing.clone(),
        ..MethodResult::default()
    }
}

/// All trials of one way. What goes wrong is its result: the other ways go on.
fn measure_way(
    plan: &ComparePlan,
    way: &Way,
    scene: &Scene<'_>,
    told: &mut Trials,
    measured: &mut MethodResult,
) {
    match try_way(plan, way, scene, told, measured) {
        Err(_) if scene.interrupt.is_set() => keep_finished(measured),
        Err(error) => measured.missing = Some(format!("{error:#}")),
        Ok(()) => {}
    }
    told.know(Bounds {
        of: measured.name.clone(),
        carried_pps: measured.lossless_pps,
        ..Bounds::default()
    });
}

/// What the finished trials of an interrupted way say. Nobody looked for its limit to the end.
fn keep_finished(measured: &mut MethodResult) {
    if measured.latency.is_none() {
        measured.missing = Some("interrupted before its first trial ended".into());
    }
    measured.conclude(None);
}

fn try_way(
    plan: &ComparePlan,
    way: &Way,
    scene: &Scene<'_>,
    told: &mut Trials,
    measured: &mut MethodResult,
) -> Result<()> {
    told.prepare(&format!("preparing {}", way.method), PREPARING);
    // A wire for each way: nothing of one is left for the next.
    let wire = if plan.far.is_none() && way.method.needs_a_wire() {
        let wire = Wire::lay()?;
        wire.address(way.method.is_sockets())?;
        if plan.has_rules(way.method) {
            wire.firewall(plan.firewall_rules)?;
        }
        Some(wire)
    } else {
        None
    };
    let mut ends = Ends::start(plan, way, wire.as_ref(), scene, told)?;
    let tried = try_rates(plan, &mut ends, measured);
    if let (Ok(()), Some(wire)) = (&tried, wire.as_ref().filter(|_| plan.has_rules(way.method))) {
        // The way has been measured, whatever comes of this.
        match firewall::cost(plan.firewall_rules, wire, &mut ends) {
            Ok(cost) => measured.firewall = Some(cost),
            Err(error) => measured.firewall_missing = Some(format!("{error:#}")),
        }
    }
    ends.end();
    tried
}

/// The trials of a way whose ends are ready.
fn try_rates(plan: &ComparePlan, ends: &mut Ends<'_>, measured: &mut MethodResult) -> Result<()> {
    let (latency, _) = ends.trial(Some(plan.latency_pps), "for its latency")?;
    measured.latency = Some(latency);
    let (flood, first) = ends.trial(None, "to see what gets through")?;
    let mut search = plan.search(flood.sent_pps);
    measured.flood = Some(flood);
    for rate in &plan.rates_pps {
        let (trial, _) = ends.trial(Some(*rate), "for its loss")?;
        measured.at_rates.push(trial);
    }
    // The highest rate is what the sender reached: that trial has been made.
    if let Step::Trial(ask, _) = search.next() {
        search.record(&search::Trial::of(ask, &first));
    }
    for _ in 0..plan.trials {
        let Step::Trial(ask, why) = search.next() else {
            break;
        };
        let (trial, summary) = ends.trial(Some(ask.rate_pps), &why.to_string())?;
        // One that our own end spoiled is made again, and says nothing of the path.
        if search.record(&search::Trial::of(ask, &summary)) {
            measured.search.push(trial);
        }
    }
    let found = search.result().goals.into_iter().next();
    let carried = found.as_ref().and_then(|goal| goal.throughput_pps).unwrap_or(0.0);
    // A loss at a rate below may have been an accident: it gets a second chance, and counts if it comes again.
    for trial in measured.at_rates.iter_mut().chain(&mut measured.latency) {
        let rate = trial.asked_pps.unwrap_or(0.0);
        if !trial.is_whole() && rate < carried {
            (*trial, _) = ends.trial(Some(rate), "again, as more was carried without loss")?;
        }
    }
    measured.conclude(found.as_ref());
    Ok(())
}

fn notes(plan: &ComparePlan, comparison: &Comparison, not_begun: &[&str]) -> Vec<Note> {
    let mut notes = vec![Note::new(
        "polls",
        "dropless polls in every way, so that its two cores are busy at any rate; a socket program that sleeps between packets uses less CPU at low rates, and answers later",
    )];
    if plan.shares_a_core() {
        notes.push(Note::new(
            "shared_core",
            "both ends shared one core: everything here is slower than with two",
        ));
    }
    let names = |pick: fn(&MethodResult) -> bool| {
        let methods = comparison.methods.iter().filter(|method| pick(method));
        let names: Vec<&str> = methods.map(|method| method.name.as_str()).collect();
        names.join(", ")
    };
    let by_us = names(MethodResult::is_limited_by_us);
    if !by_us.is_empty() {
        notes.push(Note::new(
            "limited_by_us",
            format!(
                "our own end was the limit of {by_us}: its core could not do more, or was taken from it for a while; with more cores, or quieter ones, the path may carry more"
            ),
        ));
    }
    let full = names(|method| method.limit == Limit::Port);
    if !full.is_empty() {
        let text = format!(
            "the port took no more of {full}: the link or the far end was the limit, not our sender, and the path may carry more"
        );
        notes.push(Note::new("port_full", text));
    }
    let unknown = comparison
        .methods
        .iter()
        .filter_map(|method| Some((&method.name, method.firewall_missing.as_ref()?)));
    notes.extend(unknown.map(|(name, why)| {
        let text = format!("what the firewall rules cost {name} is not known: {why}");
        Note::new("firewall_unknown", text)
    }));
    if comparison.interrupted {
        let text = "interrupted: this is what was measured up to then";
        let text = match not_begun {
            [] => text.to_owned(),
            names => format!("{text}; not begun: {}", names.join(", ")),
        };
        notes.push(Note::new("interrupted", text));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_alone_fails_only_where_a_rate_was_asked_for() {
        let exit = |methods: &[&str], wanted_pps| {
            let methods = methods.iter().map(|name| MethodResult {
                name: (*name).into(),
                ..MethodResult::default()
            });
            exit_code(&Comparison {
                methods: methods.collect(),
                wanted_pps,
                ..Comparison::default()
            })
        };
        assert_eq!((exit(&["memif"], None), exit(&["memif"], Some(1e3))), (0, 1));
        assert_eq!((exit(&["memif", "xdp"], None), exit(&[], None)), (1, 2));
    }

    #[test]
    fn what_makes_the_ways_differ_from_what_others_see_is_told() {
        let codes = |cores, limits: &[Limit]| {
            let plan = ComparePlan {
                version: 1,
                command: "compare",
                wanted_pps: None,
                rates_pps: Vec::new(),
                latency_pps: 1000.0,
                size: 64,
                duration: Duration::from_secs(1),
                trials: 1,
                firewall_rules: 0,
                cores,
                far: None,
                ways: Vec::new(),
            };
            let methods = limits.iter().map(|limit| MethodResult {
                name: format!("{limit:?}"),
                limit: *limit,
                ..MethodResult::default()
            });
            let comparison = Comparison {
                methods: methods.collect(),
                ..Comparison::default()
            };
            notes(&plan, &comparison, &[])
        };
        let named =
            |notes: &[Note]| -> Vec<String> { notes.iter().map(|note| note.code.to_string()).collect() };
        assert_eq!(named(&codes([1, 2], &[Limit::Path])), ["polls"]);
        assert_eq!(named(&codes([1, 1], &[Limit::Path])), ["polls", "shared_core"]);
        let told = codes(
            [1, 2],
            &[Limit::Sender, Limit::Path, Limit::Receiver, Limit::Port],
        );
        assert_eq!(named(&told), ["polls", "limited_by_us", "port_full"]);
        assert!(
            told[1].text.contains("the limit of Sender, Receiver:"),
            "{}",
            told[1].text
        );
    }
}
