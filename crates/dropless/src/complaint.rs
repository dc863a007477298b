//! What went wrong, in one line on standard error: what is wrong, and what to do.

use clap::error::ErrorKind;

/// Prints the line. Where even that fails there is nobody to tell.
pub fn print(text: &str) {
    let _ = report::out::print_stderr(&format!("dropless: {}\n", one_line(text)));
}

/// A usage error in one line; `None` for what is to be printed as it is (help, version).
pub fn of_usage(error: &clap::Error) -> Option<String> {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let text = error.render().to_string();
    let (mut said, mut command) = (Vec::new(), "dropless".to_owned());
    for line in text.lines() {
        match line.strip_prefix("Usage: ") {
            Some(usage) => command = command_of(usage),
            None if line.starts_with("For more information") => {}
            None => said.push(line.trim().trim_start_matches("error: ").to_owned()),
        }
    }
    Some(format!("{}; see {command} --help", joined(said)))
}

/// The program and its subcommand, out of clap's line of usage.
fn command_of(usage: &str) -> String {
    let words = usage
        .split_whitespace()
        .take(2)
        .filter(|word| !word.starts_with(['-', '<', '[']));
    words.collect::<Vec<_>>().join(" ")
}

/// Line breaks become `; `, but after a colon, whose sentence goes on.
fn one_line(text: &str) -> String {
    joined(text.lines().map(|line| line.trim().to_owned()))
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
    use crate::args::Cli;
    use clap::Parser;

    fn said(arguments: &[&str]) -> Option<String> {
        of_usage(&Cli::try_parse_from(arguments).unwrap_err())
    }

    #[test]
    fn each_usage_error_is_a_line_with_advice() {
        assert_eq!(
            said(&["dropless", "send", "--foo"]).unwrap(),
            "unexpected argument '--foo' found; tip: a similar argument exists: '--from'; see dropless send --help"
        );
        assert_eq!(
            said(&["dropless", "reflect"]).unwrap(),
            "the following required arguments were not provided: --port <URI>; see dropless reflect --help"
        );
        assert!(
            said(&["dropless", "frob"])
                .unwrap()
                .ends_with("; see dropless --help")
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
    }
}
