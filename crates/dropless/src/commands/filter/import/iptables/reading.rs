//! A rule's words, one after another: what it asks, and what it does.

use rules::{Flags, Fragment, Layer, Verdict};

use super::super::common::{NOT_LATER, device, product, then};
use super::super::conditions::{Choice, Conditions, Read, Unfit, unfit};
use super::super::names::protocol;
use super::super::ruleset::{Part, Target};
use super::limit::Limit;
use super::values::{flags, port_list, prefix, range_of, types};
use super::{REST, Scope, is_target};

/// What a rule asks and does so far.
#[derive(Default)]
struct Reading {
    all: Vec<Conditions>,
    target: Option<Target>,
    does_nothing: bool,
    limit: Limit,
}

/// What a rule of these words does with which packets.
pub fn parts(words: &[&str], scope: &Scope<'_>) -> Read<Vec<Part>> {
    let mut reading = Reading {
        all: vec![Conditions::default()],
        ..Reading::default()
    };
    let mut words = words.iter().copied();
    let mut never = false;
    while let Some(word) = words.next() {
        let not = word == "!";
        let word = if not {
            words.next().unwrap_or_default()
        } else {
            word
        };
        match reading.take(word, not, &mut words, scope) {
            // What follows may still be something that is not known here, but no packet comes so far.
            Err(Unfit::Never) => never = true,
            done => done?,
        }
    }
    if never {
        return Err(Unfit::Never);
    }
    reading.finish(scope)
}

impl Reading {
    #[allow(clippy::too_many_lines, reason = "one arm for each word that is known")]
    fn take<'w>(
        &mut self,
        word: &str,
        not: bool,
        words: &mut impl Iterator<Item = &'w str>,
        scope: &Scope<'_>,
    ) -> Read<()> {
        let mut value = || match words.next() {
            Some(value) => Ok(value),
            None => unfit(format!("`{word}` without a value")),
        };
        let is_v6 = scope.layer == Layer::V6;
        let when = Conditions::default();
        let choice = |of| Some(Choice { of, not, name: None });
        let ports = |of| Some(Choice { of, not, name: None });
        let alternatives = match word {
            "-s" | "-d" | "--src-range" | "--dst-range" => {
                let text = value()?;
                let of = if word.starts_with("--") {
                    range_of(text)?
                } else {
                    vec![prefix(text)?]
                };
                if of.iter().any(|prefix| prefix.is_v6() != is_v6) {
                    return unfit("an address of the other family");
                }
                let is_source = word == "-s" || word == "--src-range";
                let (source, destination) = if is_source {
                    (choice(of), None)
                } else {
                    (None, choice(of))
                };
                vec![Conditions {
                    source,
                    destination,
                    ..when
                }]
            }
            "-p" if not => return unfit("our language has no protocols that must not be"),
            "-p" => {
                let name = value()?;
                // 0 stands for all of them there.
                let Some(number) = protocol(name).filter(|number| *number != 0) else {
                    return unfit(format!("the protocol {name}"));
                };
                vec![Conditions::of_protocol(number)]
            }
            "-i" => {
                device((value()?, REST), !not, scope.device)?;
                return Ok(());
            }
            "-f" => {
                let of = |part| Conditions {
                    fragment: Some(part),
                    ..Conditions::default()
                };
                if not {
                    NOT_LATER.map(of).into()
                } else {
                    vec![of(Fragment::Later)]
                }
            }
            "--sport" | "--source-port" | "--sports" | "--source-ports" => {
                vec![Conditions {
                    source_port: ports(port_list(value()?)?),
                    ..when
                }]
            }
            "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
                vec![Conditions {
                    destination_port: ports(port_list(value()?)?),
                    ..when
                }]
            }
            "--ports" if !not => {
                let of = port_list(value()?)?;
                let source_port = ports(of.clone());
                vec![
                    Conditions {
                        source_port,
                        ..Conditions::default()
                    },
                    Conditions {
                        destination_port: ports(of),
                        ..when
                    },
                ]
            }
            "--tcp-flags" if !not => {
                let (mask, value) = (flags(value()?)?, flags(value()?)?);
                if value & !mask != 0 {
                    return Err(Unfit::Never);
                }
                vec![Conditions {
                    flags: Some(Flags { mask, value }),
                    ..Conditions::of_protocol(6)
                }]
            }
            "--icmp-type" | "--icmpv6-type" => {
                let types = types(value()?, not)?;
                vec![Conditions {
                    types,
                    ..Conditions::of_protocol(if is_v6 { 58 } else { 1 })
                }]
            }
            "-m" => match value()? {
                "tcp" | "udp" | "sctp" | "icmp" | "icmp6" | "multiport" => vec![Conditions {
                    has_header: true,
                    ..when
                }],
                name => return module(name),
            },
            "--comment" | "--log-prefix" | "--log-level" | "--reject-with" => return value().map(drop),
            "--log-tcp-sequence" | "--log-tcp-options" | "--log-ip-options" | "--log-uid"
            | "--log-macdecode" => {
                return Ok(());
            }
            "-j" | "-g" => {
                let name = value()?;
                return self.target(word, name);
            }
            _ if !not && word.starts_with("--hashlimit-") => {
                let name = value()?;
                return self.limit.take(word, name, scope.limits);
            }
            _ => {
                return unfit(format!(
                    "`{}{word}` is not in our language",
                    if not { "! " } else { "" }
                ));
            }
        };
        if self.limit.is_asked {
            // It counts only what met the conditions before it.
            return unfit("a condition behind a rate");
        }
        let all = product(&self.all, &alternatives);
        // Where no packet is left, none is for what follows either.
        self.all = match &all {
            Err(Unfit::Never) => Vec::new(),
            _ => all?,
        };
        if self.all.is_empty() {
            Err(Unfit::Never)
        } else {
            Ok(())
        }
    }

    fn target(&mut self, word: &str, name: &str) -> Read<()> {
        self.target = Some(match (word, name) {
            ("-g", name) => Target::Goto(name.to_owned()),
            (_, "ACCEPT") => Target::Decide(Verdict::Allow),
            (_, "DROP" | "REJECT") => Target::Decide(Verdict::Deny),
            (_, "RETURN") => Target::Return,
            (_, "LOG" | "NFLOG") => {
                self.does_nothing = true;
                return Ok(());
            }
            (_, name) if is_target(name) => return unfit(format!("the target {name}")),
            (_, name) => Target::Jump(name.to_owned()),
        });
        Ok(())
    }

    fn finish(self, scope: &Scope<'_>) -> Read<Vec<Part>> {
        let Some(target) = self.target else {
            return Ok(Vec::new());
        };
        if self.does_nothing {
            return Ok(Vec::new());
        }
        let above = self.limit.is_asked.then(|| self.limit.finish(scope));
        let then = then(target, above)?;
        let part = |when| Part {
            when,
            then: then.clone(),
        };
        Ok(self.all.into_iter().map(part).collect())
    }
}

/// Other extensions whose words are known here; all that are not are told.
fn module(name: &str) -> Read<()> {
    match name {
        "iprange" | "comment" | "hashlimit" => Ok(()),
        "conntrack" | "state" => unfit("connections are not tracked here: each packet is judged by itself"),
        "limit" => unfit(
            "`limit` is for all packets of the rule together, and our rates are for each source or destination",
        ),
        "set" => unfit(
            "the addresses of an ipset are not in this file; write them into a list, for `define NAME = file \"LIST\"`",
        ),
        name => unfit(format!("`-m {name}` is not in our language")),
    }
}
