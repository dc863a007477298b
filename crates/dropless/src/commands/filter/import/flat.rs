//! Chains made into one list of rules, in which the first that decides counts.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use rules::{End, Fragment, Layer, Prefix, RULES_MAX, Rate, Verdict};

use super::conditions::{Addresses, Conditions, Unfit};
use super::ruleset::{Chain, Hook, Meant, Part, Rule, Ruleset, Target};

/// Chains that jump into each other so deep.
const DEPTH_MAX: usize = 16;
/// Rules of chains that are written out, over and over.
const WRITTEN_MAX: usize = 100_000;
/// More addresses than these become a set with a name.
const INLINE_MAX: usize = 8;

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
    let does_nothing =
        |chain: &&Chain| chain.rules.is_empty() && matches!(chain.base, Some((_, Verdict::Allow)));
    let all: Vec<&Chain> = set.chains.iter().filter(is_here).filter(is_named).collect();
    ensure!(
        !all.is_empty(),
        "no filter chain has the hook {}{}; --chain and --table choose another",
        hook.name(),
        table.map_or_else(String::new, |table| format!(" in table {table}"))
    );
    let busy: Vec<&Chain> = all.iter().copied().filter(|chain| !does_nothing(chain)).collect();
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
    for chain in &chosen {
        flat.base(chain)?;
    }
    Ok(flat.finish(&chosen))
}

struct Walk<'r> {
    set: &'r Ruleset,
    hook: Hook,
    /// Chains of several families go into one list.
    is_joined: bool,
    sets: Vec<(String, Vec<Prefix>)>,
    /// What was found out about chains, by table and name.
    simple: HashMap<(String, String), Result<usize, String>>,
    /// Rules of chains that were jumped to.
    written: usize,
    lines: Vec<Line>,
}

impl<'r> Walk<'r> {
    fn new(set: &'r Ruleset, hook: Hook, is_joined: bool) -> Self {
        Self {
            set,
            hook,
            is_joined,
            sets: Vec::new(),
            simple: HashMap::new(),
            written: 0,
            lines: Vec::new(),
        }
    }

    fn beside(&mut self) {
        for (place, text, why) in &self.set.beside {
            self.left_out((place, text), why.clone(), Meant::Other);
        }
    }

    fn left_out(&mut self, (place, text): (&str, &str), why: String, meant: Meant) {
        self.lines.push(Line::LeftOut {
            place: place.to_owned(),
            text: text.to_owned(),
            why,
            meant,
        });
    }

    fn rule(&mut self, action: &str, when: &Conditions, place: &str) -> Result<()> {
        ensure!(
            self.lines.len() < RULES_MAX,
            "more than {RULES_MAX} rules; put their addresses into sets"
        );
        let mut when = when.clone();
        for choice in [&mut when.source, &mut when.destination].into_iter().flatten() {
            self.name(choice);
        }
        self.lines.push(Line::Rule {
            text: format!("{action}{}", when.text()),
            place: place.to_owned(),
            denies: !action.starts_with("allow"),
        });
        Ok(())
    }

    /// Gives sets of many addresses a name, each set one.
    fn name(&mut self, choice: &mut Addresses) {
        if choice.of.len() <= INLINE_MAX {
            choice.name = None;
            return;
        }
        if let Some((name, _)) = self.sets.iter().find(|(_, of)| *of == choice.of) {
            choice.name = Some(name.clone());
            return;
        }
        let is_good = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let told = choice.name.as_deref().unwrap_or_default();
        let mut name: String = told.chars().filter(is_good).collect();
        if name.is_empty() || self.sets.iter().any(|(known, _)| *known == name) {
            name = format!("{name}set{}", self.sets.len() + 1);
        }
        self.sets.push((name.clone(), choice.of.clone()));
        choice.name = Some(name);
    }

    fn base(&mut self, chain: &Chain) -> Result<()> {
        let policy = chain.base.as_ref().map_or(Verdict::Allow, |(_, policy)| *policy);
        let all = match chain.layer {
            Some(layer) if self.is_joined => Conditions::of_layer(layer),
            _ => Conditions::default(),
        };
        for rule in &chain.rules {
            let Some(parts) = self.parts(rule) else { continue };
            let may_limit = parts.len() == 1;
            for part in parts {
                let when = match all.and(&part.when) {
                    Ok(when) => when,
                    Err(unfit) => {
                        self.unfit(rule, unfit);
                        continue;
                    }
                };
                match &part.then {
                    Target::Decide(_) | Target::Return => {
                        let verdict = if let Target::Decide(verdict) = part.then {
                            verdict
                        } else {
                            policy
                        };
                        self.rule(word(verdict), &when, &rule.place)?;
                        if when == all {
                            return Ok(());
                        }
                    }
                    Target::Limit(rate) if may_limit => {
                        self.rule(&limit(rate), &when, &rule.place)?;
                    }
                    Target::Limit(_) => {
                        self.not_simple(rule, "its rate is one for several conditions together");
                    }
                    Target::Jump(name) | Target::Goto(name) => {
                        let is_goto = matches!(part.then, Target::Goto(_));
                        match self.simple(&chain.table, name) {
                            Ok(_) => {
                                self.inline((&chain.table, name), &when)?;
                                if is_goto {
                                    self.rule(word(policy), &when, &rule.place)?;
                                }
                            }
                            Err(why) => self.not_simple(rule, &why),
                        }
                    }
                }
            }
        }
        if self.is_joined {
            self.rule(word(policy), &all, "policy")?;
        }
        Ok(())
    }

    fn not_simple(&mut self, rule: &Rule, why: &str) {
        self.left_out((&rule.place, &rule.text), why.to_owned(), rule.meant);
    }

