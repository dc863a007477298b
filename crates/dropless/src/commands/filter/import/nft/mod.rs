//! What `nft -j list ruleset` prints, as chains.
//!
//! The JSON is walked as it is: a rule with a part that is not known here, be it one key, is told and left out, and the
//! others are taken.

mod matches;
mod nat;
mod rate;
mod sets;
mod values;

use std::cell::Cell;
use std::collections::HashMap;

use anyhow::{Context, Result, anyhow};
use rules::{Layer, Verdict};
use serde_json::Value;

use super::common::{PARTS_MAX, is_named, product, then};
use super::conditions::{Conditions, Read, Unfit, unfit};
use super::ruleset::{Beside, Chain, Hook, Meant, Part, Rule, Ruleset, Target};
use sets::Sets;

/// Bytes of a rule that are shown.
const SHOWN_MAX: usize = 400;

/// At the end of an interface's name it stands for any rest.
const REST: char = '*';

/// Reads a ruleset; `device` is the interface that the rules are for.
pub fn read(text: &str, device: Option<&str>) -> Result<Ruleset> {
    let all: Value = serde_json::from_str(text)
        .context("this is no JSON; make it by `nft -j list ruleset`, which ends without an error")?;
    let objects = all.get("nftables").and_then(Value::as_array);
    let objects = objects
        .ok_or_else(|| anyhow!("this JSON has no list `nftables`; make it by `nft -j list ruleset`"))?;
    let changing =
        objects
            .iter()
            .filter_map(|object| object.get("rule"))
            .fold(HashMap::new(), |mut changing, rule| {
                let table = table_of(rule);
                for statement in rule["expr"].as_array().into_iter().flatten() {
                    if let Some(name) = statement["set"]["set"].as_str() {
                        *changing
                            .entry((table.clone(), name.trim_start_matches('@').to_owned()))
                            .or_insert(0) += 1;
                    }
                }
                changing
            });
    let sets = Sets::new(objects, changing);
    let mut into = Ruleset::default();
    let follows = ["ct", "ct count", "nat", "flow", "synproxy", "tproxy", "socket"];
    if follows.iter().any(|word| text.contains(&format!("\"{word}\""))) {
        into.defragments = [Layer::V4, Layer::V6].into();
    }
    let tables = objects.iter().filter_map(|object| object.get("table"));
    let dormant: Vec<String> = tables.filter(|table| is_dormant(table)).map(name_of).collect();
    for table in &dormant {
        let why = "it is dormant: the kernel asks none of its chains";
        into.beside
            .push(Beside::new(format!("table {table}"), "all of it", why));
    }
    let chains = objects.iter().filter_map(|object| object.get("chain"));
    let (mut nats, mut others, mut before) = (Vec::new(), Vec::new(), nat::Rules::new(&sets));
    for object in chains.filter(|chain| !dormant.contains(&table_of(chain))) {
        let of_kind = match (object["family"].as_str(), object["type"].as_str()) {
            (Some("arp" | "bridge"), _) => &mut others,
            (_, Some("nat")) => &mut nats,
            (_, Some("filter") | None) => &mut into.chains,
            (_, Some(_)) => continue,
        };
        of_kind.extend(chain(object, device));
    }
    for rule in objects.iter().filter_map(|object| object.get("rule")) {
        let (table, name) = (table_of(rule), rule["chain"].as_str().unwrap_or_default());
        let home = into
            .chains
            .iter_mut()
            .chain(&mut nats)
            .chain(&mut others)
            .find(|chain| chain.table == table && chain.name == name);
        if let Some(home) = home {
            let layer = home.layer;
            let scope = Scope {
                table,
                layer,
                sets: &sets,
                device,
                names_ports: Cell::new(false),
                family: Cell::new(layer),
            };
            let read = self::rule(rule, &scope);
            before.take(rule, home, &read);
            home.rules.push(read);
        }
    }
    beside(&mut into);
    into.beside.extend(before.beside(&nats));
    into.beside.extend(others.iter().filter_map(of_frames));
    Ok(into)
}

/// What rules of a chain go by.
pub struct Scope<'s> {
    table: String,
    layer: Option<Layer>,
    sets: &'s Sets<'s>,
    device: Option<&'s str>,
    /// The rule has named protocols, all of which have ports.
    names_ports: Cell<bool>,
    /// The family that the rule's conditions so far are for.
    family: Cell<Option<Layer>>,
}

/// Family and name of the table that something is in.
fn table_of(object: &Value) -> String {
    family_and(object, "table")
}

/// The same of the table itself.
fn name_of(table: &Value) -> String {
    family_and(table, "name")
}

fn family_and(object: &Value, key: &str) -> String {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    format!("{} {}", text("family"), text(key))
}

/// Flags of a table or set.
fn flags(object: &Value) -> impl Iterator<Item = &str> {
    list(&object["flags"]).iter().filter_map(Value::as_str)
}

