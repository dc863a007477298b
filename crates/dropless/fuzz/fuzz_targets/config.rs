//! Any text as a file of flags: flags that the command has, each at its line, or one mistake with a place.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command, value_parser};
use libfuzzer_sys::fuzz_target;

#[path = "../../src/preset/table.rs"]
mod table;

/// A flag of each kind that commands have.
static COMMAND: LazyLock<Command> = LazyLock::new(|| {
    let flag = |name: &'static str| Arg::new(name).long(name);
    let mut command = Command::new("fuzz").args([
        flag("rate"),
        flag("port").short('p').action(ArgAction::Append),
        flag("vlan").value_delimiter(',').value_parser(value_parser!(u16)),
        flag("dscp").value_parser(value_parser!(u8).range(..64)),
        flag("quiet").action(ArgAction::SetTrue).conflicts_with("verbose"),
        flag("verbose").action(ArgAction::Count),
        flag("to").required(true).allow_hyphen_values(true),
        flag(table::FLAG),
    ]);
    command.build();
    command
});

fuzz_target!(|text: &str| {
    let lines = text.split('\n').count();
    match table::entries(Path::new("fuzz.toml"), text, &COMMAND) {
        Ok(entries) => {
            assert!(entries.is_sorted_by_key(|entry| entry.line));
            for entry in entries {
                assert!((1..=lines).contains(&entry.line));
                assert_ne!(entry.flag, table::FLAG);
                assert!(entry.shown.starts_with(&format!("--{}", entry.flag)));
                let begins = |argument: &String| argument.starts_with(&format!("--{}", entry.flag));
                assert!(entry.arguments.iter().all(begins));
                let _ = entry.refusal(&COMMAND);
            }
        }
        Err(error) => {
            let said = error.to_string();
            let place = said
                .strip_prefix("fuzz.toml:")
                .and_then(|rest| rest.split_once(": "));
            let line = place.and_then(|(line, _)| line.parse().ok());
            assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
});
