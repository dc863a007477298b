//! `dropless report`: shows what runs left behind, and compares them.

pub mod args;

use anyhow::{Result, bail, ensure};
use report::compare::fail_if::{Judgement, Rule};
use report::compare::settings::differing;
use report::export::Shown;
use report::input::clean;
use report::load::{self, Loaded};
use report::out::{Console, print_stdout};

pub use args::Args;
use args::Output;

use crate::EXIT_INVALID;

/// Every run is a row or a line at least; more of them are not read.
const RUNS_MAX: usize = 1000;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let rules = args
        .fail_if
        .iter()
        .map(|text| text.parse::<Rule>())
        .collect::<Result<Vec<_>, _>>()?;
    ensure!(
        rules.is_empty() || args.runs.len() > 1,
        "--fail-if compares the last RUN with the first, and there is one only; name the baseline before it"
    );
    ensure!(
        args.runs.len() <= RUNS_MAX,
        "{} runs are too many for one report; name {RUNS_MAX} or fewer",
        args.runs.len()
    );
    // All are read before anything is written: one that is not there leaves nothing half-drawn.
    let runs = load::all(&args.runs)?;
    let failed = judge(&rules, &runs)?;
    let unlike = if rules.is_empty() {
        Vec::new()
    } else {
        differing(&runs.iter().collect::<Vec<_>>())
    };
    let console = Console::json_or_text(args.output.is_json());
    show(args, &runs, &failed, console)?;
    for line in &failed {
        console.error(&format!("dropless: worse: {line}"));
    }
    for setting in unlike {
        let (Some(first), Some(last)) = (setting.values.first(), setting.values.last()) else {
            continue;
        };
        if first != last {
            console.error(&format!(
                "note: not made alike: {} was {first} and is {last}",
                setting.name
            ));
        }
    }
    // Nothing was measured to the end.
    if !runs.iter().any(Loaded::has_ended) {
        return Ok(EXIT_INVALID);
    }
    Ok(u8::from(!failed.is_empty()))
}

/// The lines of the rules that failed.
fn judge(rules: &[Rule], runs: &[Loaded]) -> Result<Vec<String>> {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return Ok(Vec::new());
    };
    let mut failed = Vec::new();
    let doubtful = [first, last].into_iter().find(|run| run.is_invalid());
    if let Some(run) = doubtful.filter(|_| !rules.is_empty()) {
        bail!(
            "cannot judge --fail-if: {} is INVALID or did not end, and its figures must not be believed; fix: measure again",
            run.in_words()
        );
    }
    for rule in rules {
        match rule.judge(first, last) {
            Judgement::Holds(_) => {}
            Judgement::Failed(line) => failed.push(line),
            Judgement::Unknown(line) => bail!("cannot judge --fail-if {line}"),
        }
    }
    Ok(failed)
}

fn show(args: &Args, runs: &[Loaded], failed: &[String], console: Console) -> Result<()> {
    let Output { export, file } = &args.output;
    let shown = Shown {
        runs,
        failed,
        is_list: args.list,
        style: console.style(),
    };
    match file {
        Some(path) if path.as_os_str() != "-" => {
            export.write(path, &shown)?;
            console.human(&format!("report: {}\n", clean(&path.display().to_string())))?;
        }
        _ => print_stdout(&(export.render)(&shown)?)?,
    }
    Ok(())
}
