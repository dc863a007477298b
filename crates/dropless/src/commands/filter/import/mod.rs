//! `dropless filter import`: rules of nftables or iptables in our language.

mod common;
mod conditions;
mod flat;
mod iptables;
mod names;
mod nft;
mod ruleset;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueHint;
use report::number::counted;
use report::out;

use flat::{Flat, Line};
use ruleset::Hook;

/// Exit code where something was left out.
const EXIT_LEFT_OUT: u8 = 1;
/// Bytes that are read: half a million elements of sets have about 20 million.
const TEXT_MAX: u64 = 256 << 20;
/// Addresses in a line.
const LINE: usize = 8;

/// Print the rules of nftables or iptables in the language of rule files
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  nft -j list ruleset | dropless filter import - > edge.rules
  iptables-save | dropless filter import - --dev eth1 > edge.rules
What cannot be taken over is told on standard error and as a comment in the output: never is a rule
taken over that would mean something else.
Exit codes: 0 all rules were taken over; 1 some were left out; 2 the file cannot be read.")]
pub struct Args {
    /// Output of nft -j list ruleset, iptables-save or ip6tables-save, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Which packets the rules are for
    #[arg(long, value_enum, default_value = "input")]
    chain: Hook,
    /// Table to import, such as `filter` or `inet filter`, where several judge the same packets
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Interface that the rules are for: conditions on interfaces are decided by it
    #[arg(long, value_name = "IF")]
    dev: Option<String>,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let (name, text) = read(&args.file)?;
    let imported = import(&name, &text, args)?;
    out::print_stderr(&imported.told)?;
    out::print_stdout(&imported.rules)?;
    Ok(if imported.told.is_empty() {
        0
    } else {
        EXIT_LEFT_OUT
    })
}

fn read(path: &Path) -> Result<(String, String)> {
    let (name, file): (String, Box<dyn Read>) = if path == Path::new("-") {
        let stdin = io::stdin();
        ensure!(
            !stdin.is_terminal(),
            "standard input is a terminal; pipe the output of `nft -j list ruleset` or `iptables-save` into it"
        );
        ("standard input".into(), Box::new(stdin))
    } else {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        (name, Box::new(file))
    };
    let mut text = String::new();
    let read = file.take(TEXT_MAX + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {name}"))?;
    ensure!(
        text.len() as u64 <= TEXT_MAX,
        "{name} has more than {} MiB",
        TEXT_MAX >> 20
    );
    Ok((name, text))
}

/// A rule file, and what is not in it; empty if that is nothing.
pub(super) struct Imported {
    pub(super) rules: String,
    told: String,
}

fn import(name: &str, text: &str, args: &Args) -> Result<Imported> {
    let imported = translate(name, text, args)?;
    // What the kernel's chain takes must be good here, too.
    rules::parse(name, &|_| Ok(imported.rules.clone())).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow!(
            "the imported rules are no good ones; please report this:\n{}",
            lines.join("\n")
        )
    })?;
    Ok(imported)
}

/// The rules in our language, which are good ones: the fuzzer holds that against any text.
pub(super) fn translate(name: &str, text: &str, args: &Args) -> Result<Imported> {
    let device = args.dev.as_deref();
    ensure!(
        !text.trim().is_empty(),
        "{name} is empty: this machine has no rules of that kind, or they need root to be seen"
    );
    let set = if text.trim_start().starts_with('{') {
        nft::read(text, device)
    } else if text.lines().any(|line| line.starts_with('*')) {
        iptables::read(text, device)
    } else {
        bail!("{name} is neither JSON of `nft -j list ruleset` nor text of `iptables-save`")
    };
    let set = set.with_context(|| name.to_owned())?;
    let flat = flat::flatten(&set, args.chain, args.table.as_deref()).with_context(|| name.to_owned())?;
    Ok(print(name, &flat))
}

fn print(name: &str, flat: &Flat) -> Imported {
    let mut text = String::new();
    for from in &flat.from {
        let _ = writeln!(text, "# Imported from {}", clean(from));
    }
    text += "# The kernel asked its chain about packets whose IP header it had checked, whose way it had chosen, and whose\n";
    text += "# IPv4 fragments for this host it had put together; here every frame of an interface is judged by itself, and\n";
    text += "# a malformed one meets no rule with conditions. Authentication headers of IPv6 are looked through: rules meet\n";
    text += "# what stands behind them, where nftables sees protocol 51.\n";
    for (name, of) in &flat.sets {
        let lines: Vec<_> = of
            .chunks(LINE)
            .map(|some| {
                some.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            })
            .collect();
        let _ = writeln!(text, "define {name} = {}", lines.join(",\n  "));
    }
    let (mut told, mut left_out) = (String::new(), 0_u64);
    for (at, line) in flat.lines.iter().enumerate() {
        match line {
            Line::Rule {
                text: rule, place, ..
            } => {
                let _ = writeln!(text, "{rule:<50} # {}", clean(place));
            }
            Line::LeftOut {
                place,
                text: rule,
                why,
                ..
            } => {
                left_out += 1;
                let (place, rule, why) = (clean(place), clean(rule), clean(why));
                let then = flat.consequence(at);
                let _ = writeln!(text, "# LEFT OUT, {place}: {rule}\n#   {why}; {then}");
                let _ = writeln!(told, "{name}: {place}: left out: {rule}\n  {why}; {then}");
            }
        }
    }
    let _ = writeln!(
        text,
        "{:<50} # policy",
        format!("default {}", flat.default.word())
    );
    if left_out > 0 {
        let _ = writeln!(told, "{} left out", counted(left_out, "rule"));
    }
    Imported { rules: text, told }
}

/// On one line: what others wrote ends no comment.
fn clean(text: &str) -> String {
    let visible = |letter: char| {
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{85}') {
            ' '
        } else {
            letter
        }
    };
    text.chars().map(visible).collect()
}
