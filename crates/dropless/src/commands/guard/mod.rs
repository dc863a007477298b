//! `dropless guard`: floods are found and blocked.

mod args;
mod layers;
mod live;
mod log;
mod pace;
mod ports;
mod replay;
mod sampler;
mod watch;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use guard::{Cap, Class, Guard, Learn, Limit, Settings};
use measure::GuardSummary;
use report::out::Console;
use report::rundir::RunDir;
use rules::{Action, RuleSet, Tables, Verdict};

use crate::about::About as _;
use crate::plan::{self, GuardPlan, GuardSource, ThresholdPlan};
use crate::run::page;
use crate::run::rulebook::Rules;
pub use args::Args;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let plan = args.plan()?;
    match &plan.source {
        GuardSource::File(file) => replay::run(args, &plan, file),
        GuardSource::Interface { .. } => live::run(args, &plan),
        GuardSource::Ports(forward) => ports::run(args, &plan, forward),
    }
}

/// The user's own rules; without, all passes.
fn own_rules(plan: &GuardPlan) -> Result<Rules> {
    let rules = match &plan.rules {
        Some(path) => Rules::read(path)?,
        None => Rules::of(RuleSet::joined(&[]))?,
    };
    let limits = |rule: &&rules::Rule| matches!(rule.action, Action::Limit(_));
    let own = rules.set.rules.iter().filter(limits).count();
    ensure!(
        own + plan.cap.rates <= rules::LIMITS_MAX,
        "{own} of your rules limit a rate, and with those of the guard at most {} may; fix: --cap rates={}",
        rules::LIMITS_MAX,
        rules::LIMITS_MAX.saturating_sub(own).max(1)
    );
    Ok(rules)
}

/// What is never blocked.
fn allow_list(plan: &GuardPlan) -> Result<RuleSet> {
    let Some(path) = &plan.allow else {
        return Ok(RuleSet::joined(&[]));
    };
    let set = plan::rules::read(path)?;
    for rule in &set.rules {
        ensure!(
            rule.action == Action::Decide(Verdict::Allow),
            "{}:{}: `{}`: an allow-list has `allow` rules only; the others belong to --rules",
            set.files[rule.place.0],
            rule.place.1,
            rule.text
        );
    }
    Ok(set)
}

fn guard_of(plan: &GuardPlan, allowed: &RuleSet, seed: u64) -> Result<Guard> {
    let mut settings = Settings {
        learn: plan.learn_ns.map(|after_ns| Learn {
            after_ns,
            factor: plan.factor,
            floor_pps: plan.floor_pps,
        }),
        expire_ns: plan.expire_ns,
        cap: Cap {
            rules: plan.cap.rules,
            rates: plan.cap.rates,
            share: plan.cap.share,
            cost: plan.cap.cost,
            v4_len: plan.cap.v4_len,
            v6_len: plan.cap.v6_len,
        },
        ..Settings::default()
    };
    if !allowed.rules.is_empty() {
        let mut only = allowed.clone();
        only.default = Verdict::Deny;
        settings.allowed = Some(Tables::new(&only)?);
    }
    for ThresholdPlan { class, pps, bps } in &plan.thresholds {
        for known in Class::ALL.into_iter().filter(|known| known.name() == class) {
            settings.thresholds[known as usize] = Some(Limit { pps: *pps, bps: *bps });
        }
    }
    let mut guard = Guard::new(settings, seed);
    if let Some(path) = plan.baseline.as_ref().filter(|path| path.exists()) {
        learn(&mut guard, path).about("--baseline")?;
    }
    Ok(guard)
}

/// What was usual the last time.
fn learn(guard: &mut Guard, path: &Path) -> Result<()> {
    let name = path.display();
    let text = report::input::text_file(path).with_context(|| format!("--baseline {name}"))?;
    let baseline = serde_json::from_str(&text).with_context(|| format!("--baseline {name} is none"))?;
    guard
        .learn(&baseline)
        .map_err(|why| anyhow::anyhow!("--baseline {name}: {why}"))
}

/// Leaves what is usual for the next time.
fn keep_baseline(plan: &GuardPlan, guard: &Guard) -> Result<()> {
    let Some(path) = &plan.baseline else { return Ok(()) };
    let text = report::json::pretty(&guard.baseline())?;
    let written = report::ours::landing(path).and_then(|path| {
        use std::io::Write as _;
        report::ours::create(&path)?.write_all(text.as_bytes())
    });
    written
        .with_context(|| format!("--baseline {}", path.display()))
        .about("--baseline")
}

/// Writes and prints what it came to.
fn tell(summary: &mut GuardSummary, dir: &RunDir, console: Console) -> Result<u8> {
    summary.notes.extend(dir.note());
    let _ = dir.write_result(summary);
    page::leave(dir, console);
    page::tell_reason(console, &summary.reasons);
    page::tell(
        dir,
        console,
        &report::terminal::render(summary, &console.style()),
        summary,
    )?;
    Ok(summary.exit_code())
}
