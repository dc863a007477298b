//! Commands share pieces by way of the modules beside them and of the libraries, never by way of each other's folders.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The names that stand right after `prefix`; empty where it is no name that stands there.
fn names_after<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    let places = text.split(prefix).skip(1);
    let names = places.map(|rest| {
        let end = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
        &rest[..end.unwrap_or(rest.len())]
    });
    names.collect()
}

/// What a file of the command `own`, `depth` modules below all of them, takes from another one.
fn taken<'t>(text: &'t str, own: &str, depth: usize, is_command: impl Fn(&str) -> bool) -> Option<&'t str> {
    let climbed = names_after(text, &"super::".repeat(depth));
    let climbed = climbed.into_iter().filter(|name| is_command(name));
    let mut named = names_after(text, "crate::commands::").into_iter().chain(climbed);
    named.find(|name| *name != own)
}

#[test]
fn no_command_imports_the_folder_of_another() {
    let commands = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let is_command = |name: &str| commands.join(name).is_dir() && !name.is_empty();
    let mut seen = 0;
    for file in sources(&commands) {
        let mut module = file.strip_prefix(&commands).unwrap().with_extension("");
        if module.ends_with("mod") {
            module.pop();
        }
        let Some(own) = module.iter().next() else {
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        let found = taken(&text, own.to_str().unwrap(), module.iter().count(), is_command);
        assert_eq!(
            found,
            None,
            "{}: what two commands need belongs beside `commands`, or into a library",
            module.display()
        );
        seen += 1;
    }
    assert!(seen > 20, "only {seen} files were read");
}

#[test]
fn an_import_is_found_however_it_is_written() {
    let is_command = |name: &str| ["noise", "tune"].contains(&name);
    let cases = [
        ("use crate::commands::noise;", 2, Some("noise")),
        ("crate::commands::noise::run(args)", 1, Some("noise")),
        ("use crate::commands::{noise, ports};", 1, Some("")),
        ("use super::super::noise::args;", 2, Some("noise")),
        ("use super::noise::args;", 1, Some("noise")),
        ("use super::noise::args;", 2, None),
        (
            "use crate::commands::tune::show; use super::show; use measure::noise;",
            1,
            None,
        ),
    ];
    for (text, depth, found) in cases {
        assert_eq!(taken(text, "tune", depth, is_command), found, "{text}");
    }
}
