//! Rules that the workers of a run judge by: which set each task has, how another one comes into force, and what all of them
//! have met.
//!
//! A set goes to the tasks as a whole, between two bursts. What it counted is kept rule by rule once no task has it any more.

use std::sync::Arc;

use dataplane::forward::{Judge, RuleCounters};
use dataplane::slot::Exchange;
use rules::limit::{Limiter, WAYS};
use rules::{Action, RuleSet, Spelling, Totals};

use super::control::Generations;
use super::rulebook::Rules;
use crate::plan;

/// The rules that workers judge by.
pub struct Judging {
    rules: Rules,
    limiter: Arc<Limiter>,
    /// Of each task, where it finds the next set.
    exchanges: Vec<Arc<Exchange<Judge>>>,
    current: Counted,
    /// Other rules on their way to the workers.
    next: Option<Next>,
    /// What the sets before counted.
    settled: Totals,
}

/// What a set counts.
struct Counted {
    spellings: Vec<Spelling>,
    /// By task.
    met: Vec<Arc<RuleCounters>>,
}

struct Next {
    rules: Rules,
    counted: Counted,
    generation: u64,
}

impl Counted {
    fn new(set: &RuleSet, tasks: usize) -> Self {
        let rules = set.rules.len();
        Self {
            spellings: set.spellings(),
            met: (0..tasks).map(|_| RuleCounters::new(rules)).collect(),
        }
    }

    fn add_to(&self, totals: &mut Totals) {
        for met in &self.met {
            totals.add(&self.spellings, &met.get());
        }
    }
}

impl Judging {
    /// With the rules that are in force from the start.
    pub fn new(rules: Rules) -> Self {
        Self {
            limiter: limiter(&rules, None),
            exchanges: Vec::new(),
            current: Counted::new(&rules.set, 0),
            next: None,
            settled: Totals::default(),
            rules,
        }
    }

    /// A further task: its judge, and where it will find others.
    pub fn task(&mut self) -> (Judge, Arc<Exchange<Judge>>) {
        let exchange = Exchange::new();
        let met = RuleCounters::new(self.rules.set.rules.len());
        self.current.met.push(Arc::clone(&met));
        self.exchanges.push(Arc::clone(&exchange));
        let judge = Judge::new(Arc::clone(&self.rules.tables), Arc::clone(&self.limiter), met);
        (judge, exchange)
    }

    /// The rules that were put in force last, once no task judges by those before them any more.
    pub fn arrived(&mut self, generations: Generations<'_>) -> Option<Rules> {
        let is_there = |next: &mut Next| generations.is_acknowledged(next.generation);
        let next = self.next.take_if(is_there)?;
        // What the tasks had ends here, and its memory is given back.
        self.exchanges
            .iter()
            .for_each(|exchange| drop(exchange.take_back()));
        let old = std::mem::replace(&mut self.current, next.counted);
        old.add_to(&mut self.settled);
        self.settled.forget(&self.current.spellings);
        self.rules = next.rules;
        Some(self.rules.clone())
    }

    /// Whether rules are on their way, which others have to wait for.
    pub fn is_busy(&self) -> bool {
        self.next.is_some()
    }

    /// Puts rules in force, where none are on their way.
    pub fn put(&mut self, rules: Rules, generations: Generations<'_>) {
        // What rates know of groups stays: a rate of the same number finds it again.
        self.limiter = limiter(&rules, Some(&self.limiter));
        let counted = Counted::new(&rules.set, self.exchanges.len());
        for (exchange, met) in self.exchanges.iter().zip(&counted.met) {
            let tables = Arc::clone(&rules.tables);
            exchange.leave(Judge::new(tables, Arc::clone(&self.limiter), Arc::clone(met)));
        }
        self.next = Some(Next {
            rules,
            counted,
            generation: generations.publish(),
        });
    }

    /// What all sets met, rule by rule.
    pub fn totals(&self) -> Totals {
        let mut totals = self.settled.clone();
        self.current.add_to(&mut totals);
        // Some tasks may have it already.
        if let Some(next) = &self.next {
            next.counted.add_to(&mut totals);
        }
        totals
    }
}

/// The groups of the rates of these rules: those that there were.
fn limiter(rules: &Rules, before: Option<&Arc<Limiter>>) -> Arc<Limiter> {
    let is_rate = |action: &Action| matches!(action, Action::Limit(_));
    let has_rates = rules.set.rules.iter().any(|rule| is_rate(&rule.action));
    match before {
        Some(before) if !has_rates || before.entries() > WAYS => Arc::clone(before),
        _ => Arc::new(Limiter::new(
            if has_rates { plan::rules::GROUPS } else { WAYS },
            Limiter::seed(),
        )),
    }
}
