//! Chains of the type nat: what they, and those that they lead to, do beside the filter chains.

use std::collections::{BTreeSet, HashMap};

use rules::Verdict;
use serde_json::Value;

use super::super::conditions::Unfit;
use super::super::ruleset::{Beside, Chain, Translated};
use super::sets::Sets;
use super::{aside, only, place_of};

/// Where a chain is: its table, and its name there.
type Place<'r> = (&'r str, &'r str);

/// What rules do that the kernel may come to from a chain of the type nat.
pub struct Rules<'s> {
    /// A rule that asks a named map leads to all of its values.
    sets: &'s Sets<'s>,
    taken: Vec<Taken>,
}

/// A rule that some packet may meet.
struct Taken {
    table: String,
    chain: String,
    place: String,
    text: String,
    leads_to: Vec<String>,
    targets: Vec<String>,
    denies: bool,
}

impl<'s> Rules<'s> {
    pub const fn new(sets: &'s Sets<'s>) -> Self {
        Self {
            sets,
            taken: Vec::new(),
        }
    }

    /// Takes note of a rule of `home`, and of what was read of it.
    pub fn take(&mut self, rule: &Value, home: &Chain, read: &super::Rule) {
        if matches!(read.parts, Err(Unfit::Never)) {
            return;
        }
        let statements = || rule["expr"].as_array().into_iter().flatten();
        let verdicts: Vec<&Value> = statements()
            .flat_map(|statement| self.verdicts(&home.table, statement))
            .collect();
        let leads_to = verdicts.iter().filter_map(|verdict| match only(verdict)? {
            ("jump" | "goto", to) => to["target"].as_str().map(str::to_owned),
            _ => None,
        });
        let is_denial = |verdict: &&Value| matches!(only(verdict), Some(("drop" | "reject", _)));
        let targets = statements().filter_map(|statement| match only(statement)? {
            ("xt", target) => target["name"].as_str().map(str::to_owned),
            (own, _) => Some(own.to_uppercase()),
        });
        self.taken.push(Taken {
            table: home.table.clone(),
            chain: home.name.clone(),
            place: read.place.clone(),
            text: read.text.clone(),
            leads_to: leads_to.collect(),
            targets: targets.collect(),
            denies: verdicts.iter().any(is_denial),
        });
    }

    /// A statement itself, where it is none that looks verdicts up: then all of these.
    fn verdicts<'v>(&'v self, table: &str, statement: &'v Value) -> Vec<&'v Value> {
        let Some(("vmap", map)) = only(statement) else {
            return vec![statement];
        };
        let named = map["data"].as_str().and_then(|name| name.strip_prefix('@'));
        let elements = named.map_or(map["data"].get("set"), |name| self.sets.map_now(table, name));
        let elements = elements.and_then(Value::as_array).into_iter().flatten();
        elements.filter_map(|element| element.get(1)).collect()
    }

    /// For which hooks the kernel may come from chains of the type nat to each chain.
    fn hooks<'r>(&'r self, nats: &'r [Chain]) -> HashMap<Place<'r>, BTreeSet<&'r str>> {
        let mut hooks: HashMap<Place<'_>, BTreeSet<&str>> = HashMap::new();
        let mut next: Vec<(Place<'_>, &str)> = nats
            .iter()
            .filter_map(|chain| {
                Some((
                    (chain.table.as_str(), chain.name.as_str()),
                    chain.base.as_ref()?.0.as_str(),
                ))
            })
            .collect();
        while let Some((place, hook)) = next.pop() {
            if hooks.entry(place).or_default().insert(hook) {
                let here = self.taken.iter().filter(|rule| rule.is_in(place));
                let ways = here.flat_map(|rule| &rule.leads_to);
                next.extend(ways.map(|to| ((place.0, to.as_str()), hook)));
            }
        }
        hooks
    }

    /// What is told of them, and of policies: what is translated before the filter chains are
    /// asked, or dropped before or behind them.
    pub fn beside(&self, nats: &[Chain]) -> Vec<Beside> {
        let hooks = self.hooks(nats);
        let policies = nats.iter().filter_map(|chain| match &chain.base {
            Some((hook, Verdict::Deny)) => aside(hook, place_of(chain), "its policy"),
            _ => None,
        });
        // What nothing leads to is never asked.
        let asked = self.taken.iter().filter_map(|rule| {
            let place = (rule.table.as_str(), rule.chain.as_str());
            Some((rule, hooks.get(&place)?))
        });
        let of_rules = asked.flat_map(|(rule, hooks)| {
            let mut hooks = hooks.iter().copied();
            if rule.denies {
                let drops = hooks.filter_map(|hook| aside(hook, rule.place.clone(), &rule.text));
                return drops.collect::<Vec<_>>();
            }
            let of = hooks.find_map(|hook| {
                let mut targets = rule.targets.iter();
                targets.find_map(|target| Translated::by(target, Some(hook)))
            });
            let told = of.map(|of| Beside::translation(rule.place.clone(), &rule.text, of));
            told.into_iter().collect()
        });
        policies.chain(of_rules).collect()
    }
}

impl Taken {
    fn is_in(&self, (table, chain): Place<'_>) -> bool {
        self.table == table && self.chain == chain
    }
}