/// What stands there: newer versions of nft print a single value without a list.
fn list(told: &Value) -> &[Value] {
    told.as_array().map_or(std::slice::from_ref(told), Vec::as_slice)
}

/// Whether a table is out of force. nft 1.0.6 takes the number of this flag for that of a family, and prints `inet`.
fn is_dormant(table: &Value) -> bool {
    flags(table).any(|flag| matches!(flag, "dormant" | "inet"))
}

/// A chain of a family that is known, unless it is only for other interfaces than `device`.
fn chain(object: &Value, device: Option<&str>) -> Option<Chain> {
    let layer = match object["family"].as_str()? {
        "inet" | "netdev" | "arp" | "bridge" => None,
        "ip" => Some(Layer::V4),
        "ip6" => Some(Layer::V6),
        _ => return None,
    };
    let hook = object["hook"].as_str();
    if device.is_some_and(|device| is_elsewhere(object, device)) {
        return None;
    }
    let policy = match object["policy"].as_str() {
        Some("drop") => Verdict::Deny,
        _ => Verdict::Allow,
    };
    Some(Chain {
        table: table_of(object),
        name: object["name"].as_str()?.to_owned(),
        layer,
        base: hook.map(|hook| (hook.to_owned(), policy)),
        rules: Vec::new(),
    })
}

/// Whether a chain names interfaces, and this one is not among them.
fn is_elsewhere(object: &Value, device: &str) -> bool {
    match &object["dev"] {
        Value::String(name) => !is_named(device, name, REST),
        Value::Array(names) => {
            let is_here = |name: &Value| name.as_str().is_some_and(|name| is_named(device, name, REST));
            !names.iter().any(is_here)
        }
        _ => false,
    }
}

const LATER: &str = "it is asked later than the chain that is imported, and may drop what that accepts";

/// Filter chains of hooks that are never imported.
fn beside(set: &mut Ruleset) {
    for chain in set.chains.iter().filter(|chain| !chain.does_nothing()) {
        let asked = chain.base.as_ref().filter(|(hook, _)| hook != "input");
        set.beside
            .extend(asked.and_then(|(hook, _)| aside(hook, place_of(chain), "all of it")));
    }
}

/// What drops packets at this hook before they come to the chains for input and forward, or behind these.
fn aside(hook: &str, place: String, text: &str) -> Option<Beside> {
    let (why, only) = match hook {
        "prerouting" | "ingress" => ("it is asked earlier than the chain that is imported", None),
        "postrouting" | "egress" => (LATER, Some(Hook::Forward)),
        "input" => (LATER, Some(Hook::Input)),
        _ => return None,
    };
    Some(Beside {
        only,
        ..Beside::new(place, text, why)
    })
}

/// A chain of the families arp and bridge: packets that come in meet it whether or not they are IP.
fn of_frames(chain: &Chain) -> Option<Beside> {
    let (hook, _) = chain.base.as_ref().filter(|_| !chain.does_nothing())?;
    let only = match hook.as_str() {
        "output" if chain.table.starts_with("arp ") => return None,
        "output" | "postrouting" => Some(Hook::Forward),
        _ => None,
    };
    let why = "it judges ARP, or frames of a bridge: only chains that judge IP are taken over";
    Some(Beside {
        only,
        ..Beside::new(place_of(chain), "all of it", why)
    })
}

fn place_of(chain: &Chain) -> String {
    format!("chain {} {}", chain.table, chain.name)
}

fn rule(object: &Value, scope: &Scope<'_>) -> Rule {
    let statements = object["expr"].as_array().map_or(&[][..], Vec::as_slice);
    let handle = object["handle"].as_u64().unwrap_or_default();
    let mut text = String::new();
    if let Some(comment) = object["comment"].as_str() {
        text = format!("{comment:?} ");
    }
    text += &serde_json::to_string(statements).unwrap_or_default();
    if text.len() > SHOWN_MAX {
        let end = (0..=SHOWN_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text += "...";
    }
    Rule {
        place: format!(
            "{} chain {} handle {handle}",
            scope.table,
            object["chain"].as_str().unwrap_or_default()
        ),
        text,
        parts: parts(statements, scope),
        meant: meant(statements),
    }
}

/// What the rule does at its end.
fn meant(statements: &[Value]) -> Meant {
    let has = |keys: &[&str]| {
        let named = |statement: &Value| keys.iter().any(|key| statement.get(key).is_some());
        statements.iter().any(named)
    };
    if has(&["accept"]) {
        Meant::Decide(Verdict::Allow)
    } else if has(&["drop", "reject"]) {
        Meant::Decide(Verdict::Deny)
    } else if has(&["jump", "goto", "return", "vmap"]) {
        Meant::Elsewhere
    } else {
        Meant::Other
    }
}

/// The one key of an object, and what stands there.
fn only(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(key, value)| (key.as_str(), value))
}

