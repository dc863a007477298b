//! `dropless filter check`: what is wrong with a rule file.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueHint;
use report::number::counted;
use report::out::Console;
use rules::check::{Never, never};
use rules::{Problem, RuleSet, Tables};
use serde::Serialize;

use crate::plan;

/// Version of what `--json` prints.
const VERSION: u32 = 1;
/// Exit code where rules are never met.
const EXIT_NEVER: u8 = 1;
/// And where there are mistakes.
const EXIT_MISTAKES: u8 = 2;

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
    mistakes: Vec<Mistake>,
}

#[derive(Serialize)]
struct Mistake {
    file: String,
    line: u32,
    column: u32,
    what: String,
}

#[derive(Serialize)]
struct NeverMet {
    file: String,
    line: u32,
    rule: String,
    /// The rule that decides about all of its packets; else no packet fulfils its conditions.
    behind: Option<Behind>,
    /// None but later fragments does.
    but_later_fragments: bool,
}

#[derive(Serialize)]
struct Behind {
    file: String,
    line: u32,
    rule: String,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let console = Console::json_or_text(args.json);
    let set = match plan::rules::check(&args.rules)? {
        Ok(set) => set,
        Err(problems) => return mistakes(&problems, console),
    };
    Tables::new(&set)?;
    let checked = Checked {
        version: VERSION,
        rules: set.rules.len(),
        mistakes: Vec::new(),
        never: never(&set)
            .into_iter()
            .map(|(rule, why)| told(&set, rule, why))
            .collect(),
    };
    console.either(&checked, &checked.text())?;
    Ok(if checked.never.is_empty() { 0 } else { EXIT_NEVER })
}

/// Each on a line of its own, as compilers tell them: `FILE:LINE:COLUMN: what`.
fn mistakes(problems: &[Problem], console: Console) -> Result<u8> {
    let mistake = |problem: &Problem| Mistake {
        file: problem.file.clone(),
        line: problem.line,
        column: problem.column,
        what: problem.what.clone(),
    };
    let checked = Checked {
        version: VERSION,
        rules: 0,
        never: Vec::new(),
        mistakes: problems.iter().map(mistake).collect(),
    };
    if console.json {
        console.object(&checked)?;
    } else {
        for problem in problems {
            console.error(&problem.to_string());
        }
        console.error(&counted(problems.len() as u64, "mistake"));
    }
    Ok(EXIT_MISTAKES)
}

fn told(set: &RuleSet, rule: usize, why: Never) -> NeverMet {
    let place = |rule: usize| {
        let rule = &set.rules[rule];
        let place = set.place(rule);
        (place.file.to_owned(), place.line, rule.text.clone())
    };
    let behind = match why {
        Never::Impossible | Never::LookedThrough => None,
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
        but_later_fragments: why == Never::LookedThrough,
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
            but_later_fragments,
        } in &self.never
        {
            let why = match behind {
                None if *but_later_fragments => {
                    "of IPv6 this extension header is looked through, and rules meet what stands behind it (of later fragments alone it is all that is known); ask for that, or for `fragment later`".to_owned()
                }
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
