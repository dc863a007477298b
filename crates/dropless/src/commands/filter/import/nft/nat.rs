//! Chains of the type nat: what they, and those that they lead to, do before filter chains are asked.

use std::collections::{BTreeSet, HashMap};

use rules::Verdict;
use serde_json::Value;

use super::super::conditions::Unfit;
use super::super::ruleset::{Beside, Chain, Meant, Translated};
use super::sets::Sets;
use super::{EARLIER, only};

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
        let mut leads_to = Vec::new();
        self.chains_in(&home.table, &rule["expr"], &mut leads_to);
        let statements = rule["expr"].as_array().into_iter().flatten();
        let targets = statements.filter_map(|statement| match only(statement)? {
            ("xt", target) => target["name"].as_str().map(str::to_owned),
            (own, _) => Some(own.to_uppercase()),
        });
        self.taken.push(Taken {
            table: home.table.clone(),
            chain: home.name.clone(),
            place: read.place.clone(),
            text: read.text.clone(),
            leads_to,
            targets: targets.collect(),
            denies: read.meant == Meant::Decide(Verdict::Deny),
        });
    }

    /// The chains that verdicts in `value` name, be it by a map.
    fn chains_in(&self, table: &str, value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.chains_in(table, value, into)),
            Value::Object(object) => {
                let of_verdict = ["jump", "goto"].iter().filter_map(|key| object.get(*key));
                into.extend(
                    of_verdict
                        .filter_map(|to| to["target"].as_str())
                        .map(str::to_owned),
                );
                object
                    .values()
                    .for_each(|value| self.chains_in(table, value, into));
            }
            Value::String(name) => {
                let named = name.strip_prefix('@');
                if let Some(values) = named.and_then(|name| self.sets.map_now(table, name)) {
                    self.chains_in(table, values, into);
                }
            }
            _ => {}
        }
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

    /// What is told of them, and of policies: what is translated or dropped before the filter chains are asked.
    pub fn beside(&self, nats: &[Chain]) -> Vec<Beside> {
        let hooks = self.hooks(nats);
        let policies = nats
            .iter()
            .filter(|chain| matches!(&chain.base, Some((hook, Verdict::Deny)) if hook == "prerouting"));
        let policies = policies.map(|chain| {
            Beside::new(
                format!("chain {} {}", chain.table, chain.name),
                "its policy",
                EARLIER,
            )
        });
        let of_rules = self.taken.iter().filter_map(|rule| {
            // What nothing leads to is never asked.
            let hooks = hooks.get(&(rule.table.as_str(), rule.chain.as_str()))?;
            let place = rule.place.clone();
            if rule.denies {
                let is_earlier = hooks.contains("prerouting");
                return is_earlier.then(|| Beside::new(place, &rule.text, EARLIER));
            }
            let by = |target: &String| hooks.iter().find_map(|hook| Translated::by(target, Some(*hook)));
            let of = rule.targets.iter().find_map(by)?;
            Some(Beside::translation(place, &rule.text, of))
        });
        policies.chain(of_rules).collect()
    }
}

impl Taken {
    fn is_in(&self, (table, chain): Place<'_>) -> bool {
        self.table == table && self.chain == chain
    }
}
