//! Arguments of `dropless report`.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use report::export::{self, Export};

/// Show runs as a page, in the terminal or for programs, and compare them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless report runs/2025-11-20T23-30-45Z-send     in this terminal
  dropless report runs/2025-11-20T23-30-45Z-send --html run.html
                                                     one page with charts, needs no network
  dropless report before after --html both.html      two runs and their differences
  dropless report before after --fail-if 'loss worse 10%' --fail-if 'latency_p99 worse 5us'
                                                     a gate for CI: exit 1 when it is worse
  dropless report runs/*                             a list of all, the newest last
  dropless report old.csv.zst --html old.html        intervals of the older dpdk-project

Two to four runs of one kind that ended are laid side by side in the terminal; others are listed, each a line, also what did not end or cannot be read.

Exit codes: 0 shown; 1 shown, and a --fail-if failed; 2 could not be read, compared or written, or no RUN ended.")]
pub struct Args {
    /// Run directories, or files of intervals (CSV, plain or zstd); the first is what others are compared with
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// The form, and where to.
    #[command(flatten)]
    pub output: Output,
    /// List the runs, a row each, also where they could be shown in full or compared
    #[arg(long, help_heading = "Output", conflicts_with_all = ["html", "csv"])]
    pub list: bool,
    /// Exit 1 if the last RUN is worse than the first, e.g. 'loss worse 10%', 'rate_rx worse 5%'; repeat for several
    #[arg(long = "fail-if", value_name = "RULE", help_heading = "Comparison")]
    pub fail_if: Vec<String>,
}

/// In which form, and where to: a flag for each that `report` knows.
#[derive(Debug)]
pub struct Output {
    /// The form.
    pub export: &'static Export,
    /// The file; standard output without one.
    pub file: Option<PathBuf>,
}

impl Output {
    /// Whether programs read standard output.
    pub fn is_json(&self) -> bool {
        self.export.name == export::json::EXPORT.name
    }
}

fn flag(export: &Export) -> Arg {
    let others = export::ALL.iter().map(|other| other.name);
    let flag = Arg::new(export.name)
        .long(export.name)
        .help(export.help)
        .help_heading("Output")
        .conflicts_with_all(others.filter(|other| *other != export.name));
    match export.file {
        Some(_) => flag.value_name("FILE").value_parser(ValueParser::path_buf()),
        None => flag.action(ArgAction::SetTrue),
    }
}

impl clap::Args for Output {
    fn augment_args(command: Command) -> Command {
        command.args(export::ALL.iter().copied().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Output {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let file = |export: &Export| match export.file {
            Some(_) => matches.get_one::<PathBuf>(export.name).cloned(),
            None => None,
        };
        let is_asked = |export: &&&Export| match export.file {
            Some(_) => file(export).is_some(),
            None => matches.get_flag(export.name),
        };
        let export = export::ALL
            .iter()
            .find(is_asked)
            .copied()
            .unwrap_or(export::DEFAULT);
        Ok(Self {
            export,
            file: file(export),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
