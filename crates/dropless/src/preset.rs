//! `--config FILE`: flags of a subcommand out of a TOML file, put in front of those on the command line, so that one
//! parser checks all.

mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use crate::{about, complaint};
use table::{Entry, FLAG};

/// A subcommand, by its words.
type Words = &'static [&'static str];

/// The subcommands that take it.
const COMMANDS: [Words; 7] = [
    &["send"],
    &["search"],
    &["reflect"],
    &["capture"],
    &["forward"],
    &["filter", "run"],
    &["guard"],
];

/// A command line whose flags stand in it, those of a file, too.
#[derive(Debug, Default)]
pub struct Expanded {
    /// What is parsed.
    pub arguments: Vec<OsString>,
    /// What the file gave.
    from_file: Vec<Entry>,
    file: PathBuf,
    /// What is wrong with the first of its values that the parser refuses.
    pub refused: Option<String>,
}

/// Adds the flag to the commands that have it.
pub fn augment(command: Command) -> Command {
    COMMANDS
        .iter()
        .fold(command, |command, words| with_flag(command, words))
}

fn with_flag(command: Command, words: &[&str]) -> Command {
    match words {
        [] => command.arg(
            Arg::new(FLAG)
                .long(FLAG)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help_heading("Output")
                .help("Read further flags from this TOML file, e.g. name = \"before\"; those given here win over it"),
        ),
        [first, rest @ ..] => command.mut_subcommand(*first, |command| with_flag(command, rest)),
    }
}

/// The arguments with those of the file that `--config` names, if one does.
pub fn expand(command: fn() -> Command, arguments: Vec<OsString>) -> Result<Expanded> {
    let plain = |arguments| Expanded {
        arguments,
        ..Expanded::default()
    };
    let is_flag = |argument: &OsString| argument.to_string_lossy().starts_with("--config");
    if !arguments.iter().any(is_flag) {
        return Ok(plain(arguments));
    }
    let Some((words, command, matches)) = asked(&command(), &arguments) else {
        return Ok(plain(arguments));
    };
    let Some(file) = matches.get_one::<PathBuf>(FLAG) else {
        return Ok(plain(arguments));
    };
    ensure!(
        report::input::is_there(file)?,
        "--{FLAG} {}: there is no such file",
        file.display()
    );
    let text = report::input::text_file(file).map_err(|error| {
        let (file, why) = (file.display(), error.without_path());
        anyhow!("--{FLAG} {file}: {why}; name a file of flags in TOML")
    })?;
    let mut entries = table::entries(file, &text, &command)?;
    entries.retain(|entry| is_open(&command, &matches, &entry.flag));
    // One by one, so that a value that was typed is not taken for the file's.
    let refused = entries.iter().find_map(|entry| {
        let line = complaint::of_usage(&mut entry.refusal(&command)?, words)?;
        Some(format!("{}:{}: {line}", file.display(), entry.line))
    });
    let (own, given) = arguments.split_at(1 + words.len());
    let preset = entries
        .iter()
        .flat_map(|entry| entry.arguments.iter().map(OsString::from));
    Ok(Expanded {
        arguments: own
            .iter()
            .cloned()
            .chain(preset)
            .chain(given.iter().cloned())
            .collect(),
        file: file.clone(),
        refused,
        from_file: entries,
    })
}

/// The subcommand with `--config` that these arguments name, in which words, and what they give it; `None` also where they
/// are so wrong that the parser is to say so.
fn asked(command: &Command, arguments: &[OsString]) -> Option<(Words, Command, ArgMatches)> {
    let named = |words: &&Words| {
        let given = arguments.iter().skip(1).take(words.len());
        given.eq(words.iter())
    };
    let words = COMMANDS.iter().find(named)?;
    let mut command = command;
    for word in *words {
        command = command.find_subcommand(word)?;
    }
    // What the file holds may be what is missing here.
    let lenient = command.clone().ignore_errors(true).no_binary_name(true);
    let own = arguments.iter().skip(1 + words.len());
    let matches = lenient.try_get_matches_from(own).ok()?;
    Some((words, command.clone(), matches))
}

/// Whether neither the flag nor one that excludes it stands on the command line, which wins.
fn is_open(command: &Command, matches: &ArgMatches, flag: &str) -> bool {
    let is_given = |argument: &Arg| {
        let id = argument.get_id().as_str();
        matches!(matches.try_contains_id(id), Ok(true))
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let Some(own) = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(flag))
    else {
        return true;
    };
    let excludes = |one: &Arg, other: &Arg| {
        let conflicts = command.get_arg_conflicts_with(one);
        conflicts
            .iter()
            .any(|conflict| conflict.get_id() == other.get_id())
    };
    let closes = |given: &Arg| given.get_id() == own.get_id() || excludes(own, given) || excludes(given, own);
    !command
        .get_arguments()
        .any(|argument| is_given(argument) && closes(argument))
}

impl Expanded {
    /// Where in the file that stands which the parser refuses beside something else, with a colon and a space; empty
    /// where it does not stand there. Values were looked at before.
    pub fn place_of_conflict(&self, error: &clap::Error) -> String {
        if error.kind() != ErrorKind::ArgumentConflict {
            return String::new();
        }
        let named = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| error.get(kind));
        let is_named = |entry: &Entry| {
            named.iter().flatten().any(|named| match named {
                ContextValue::String(one) => *one == entry.shown,
                ContextValue::Strings(all) => all.contains(&entry.shown),
                _ => false,
            })
        };
        self.place(is_named)
    }

    /// The same of what a command refuses, which says itself which flag that is about.
    pub fn place_of(&self, error: &Error) -> String {
        let flag = about::flag(error).and_then(|flag| flag.strip_prefix("--"));
        self.place(|entry| Some(entry.flag.as_str()) == flag)
    }

    fn place(&self, is_about: impl Fn(&Entry) -> bool) -> String {
        let found = self.from_file.iter().find(|entry| is_about(entry));
        found.map_or_else(String::new, |entry| {
            format!("{}:{}: ", Path::display(&self.file), entry.line)
        })
    }

    /// Whether standard output is for programs: asked here, since the arguments themselves may be wrong.
    pub fn is_json(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--json")
    }
}
