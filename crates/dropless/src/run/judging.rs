//! Rules that the workers of a run judge by: which set each task has, how another one comes into force, and what all of them
//! have met.
//!
//! A set goes to the tasks as a whole, between two bursts. What it counted is kept rule by rule once no task has it any more.

use std::path::Path;
use std::sync::Arc;

use dataplane::forward::{Judge, RuleCounters};
use dataplane::slot::Exchange;
use measure::Judged;
use report::published::RulesInForce;
use rules::limit::{Limiter, WAYS};
use rules::{Action, RuleSet, Spelling, Totals};

use super::control::Generations;
use super::rulebook::{Rulebook, Rules};

/// Rules that are no longer there and whose counts are told one by one.
const GONE_MAX: usize = 1024;
/// Groups that rates remember.
const GROUPS: usize = 1 << 20;

/// The rules of a run.
pub struct Judging {
    book: Rulebook,
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
    /// With the rules of `path`, which have been read.
    pub fn new(path: &Path, rules: Rules) -> Self {
        Self {
            limiter: limiter(&rules, None),
            exchanges: Vec::new(),
            current: Counted::new(&rules.set, 0),
            next: None,
            settled: Totals::default(),
            book: Rulebook::new(path, rules),
        }
    }

    /// A further task: its judge, and where it will find others.
    pub fn task(&mut self) -> (Judge, Arc<Exchange<Judge>>) {
        let (rules, exchange) = (self.book.rules(), Exchange::new());
        let met = RuleCounters::new(rules.set.rules.len());
        self.current.met.push(Arc::clone(&met));
        self.exchanges.push(Arc::clone(&exchange));
        let judge = Judge::new(Arc::clone(&rules.tables), Arc::clone(&self.limiter), met);
        (judge, exchange)
    }

    /// One look: reads the rules again where that `is_asked`, and has those that were read put in force.
    pub fn look(&mut self, is_asked: bool, generations: Generations<'_>) {
        if is_asked {
            self.book.ask();
        }
        if let Some(next) = self
            .next
            .take_if(|next| generations.is_acknowledged(next.generation))
        {
            // What the tasks had ends here, and its memory is given back.
            self.exchanges
                .iter()
                .for_each(|exchange| drop(exchange.take_back()));
            let old = std::mem::replace(&mut self.current, next.counted);
            old.add_to(&mut self.settled);
            self.settled.forget(&self.current.spellings, GONE_MAX);
            self.book.accept(next.rules);
        }
        if self.next.is_none()
            && let Some(rules) = self.book.read()
        {
            self.next = Some(self.put(rules, generations));
        }
    }

    fn put(&mut self, rules: Rules, generations: Generations<'_>) -> Next {
        // What rates know of groups stays: a rate of the same number finds it again.
        self.limiter = limiter(&rules, Some(&self.limiter));
        let counted = Counted::new(&rules.set, self.exchanges.len());
        for (exchange, met) in self.exchanges.iter().zip(&counted.met) {
            let tables = Arc::clone(&rules.tables);
            exchange.leave(Judge::new(tables, Arc::clone(&self.limiter), Arc::clone(met)));
        }
        Next {
            rules,
            counted,
            generation: generations.publish(),
        }
    }

    /// A line for whoever looks on, when rules have come into force or were refused.
    pub fn says(&mut self) -> Option<String> {
        self.book.says()
    }

    fn totals(&self) -> Totals {
        let mut totals = self.settled.clone();
        self.current.add_to(&mut totals);
        // Some tasks may have it already.
        if let Some(next) = &self.next {
            next.counted.add_to(&mut totals);
        }
        totals
    }

    /// How the rules stand, for whoever watches.
    pub fn told(&self) -> RulesInForce {
        self.book.told(&self.totals())
    }

    /// What all rules met.
    pub fn judged(&self) -> Judged {
        self.book.judged(&self.totals())
    }
}

/// The groups of the rates of these rules: those that there were.
fn limiter(rules: &Rules, before: Option<&Arc<Limiter>>) -> Arc<Limiter> {
    let is_rate = |action: &Action| matches!(action, Action::Limit(_));
    let has_rates = rules.set.rules.iter().any(|rule| is_rate(&rule.action));
    match before {
        Some(before) if !has_rates || before.entries() > WAYS => Arc::clone(before),
        _ => Arc::new(Limiter::new(
            if has_rates { GROUPS } else { WAYS },
            Limiter::seed(),
        )),
    }
}
