//! `dropless guard`: floods are found and blocked.

mod args;
mod baseline;
mod layers;
mod live;
mod log;
mod pace;
mod ports;
mod replay;
mod sampler;
mod watch;

use anyhow::{Result, ensure};
use guard::{Guard, Learn, Settings};
use measure::Note;
use rules::{Action, RuleSet, Tables, Verdict};

use crate::plan::{self, GuardPlan, GuardSource, ThresholdPlan};
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
    leave_rates(&rules, plan.cap.rates)?;
    Ok(rules)
}

/// Whether the user's rules leave the guard as many that limit a rate as it may make.
fn leave_rates(own: &Rules, cap: usize) -> Result<()> {
    let limits = |rule: &&rules::Rule| matches!(rule.action, Action::Limit(_));
    let own = own.set.rules.iter().filter(limits).count();
    ensure!(
        own < rules::LIMITS_MAX,
        "{own} of your rules limit a rate, and with those of the guard at most {} may; fix: take one of yours out at least",
        rules::LIMITS_MAX
    );
    ensure!(
        own + cap <= rules::LIMITS_MAX,
        "{own} of your rules limit a rate, and with those of the guard at most {} may; fix: --cap rates={}",
        rules::LIMITS_MAX,
        rules::LIMITS_MAX - own
    );
    Ok(())
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
            "{}: `{}`: an allow-list has `allow` rules only; the others belong to --rules",
            set.place(rule),
            rule.text
        );
    }
    Ok(set)
}

/// A guard, and what is to be said of what it knows already.
fn guard_of(plan: &GuardPlan, allowed: &RuleSet, seed: u64) -> Result<(Guard, Option<Note>)> {
    let mut settings = Settings {
        learn: plan.learn_ns.map(|after_ns| Learn {
            after_ns,
            factor: plan.factor,
            floor_pps: plan.floor_pps,
        }),
        expire_ns: plan.expire_ns,
        cap: plan.cap,
        ..Settings::default()
    };
    if !allowed.rules.is_empty() {
        let mut only = allowed.clone();
        only.default = Verdict::Deny;
        settings.allowed = Some(Tables::new(&only)?);
    }
    for ThresholdPlan { class, limit } in &plan.thresholds {
        settings.thresholds[*class as usize] = Some(*limit);
    }
    let mut guard = Guard::new(settings, seed);
    if let Some(path) = &plan.baseline {
        baseline::check_place(path)?;
    }
    let kept = plan.baseline.as_ref().filter(|path| path.exists());
    let note = match kept {
        Some(path) => baseline::take_up(&mut guard, path)?,
        None => None,
    };
    Ok((guard, note))
}
