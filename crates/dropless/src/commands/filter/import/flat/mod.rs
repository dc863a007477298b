//! Chains made into one list of rules, in which the first that decides counts.

mod simple;
mod walk;

use anyhow::{Result, ensure};
use rules::{Prefix, Verdict};

use super::ruleset::{Chain, Hook, Meant, Ruleset};
use walk::Walk;

/// A line of what was imported.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Rule {
        text: String,
        place: String,
        denies: bool,
    },
    LeftOut {
        place: String,
        text: String,
        why: String,
        meant: Meant,
    },
}

/// Rules in our language.
#[derive(Debug)]
pub struct Flat {
    /// Names and what they stand for.
    pub sets: Vec<(String, Vec<Prefix>)>,
    pub lines: Vec<Line>,
    pub default: Verdict,
    /// What they come from, for people.
    pub from: Vec<String>,
}

/// Makes one list of the chains for `hook`, those of `table` if one is named.
pub fn flatten(set: &Ruleset, hook: Hook, table: Option<&str>) -> Result<Flat> {
    let is_named = |chain: &&Chain| {
        let name = chain.table.split_once(' ').map_or("", |(_, name)| name);
        table.is_none_or(|table| table == chain.table || table == name)
    };
    let is_here = |chain: &&Chain| chain.base.as_ref().is_some_and(|(at, _)| at == hook.name());
    let all: Vec<&Chain> = set.chains.iter().filter(is_here).filter(is_named).collect();
    ensure!(
        !all.is_empty(),
        "no filter chain in force has the hook {}{}; --chain and --table choose another",
        hook.name(),
        table.map_or_else(String::new, |table| format!(" in table {table}"))
    );
    let busy: Vec<&Chain> = all
        .iter()
        .copied()
        .filter(|chain| !chain.does_nothing())
        .collect();
    let chosen = if busy.is_empty() { vec![all[0]] } else { busy };
    for (at, one) in chosen.iter().enumerate() {
        for two in &chosen[at + 1..] {
            ensure!(
                one.layer.is_some() && two.layer.is_some() && one.layer != two.layer,
                "both {} {} and {} {} judge the same packets, and a packet passes only if both let it; import them one by one with --table",
                one.table,
                one.name,
                two.table,
                two.name
            );
        }
    }
    let mut flat = Walk::new(set, hook, chosen.len() > 1);
    flat.beside();
    let rests: Vec<Verdict> = chosen
        .iter()
        .map(|chain| flat.base(chain))
        .collect::<Result<_>>()?;
    Ok(flat.finish(&chosen, &rests))
}

impl Flat {
    /// What leaving out line `at` means for packets that it would have met.
    pub fn consequence(&self, at: usize) -> &'static str {
        let Line::LeftOut { meant, .. } = &self.lines[at] else {
            return "";
        };
        let below = |denies_wanted: bool| {
            let is_one = |line: &Line| matches!(line, Line::Rule { denies, .. } if *denies == denies_wanted);
            self.lines[at..].iter().any(is_one) || (self.default == Verdict::Deny) == denies_wanted
        };
        match meant {
            Meant::Decide(Verdict::Allow) if below(true) => {
                "what it accepted meets the rules below, and may be DENIED by them"
            }
            Meant::Decide(Verdict::Deny) if below(false) => {
                "what it dropped meets the rules below, and may be ALLOWED by them"
            }
            Meant::Decide(_) => "the rules below do the same with what it met",
            Meant::Elsewhere | Meant::Other => "what it met is judged by the rules below alone",
        }
    }
}
