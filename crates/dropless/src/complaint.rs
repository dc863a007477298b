//! What went wrong, in one line on standard error: what is wrong, and what to do.

mod instead;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use host::nearest::nearest;
use report::input::clean;
use report::out::Console;
use serde::{Deserialize, Serialize};

use crate::cli;

/// Version of what `--json` prints of an error.
const VERSION: u32 = 1;

/// What `--json` prints where there is no result.
#[derive(Serialize, Deserialize)]
pub struct Failure {
    version: u32,
    /// What is wrong, and what to do.
    pub error: String,
}

/// Says it on standard error, and, where JSON was asked for, to the reader of that. Where even that fails there is nobody
/// to tell.
pub fn tell(text: &str, is_json: bool) {
    let line = one_line(text);
    let console = Console::json_or_text(is_json);
    let failure = Failure {
        version: VERSION,
        error: line.clone(),
    };
    let _ = console.object(&failure);
    console.error(&format!("dropless: {line}"));
}

/// A usage error in one line; `None` for what is to be printed as it is (help, version). `given` are the words of the command
/// line, those that name the subcommand first: not every error of clap's says where it happened.
pub fn of_usage(error: &mut clap::Error, given: &[&str]) -> Option<String> {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let theirs = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => given
            .first()
            .and_then(|name| Some((name, flag, instead::of(name, flag)?))),
        _ => None,
    };
    if let Some((name, flag, ours)) = theirs {
        return Some(format!(
            "there is no {flag} here; {ours}; see dropless {name} --help"
        ));
    }
    drop_wild_tips(error);
    let text = error.render().to_string();
    let about = |line: &&str| !line.starts_with("Usage: ") && !line.starts_with("For more information");
    let said = text.lines().filter(about);
    let said = joined(said.map(|line| line.trim().trim_start_matches("error: ").to_owned()));
    let known = cli::command();
    // The parser says itself whose use it tells: of a subcommand of a subcommand, too.
    let usage = text
        .lines()
        .find_map(|line| line.strip_prefix("Usage: dropless "));
    let words: Vec<&str> = match usage {
        Some(usage) => usage.split_whitespace().collect(),
        None => given.to_vec(),
    };
    let (mut of, mut command) = (&known, String::new());
    for word in words {
        let Some(below) = of.find_subcommand(word) else {
            break;
        };
        command = format!("{command} {word}");
        of = below;
    }
    Some(format!("{said}; see dropless{command} --help"))
}

/// Takes away what the parser advises instead of a flag that it does not know, but one that it may be a slip of the fingers for.
fn drop_wild_tips(error: &mut clap::Error) {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return;
    };
    let bare = |flag: &str| flag.trim_start_matches('-').to_owned();
    let is_slip = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(tip)) => nearest(&bare(flag), [bare(tip).as_str()]).is_some(),
        _ => false,
    };
    error.remove(ContextKind::Suggested);
    if !is_slip {
        error.remove(ContextKind::SuggestedArg);
    }
}

/// Line breaks become `; `, but after a colon, whose sentence goes on. What is quoted may hold anything.
fn one_line(text: &str) -> String {
    clean(&joined(text.lines().map(|line| line.trim().to_owned())))
}

fn joined(lines: impl IntoIterator<Item = String>) -> String {
    let mut line = String::new();
    for part in lines.into_iter().filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(&part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(arguments: &[&str]) -> Option<String> {
        of_usage(
            &mut cli::command().try_get_matches_from(arguments).unwrap_err(),
            &arguments[1..],
        )
    }

    #[test]
    fn each_usage_error_is_a_line_with_advice() {
        assert_eq!(
            said(&["dropless", "send", "--rat"]).unwrap(),
            "unexpected argument '--rat' found; tip: a similar argument exists: '--rate'; see dropless send --help"
        );
        // What looks like nothing here, or would make a file's name of it, is no tip.
        for arguments in [["send", "--foo"], ["read", "--version"]] {
            let said = said(&["dropless", arguments[0], arguments[1]]).unwrap();
            assert!(!said.contains("tip"), "{said}");
        }
        assert_eq!(
            said(&["dropless", "reflect"]).unwrap(),
            "the following required arguments were not provided: --port <URI>; see dropless reflect --help"
        );
        assert!(
            said(&["dropless", "filter", "run"])
                .unwrap()
                .ends_with("; see dropless filter run --help")
        );
        assert!(
            said(&["dropless", "filter", "run", "rules", "--mode", "x"])
                .unwrap()
                .ends_with("; see dropless filter run --help")
        );
        assert!(
            said(&["dropless", "frob"])
                .unwrap()
                .ends_with("; see dropless --help")
        );
    }

    #[test]
    fn flags_from_elsewhere_are_known_by_what_they_are_called_here() {
        for (arguments, words) in [
            (["capture", "-n"], "there is no -n here; leave it out"),
            (["capture", "-ieth0"], "--port packet:INTERFACE"),
            (["read", "-r"], "dropless read FILE"),
            (["search", "--rate"], "--min-rate and --max-rate"),
            (["search", "--rate=1Mpps"], "--min-rate and --max-rate"),
        ] {
            let said = said(&["dropless", arguments[0], arguments[1]]).unwrap();
            assert!(said.contains(words), "{said}");
            assert!(!said.contains("tip"), "{said}");
        }
        // Elsewhere they are what they are.
        assert!(
            said(&["dropless", "send", "-n"])
                .unwrap()
                .starts_with("unexpected argument")
        );
    }

    #[test]
    fn help_stays_as_it_is() {
        assert_eq!(said(&["dropless", "--help"]), None);
        assert_eq!(said(&["dropless"]), None);
    }

    #[test]
    fn no_line_break_is_left() {
        assert_eq!(one_line("a:\n  b\n\nc\r\n d"), "a: b; c; d");
        assert_eq!(
            one_line("`\x1b[31mred` is no verdict"),
            "`?[31mred` is no verdict"
        );
    }
}