/// All that a rule's statements do.
fn parts(statements: &[Value], scope: &Scope<'_>) -> Read<Vec<Part>> {
    let does_nothing = |statement: &Value| {
        only(statement).is_some_and(|(key, _)| matches!(key, "match" | "counter" | "log" | "comment"))
    };
    if statements.iter().all(does_nothing) {
        return Ok(Vec::new());
    }
    let mut all = vec![Conditions::default()];
    let mut limit = None;
    for (at, statement) in statements.iter().enumerate() {
        let Some((key, value)) = only(statement) else {
            return unfit("a statement that is not known here");
        };
        let is_last = at + 1 == statements.len();
        let target = match key {
            "counter" | "log" | "comment" => continue,
            "match" if limit.is_some() => return unfit("a condition behind a rate"),
            "match" => {
                all = product(&all, &matches::alternatives(value, scope)?)?;
                scope.family.set(all[0].family().or(scope.layer));
                continue;
            }
            "set" | "meter" if limit.is_none() => {
                let (conditions, rate) = rate::rate(key, value, scope)?;
                all = product(&all, &[conditions])?;
                limit = Some(rate);
                continue;
            }
            "vmap" if is_last && limit.is_none() => return by_map(&all, value, scope),
            _ => {
                let target = verdict(key, value)?;
                if !is_last {
                    return unfit(format!("`{key}` before the end of a rule"));
                }
                if key == "reject" {
                    all = product(&all, &[answered(value, scope)?])?;
                }
                target
            }
        };
        let then = then(target, limit.map(Ok))?;
        let part = |when| Part {
            when,
            then: then.clone(),
        };
        return Ok(all.into_iter().map(part).collect());
    }
    unfit("a statement that our language has not, with no verdict behind it")
}

fn verdict(key: &str, value: &Value) -> Read<Target> {
    let name = || match value["target"].as_str() {
        Some(name) => Ok(name.to_owned()),
        None => unfit("a jump without a target"),
    };
    match key {
        "accept" => Ok(Target::Decide(Verdict::Allow)),
        "drop" | "reject" => Ok(Target::Decide(Verdict::Deny)),
        "return" => Ok(Target::Return),
        "jump" => Ok(Target::Jump(name()?)),
        "goto" => Ok(Target::Goto(name()?)),
        "limit" => unfit(
            "`limit` is for all packets of the rule together, and our rates are for each source or destination",
        ),
        "xt" => unfit(
            "an extension of iptables, whose values nft does not tell; import the output of iptables-save",
        ),
        other => unfit(format!("`{other}` is not in our language")),
    }
}

/// Which packets a `reject` is for by its answer: nft leaves out the conditions before it that its answer says, too.
fn answered(value: &Value, scope: &Scope<'_>) -> Read<Conditions> {
    let layer = match value["type"].as_str() {
        None | Some("icmpx") => return Ok(Conditions::default()),
        Some("tcp reset") => return Ok(Conditions::of_protocol(6)),
        Some("icmp") => Layer::V4,
        Some("icmpv6") => Layer::V6,
        Some(other) => return unfit(format!("the answer `{other}`")),
    };
    Ok(if scope.layer == Some(layer) {
        Conditions::default()
    } else {
        Conditions::of_layer(layer)
    })
}

/// A verdict for each value of a key: no two of its elements hold for one packet.
fn by_map(all: &[Conditions], value: &Value, scope: &Scope<'_>) -> Read<Vec<Part>> {
    let elements = match &value["data"] {
        Value::String(name) => scope.sets.map(&scope.table, name)?,
        data => data["set"].as_array().map_or(&[][..], Vec::as_slice),
    };
    if elements.len() > PARTS_MAX {
        return unfit(format!("a map of more than {PARTS_MAX} values"));
    }
    let mut parts = Vec::new();
    for element in elements {
        let Some([found, then]) = element.as_array().map(Vec::as_slice) else {
            return unfit("a map whose elements are not known here");
        };
        let Some((key, target)) = only(then) else {
            return unfit("a verdict that is not known here");
        };
        // nft lists it beside the others, whichever of them a packet has met.
        if found == "*" || found["elem"]["val"] == "*" {
            return unfit("a map with an element for all other values");
        }
        let asked = serde_json::json!({ "op": "==", "left": value["key"], "right": found });
        let met = matches::alternatives(&asked, scope).and_then(|some| product(all, &some));
        let met = match met {
            // Such as another interface's: the other elements still hold.
            Err(Unfit::Never) => continue,
            met => met?,
        };
        let then = verdict(key, target)?;
        parts.extend(met.into_iter().map(|when| Part {
            when,
            then: then.clone(),
        }));
    }
    Ok(parts)
}
