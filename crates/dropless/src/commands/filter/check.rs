//! `dropless filter check`: what is wrong with a rule file.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueHint;
use report::number::counted;
use report::out::Console;
use rules::check::{Never, never};
use rules::{RuleSet, Tables};
use serde::Serialize;

use crate::plan;

/// Version of what `--json` prints.
const VERSION: u32 = 1;
/// Exit code where rules are never met.
const EXIT_NEVER: u8 = 1;

/// Read a rule file: say what is wrong, and which rules can never be met
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the rules are good; 1 they are, but some are never met;
2 they cannot be read: each mistake with its file, line and column."
)]
pub struct Args {
    /// Rule file
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    rules: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Checked {
    version: u32,
    rules: usize,
    never: Vec<NeverMet>,
}

#[derive(Serialize)]
struct NeverMet {
    file: String,
    line: u32,
    rule: String,
    /// The rule that decides about all of its packets; else no packet fulfils its conditions.
    behind: Option<Behind>,
}

#[derive(Serialize)]
struct Behind {
    file: String,
    line: u32,
    rule: String,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let set = plan::rules::read(&args.rules)?;
    Tables::new(&set)?;
    let checked = Checked {
        version: VERSION,
        rules: set.rules.len(),
        never: never(&set)
            .into_iter()
            .map(|(rule, why)| told(&set, rule, why))
            .collect(),
    };
    Console::json_or_text(args.json).either(&checked, &checked.text())?;
    Ok(if checked.never.is_empty() { 0 } else { EXIT_NEVER })
}

fn told(set: &RuleSet, rule: usize, why: Never) -> NeverMet {
    let place = |rule: usize| {
        let rule = &set.rules[rule];
        (set.files[rule.place.0].clone(), rule.place.1, rule.text.clone())
    };
    let behind = match why {
        Never::Impossible => None,
        Never::Behind(earlier) => {
            let (file, line, rule) = place(earlier);
            Some(Behind { file, line, rule })
        }
    };
    let (file, line, rule) = place(rule);
    NeverMet {
        file,
        line,
        rule,
        behind,
    }
}

impl Checked {
    fn text(&self) -> String {
        let mut text = String::new();
        for NeverMet {
            file,
            line,
            rule,
            behind,
        } in &self.never
        {
            let why = match behind {
                None => "no packet fulfils all its conditions; remove it".to_owned(),
                Some(Behind { file, line, rule }) => {
                    format!(
                        "{file}:{line} (`{rule}`) decides about all its packets; put it before that, or remove it"
                    )
                }
            };
            let _ = writeln!(text, "{file}:{line}: `{rule}` is never met: {why}");
        }
        text + &format!(
            "{}, {} never met\n",
            counted(self.rules as u64, "rule"),
            self.never.len()
        )
    }
}
