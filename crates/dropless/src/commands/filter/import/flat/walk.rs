//! Chains rule by rule, and what is written of them.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use rules::{End, Layer, Prefix, RULES_MAX, Rate, Verdict};

use super::super::common::NOT_LATER;
use super::super::conditions::{Addresses, Conditions, Unfit};
use super::super::ruleset::{Chain, Hook, Meant, Part, Rule, Ruleset, Target};
use super::{Flat, Line};

/// The protocol number of authentication headers (RFC 4302).
const AUTHENTICATION: u8 = 51;
/// Rules of chains that are written out, over and over.
const WRITTEN_MAX: usize = 100_000;
/// More addresses than these become a set with a name.
const INLINE_MAX: usize = 8;

pub struct Walk<'r> {
    pub(super) set: &'r Ruleset,
    hook: Hook,
    /// The family that the chain at hand is for.
    layer: Option<Layer>,
    /// Chains of several families go into one list.
    is_joined: bool,
    sets: Vec<(String, Vec<Prefix>)>,
    /// What was found out about chains, by table and name.
    pub(super) simple: HashMap<(String, String), Result<usize, String>>,
    /// Rules of chains that were jumped to.
    written: usize,
    lines: Vec<Line>,
}

impl<'r> Walk<'r> {
    pub fn new(set: &'r Ruleset, hook: Hook, is_joined: bool) -> Self {
        Self {
            set,
            hook,
            layer: None,
            is_joined,
            sets: Vec::new(),
            simple: HashMap::new(),
            written: 0,
            lines: Vec::new(),
        }
    }