    fn unfit(&mut self, rule: &Rule, unfit: Unfit) {
        if let Unfit::Why(why) = unfit {
            self.left_out((&rule.place, &rule.text), why, rule.meant);
        }
    }

    /// What a rule does, where that can be taken over.
    fn parts<'s>(&mut self, rule: &'s Rule) -> Option<&'s [Part]> {
        let parts = match &rule.parts {
            Ok(parts) => parts,
            Err(why) => {
                self.unfit(rule, why.clone());
                return None;
            }
        };
        let asks_fragment = parts.iter().any(|part| part.when.fragment.is_some());
        if asks_fragment && (self.hook == Hook::Input || self.set.defragments) {
            let why = "the kernel has put fragments together before it asks this chain, and here each is judged by itself";
            self.not_simple(rule, why);
            return None;
        }
        Some(parts)
    }

    fn chain(&self, table: &str, name: &str) -> Option<&'r Chain> {
        let is_it = |chain: &&Chain| chain.table == table && chain.name == name;
        self.set.chains.iter().find(is_it)
    }

    /// Whether a chain can be written out in the place of a jump to it; how deep it jumps.
    fn simple(&mut self, table: &str, name: &str) -> Result<usize, String> {
        let key = (table.to_owned(), name.to_owned());
        if let Some(found) = self.simple.get(&key) {
            return found.clone();
        }
        // Until that is known: who comes here again goes in a circle.
        let circle = format!("chain {name} jumps to itself");
        self.simple.insert(key.clone(), Err(circle));
        let found = self.look_at(table, name);
        self.simple.insert(key, found.clone());
        found
    }

    fn look_at(&mut self, table: &str, name: &str) -> Result<usize, String> {
        let chain = self
            .chain(table, name)
            .ok_or_else(|| format!("there is no chain {name}"))?;
        let mut depth = 0;
        for rule in &chain.rules {
            let parts = match &rule.parts {
                Ok(parts) => parts,
                Err(Unfit::Why(_)) if rule.meant == Meant::Elsewhere => {
                    return Err(format!(
                        "chain {name} goes elsewhere on a condition that cannot be taken over ({})",
                        rule.place
                    ));
                }
                Err(_) => continue,
            };
            for part in parts {
                match &part.then {
                    Target::Decide(_) => {}
                    Target::Return if part.when == Conditions::default() => return Ok(depth),
                    Target::Return => {
                        return Err(format!("chain {name} returns on a condition ({})", rule.place));
                    }
                    Target::Goto(_) => return Err(format!("chain {name} has a goto ({})", rule.place)),
                    Target::Limit(_) => return Err(format!("chain {name} limits a rate ({})", rule.place)),
                    Target::Jump(next) => depth = depth.max(self.simple(table, next)? + 1),
                }
            }
        }
        if depth > DEPTH_MAX {
            return Err(format!("chains jump into each other more than {DEPTH_MAX} deep"));
        }
        Ok(depth)
    }

    /// A simple chain's rules, each with the conditions of the jump to it.
    fn inline(&mut self, (table, name): (&str, &str), all: &Conditions) -> Result<()> {
        let Some(chain) = self.chain(table, name) else {
            return Ok(());
        };
        for rule in &chain.rules {
            self.written += 1;
            ensure!(
                self.written < WRITTEN_MAX,
                "chains that jump into each other stand for more than {WRITTEN_MAX} rules"
            );
            let Some(parts) = self.parts(rule) else { continue };
            for part in parts {
                let when = match all.and(&part.when) {
                    Ok(when) => when,
                    Err(unfit) => {
                        self.unfit(rule, unfit);
                        continue;
                    }
                };
                match &part.then {
                    Target::Decide(verdict) => {
                        self.rule(word(*verdict), &when, &rule.place)?;
                        if when == *all {
                            return Ok(());
                        }
                    }
                    Target::Jump(next) => self.inline((table, next), &when)?,
                    // A chain with another target is not simple, but for one that ends it.
                    Target::Return | Target::Goto(_) | Target::Limit(_) => return Ok(()),
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, chosen: &[&Chain]) -> Flat {
        let policy = |chain: &&Chain| chain.base.as_ref().map_or(Verdict::Allow, |(_, policy)| *policy);
        let default = if self.is_joined {
            Verdict::Allow
        } else {
            policy(&chosen[0])
        };
        // What the kernel's chain is never asked about passes.
        let mut not_asked = vec!["allow non-ip"];
        if let [only] = chosen {
            match only.layer {
                Some(Layer::V4) => not_asked.push("allow ip6"),
                Some(Layer::V6) => not_asked.push("allow ip4"),
                _ => {}
            }
        }
        let first = not_asked.into_iter().map(|text| Line::Rule {
            text: text.to_owned(),
            place: format!("no chain for {} sees it", self.hook.name()),
            denies: false,
        });
        self.lines.splice(0..0, first);
        let told = |chain: &&Chain| {
            let policy = if policy(chain) == Verdict::Allow {
                "accept"
            } else {
                "drop"
            };
            format!("{} {} (policy {policy})", chain.table, chain.name)
        };
        Flat {
            sets: self.sets,
            lines: self.lines,
            default,
            from: chosen.iter().map(told).collect(),
        }
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny => "deny",
    }
}

fn limit(rate: &Rate) -> String {
    let of = match rate.of {
        End::Source => "source",
        End::Destination => "destination",
    };
    format!(
        "rate {}pps per {of}/{},{} burst {}",
        rate.per_second, rate.v4_len, rate.v6_len, rate.burst
    )
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

/// Fragments that no single word of ours names.
pub const NOT_LATER: [Fragment; 2] = [Fragment::Not, Fragment::First];
