//! The table of a `--config` file, key by key.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use host::nearest::nearest;
use report::input::clean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The one flag that no file holds: it names it.
pub const FLAG: &str = "config";

/// A key of the file.
#[derive(Debug)]
pub struct Entry {
    /// Its flag, without dashes.
    pub flag: String,
    /// Where it stands, from 1.
    pub line: usize,
    /// How the parser shows it: `--rate <RATE>`.
    pub shown: String,
    /// What it is on the command line.
    pub arguments: Vec<String>,
}

/// All keys of `text`, which is what `file` holds, by their order there.
pub fn entries(file: &Path, text: &str, command: &Command) -> Result<Vec<Entry>> {
    let at = |span: Option<Range<usize>>| {
        let line = span.map_or(1, |span| line(text, span.start));
        format!("{}:{line}", file.display())
    };
    let table = DeTable::parse(text).map_err(|error| {
        anyhow!(
            "{}: {}",
            at(error.span()),
            clean(&error.message().replace('\n', ", "))
        )
    })?;
    let mut found = Vec::new();
    for (key, value) in table.get_ref() {
        let (name, place) = (key.get_ref().as_ref(), at(Some(key.span())));
        let Some(flag) = flags(command).find(|flag| flag.get_long() == Some(name)) else {
            bail!("{place}: {}", unknown(name, command));
        };
        let values = values(flag, value).ok_or_else(|| {
            anyhow!(
                "{place}: {name} is {}; {}",
                kind(value.get_ref()),
                wanted(flag, name)
            )
        })?;
        let takes_values = flag.get_action().takes_values();
        let argument = |value: &String| {
            if takes_values {
                format!("--{name}={value}")
            } else {
                format!("--{name}")
            }
        };
        let arguments = values.iter().map(argument).collect();
        found.push((
            key.span().start,
            Entry {
                flag: name.to_owned(),
                line: line(text, key.span().start),
                shown: flag.to_string(),
                arguments,
            },
        ));
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, entry)| entry).collect())
}

/// The flags that a file may hold: those that take values, or are on or off.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| {
        let action = argument.get_action();
        let is_flag = action.takes_values() || matches!(action, ArgAction::SetTrue);
        is_flag && argument.get_long().is_some_and(|name| name != FLAG)
    })
}

fn line(text: &str, place: usize) -> usize {
    text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1
}

fn unknown(name: &str, command: &Command) -> String {
    let name = clean(name);
    let known = flags(command).filter_map(Arg::get_long);
    let meant = nearest(&name, known).map_or_else(String::new, |near| format!(", did you mean {near}?"));
    let command = command.get_bin_name().unwrap_or_else(|| command.get_name());
    format!("{command} has no flag '{name}'{meant}; see {command} --help")
}

/// The values that the flag gets; `None` where it can take none of this kind.
fn values(flag: &Arg, value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    match (flag.get_action(), value.get_ref()) {
        (ArgAction::SetTrue, DeValue::Boolean(on)) => Some(on.then(String::new).into_iter().collect()),
        (ArgAction::SetTrue, _) => None,
        (ArgAction::Append, DeValue::Array(all)) => all.iter().map(|value| scalar(value.get_ref())).collect(),
        (_, value) => Some(vec![scalar(value)?]),
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn wanted(flag: &Arg, name: &str) -> String {
    match flag.get_action() {
        ArgAction::SetTrue => format!("write {name} = true or {name} = false"),
        ArgAction::Append => format!("write {name} = \"VALUE\" or {name} = [\"VALUE\", \"VALUE\"]"),
        _ => format!("write {name} = \"VALUE\""),
    }
}

impl Entry {
    /// What the parser says of its values, whatever else the command wants.
    pub fn refusal(&self, command: &Command) -> Option<clap::Error> {
        let alone = command.clone().no_binary_name(true);
        let error = alone.try_get_matches_from(&self.arguments).err()?;
        (error.kind() != ErrorKind::MissingRequiredArgument).then_some(error)
    }
}
