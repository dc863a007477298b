//! `dropless man`: the manual pages, made of what `--help` prints.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Command, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff};

use crate::cli;

/// Write the manual pages of all commands into a folder
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub struct Args {
    /// The folder, which is there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    // The version of DPDK is that of the machine which wrote the pages, not of the one where they are read.
    let mut command = cli::command().long_version(None::<&str>);
    // Names every subcommand as its page is called: dropless-filter-run.
    command.build();
    write_all(&command, &args.folder)?;
    Ok(0)
}

fn write_all(command: &Command, folder: &Path) -> Result<()> {
    let own = command.get_subcommands().filter(|command| !command.is_hide_set());
    for subcommand in own.filter(|command| command.get_name() != "help") {
        write_all(subcommand, folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    page(command)
        .and_then(|page| Ok(fs::write(&path, page)?))
        .with_context(|| format!("writing {}", path.display()))
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let source = concat!("dropless ", env!("CARGO_PKG_VERSION"));
    let (mut page, man) = (Vec::new(), Man::new(command.clone()).source(source));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        notes(&text.to_string(), &mut page)?;
    }
    Ok(page)
}

/// What stands below the options: lines of commands stay lines.
fn notes(text: &str, page: &mut impl Write) -> Result<()> {
    let mut roff = Roff::new();
    let mut is_open = false;
    for line in text.lines() {
        let title = match line.split_once(':') {
            Some(("Examples", "")) => Some("EXAMPLES"),
            Some(("Exit codes", _)) => Some("EXIT STATUS"),
            _ if !is_open => Some("NOTES"),
            _ => None,
        };
        if let Some(title) = title {
            roff.control("SH", [title]).control("nf", []);
            is_open = true;
        }
        let text = line.strip_prefix("Exit codes: ").unwrap_or(line);
        if line != "Examples:" {
            roff.text([Inline::Roman(text.to_owned())]);
        }
    }
    roff.control("fi", []);
    Ok(roff.to_writer(page)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    /// The command and all below it.
    fn all(command: &Command) -> Vec<&Command> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command).chain(below).collect()
    }

    #[test]
    fn what_help_says_of_exit_codes_has_a_section_of_its_own() {
        let mut command = cli::command();
        command.build();
        let mut told = 0;
        for command in all(&command) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let page = String::from_utf8(page(command).unwrap()).unwrap();
            let tells = help.contains("Exit codes");
            assert_eq!(
                page.contains(".SH \"EXIT STATUS\""),
                tells,
                "{}:\n{page}",
                command.get_name()
            );
            told += usize::from(tells);
        }
        assert!(told > 10, "{told}");
    }
}
