//! The subcommands, one folder each: arguments become a plan, the plan becomes a result. None knows another's folder.

use anyhow::Result;
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};

/// One subcommand of the command line.
pub struct Subcommand {
    name: &'static str,
    augment: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<u8>,
}

/// Declares the subcommands in the order of the help page. Each names a module that has `Args`, whose first line of
/// documentation is what the help page says of it, and `run`, which takes them and returns the exit code.
macro_rules! subcommands {
    ($($name:ident,)*) => {
        $(pub mod $name;)*

        const ALL: &[Subcommand] = &[$(Subcommand {
            name: stringify!($name),
            augment: |command| $name::Args::augment_args(command),
            run: |matches| $name::run(&$name::Args::from_arg_matches(matches)?),
        }),*];
    };
}

subcommands! {
    send,
    search,
    reflect,
    capture,
    read,
    replay,
    filter,
    forward,
    guard,
    extcap,
    compare,
    noise,
    ports,
    report,
    tune,
    doctor,
    top,
    completions,
    man,
}

/// Adds every subcommand to the command line.
pub fn augment(command: Command) -> Command {
    ALL.iter().fold(command, |command, subcommand| {
        command.subcommand((subcommand.augment)(Command::new(subcommand.name)))
    })
}

/// Runs the subcommand that was named; the result is its exit code. `None` where none was.
pub fn run(matches: &ArgMatches) -> Option<Result<u8>> {
    let (name, matches) = matches.subcommand()?;
    let subcommand = ALL.iter().find(|subcommand| subcommand.name == name)?;
    Some((subcommand.run)(matches))
}