    pub fn beside(&mut self) {
        for one in &self.set.beside {
            if one.only.is_none_or(|only| only == self.hook) {
                self.left_out((&one.place, &one.text), one.why.clone(), Meant::Other);
            }
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

    /// Whether the chain at hand is asked about fragments, each by itself.
    fn sees_fragments(&self) -> bool {
        let layer = self.layer.unwrap_or(Layer::V4);
        // IPv6 is put together behind the chain for this host.
        (self.hook == Hook::Forward || layer == Layer::V6) && !self.set.defragments.contains(&layer)
    }

    /// Whether these are conditions that our language has no single rule for.
    fn is_for_two(&self, when: &Conditions) -> bool {
        when.has_header && !when.asks_header() && when.fragment.is_none() && self.sees_fragments()
    }

    fn rule(&mut self, action: &str, when: &Conditions, place: &str) -> Result<()> {
        if !self.is_for_two(when) {
            return self.line(action, when.clone(), place);
        }
        NOT_LATER.into_iter().try_for_each(|part| {
            let fragment = Some(part);
            let when = Conditions {
                fragment,
                ..when.clone()
            };
            self.line(action, when, place)
        })
    }

    fn line(&mut self, action: &str, mut when: Conditions, place: &str) -> Result<()> {
        ensure!(
            self.lines.len() < RULES_MAX,
            "more than {RULES_MAX} rules; put their addresses into sets"
        );
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
        let is_taken = |name: &str| name.is_empty() || self.sets.iter().any(|(known, _)| known == name);
        if is_taken(&name) {
            // Sets of theirs may have such a name, too.
            let mut numbered = (self.sets.len() + 1..).map(|number| format!("{name}set{number}"));
            name = numbered.find(|name| !is_taken(name)).unwrap_or_default();
        }
        self.sets.push((name.clone(), choice.of.clone()));
        choice.name = Some(name);
    }

    /// Writes a base chain's rules; the result is what becomes of packets that none with conditions decides about.
    pub fn base(&mut self, chain: &Chain) -> Result<Verdict> {
        self.layer = chain.layer;
        let policy = chain.base.as_ref().map_or(Verdict::Allow, |(_, policy)| *policy);
        let all = match chain.layer {
            Some(layer) if self.is_joined => Conditions::of_layer(layer),
            _ => Conditions::default(),
        };
        for rule in &chain.rules {
            let Some(parts) = self.parts(rule) else { continue };
            let may_limit = parts.len() == 1;
            for part in parts {
                let Some(when) = self.joined(rule, &all, part) else {
                    continue;
                };
                match &part.then {
                    Target::Decide(_) | Target::Return => {
                        let verdict = if let Target::Decide(verdict) = part.then {
                            verdict
                        } else {
                            policy
                        };
                        self.rule(verdict.word(), &when, &rule.place)?;
                        if when == all {
                            return Ok(verdict);
                        }
                    }
                    Target::Limit(rate) if may_limit && !self.is_for_two(&when) => {
                        self.rule(&limit(rate), &when, &rule.place)?;
                    }
                    Target::Limit(_) => {
                        self.not_simple(rule, "its rate is one for several conditions together");
                    }
                    Target::Jump(name) | Target::Goto(name) => {
                        let is_goto = matches!(part.then, Target::Goto(_));
                        match self.simple(&chain.table, name) {
                            Ok(_) => {
                                let mut decided = self.inline((&chain.table, name), &when)?;
                                if is_goto && decided.is_none() {
                                    self.rule(policy.word(), &when, &rule.place)?;
                                    decided = Some(policy);
                                }
                                if let Some(verdict) = decided.filter(|_| when == all) {
                                    return Ok(verdict);
                                }
                            }
                            Err(why) => self.not_simple(rule, &why),
                        }
                    }
                }
            }
        }
        if self.is_joined {
            self.rule(policy.word(), &all, "policy")?;
        }
        Ok(policy)
    }

    /// The conditions of a part and of the way to it; of authentication headers of IPv6 it is told that none is met.
    fn joined(&mut self, rule: &Rule, all: &Conditions, part: &Part) -> Option<Conditions> {
        let mut when = match all.and(&part.when) {
            Ok(when) => when,
            Err(unfit) => {
                self.unfit(rule, unfit);
                return None;
            }
        };
        let family = when.family().or(self.layer);
        let asked = when
            .protocols
            .as_mut()
            .filter(|asked| asked.contains(&AUTHENTICATION));
        if let Some(asked) = asked.filter(|_| family != Some(Layer::V4)) {
            let why = "authentication headers of IPv6 are looked through here, as other extension headers, and not there";
            self.not_simple(rule, why);
            if family == Some(Layer::V6) {
                asked.remove(&AUTHENTICATION);
            }
            return (!asked.is_empty()).then_some(when);
        }
        Some(when)
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
        if asks_fragment && !self.sees_fragments() {
            let why = "the kernel has put fragments together before it asks this chain, and here each is judged by itself";
            self.not_simple(rule, why);
            return None;
        }
        Some(parts)
    }

    /// Writes a simple chain's rules, each with the conditions of the jump to it; the result is what becomes of all
    /// packets that come to its end, if it decides about them.
    fn inline(&mut self, (table, name): (&str, &str), all: &Conditions) -> Result<Option<Verdict>> {
        let Some(chain) = self.chain(table, name) else {
            return Ok(None);
        };
        for rule in &chain.rules {
            self.written += 1;
            ensure!(
                self.written < WRITTEN_MAX,
                "chains that jump into each other stand for more than {WRITTEN_MAX} rules"
            );
            let Some(parts) = self.parts(rule) else { continue };
            for part in parts {
                let Some(when) = self.joined(rule, all, part) else {
                    continue;
                };
                match &part.then {
                    Target::Decide(verdict) => {
                        self.rule(verdict.word(), &when, &rule.place)?;
                        if when == *all {
                            return Ok(Some(*verdict));
                        }
                    }
                    Target::Jump(next) => {
                        let decided = self.inline((table, next), &when)?;
                        if decided.is_some() && when == *all {
                            return Ok(decided);
                        }
                    }
                    // A chain with another target is not simple, but for one that ends it.
                    Target::Return | Target::Goto(_) | Target::Limit(_) => return Ok(None),
                }
            }
        }
        Ok(None)
    }

    /// `rests` is what became of the rest of each chain's packets.
    pub fn finish(mut self, chosen: &[&Chain], rests: &[Verdict]) -> Flat {
        let policy = |chain: &&Chain| chain.base.as_ref().map_or(Verdict::Allow, |(_, policy)| *policy);
        let default = match chosen {
            [only] => policy(only),
            // Malformed packets alone come so far, of which it is not known to which family's chain they belong.
            _ if rests.contains(&Verdict::Deny) => Verdict::Deny,
            _ => Verdict::Allow,
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
            place: "not for the chain that is imported".to_owned(),
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
