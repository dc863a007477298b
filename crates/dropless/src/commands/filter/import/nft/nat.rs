//! Chains of the type nat: what they do before filter chains are asked.

use rules::Verdict;
use serde_json::Value;

use super::super::conditions::Unfit;
use super::super::ruleset::{Beside, Chain, Meant, Translated};
use super::{EARLIER, only};

/// What a rule translates before the filter chains are asked: by itself, or by a target of iptables.
pub fn translates(rule: &Value, chain: &Chain) -> Option<Translated> {
    let hook = chain.base.as_ref().map(|(hook, _)| hook.as_str());
    let statements = rule["expr"].as_array().into_iter().flatten();
    let mut targets = statements.filter_map(|statement| match only(statement)? {
        ("xt", target) => target["name"].as_str().map(str::to_owned),
        (own, _) => Some(own.to_uppercase()),
    });
    targets.find_map(|target| Translated::by(&target, hook))
}

/// Chains and rules for prerouting that let packets go no further.
pub fn drops(chains: &[Chain]) -> Vec<Beside> {
    let mut told = Vec::new();
    for chain in chains {
        match &chain.base {
            Some((hook, Verdict::Deny)) if hook == "prerouting" => {
                let place = format!("chain {} {}", chain.table, chain.name);
                told.push(Beside::new(place, "its policy", EARLIER));
            }
            Some((hook, _)) if hook == "prerouting" => {
                let drops = chain.rules.iter().filter(|rule| {
                    rule.meant == Meant::Decide(Verdict::Deny) && !matches!(rule.parts, Err(Unfit::Never))
                });
                told.extend(drops.map(|rule| Beside::new(rule.place.clone(), &rule.text, EARLIER)));
            }
            _ => {}
        }
    }
    told
}
