//! Any text as the rules of another firewall: what is taken over is a good rule file, whatever it is taken from.
#![no_main]

use std::sync::LazyLock;

use clap::{Args as _, Command, FromArgMatches as _};
use libfuzzer_sys::fuzz_target;
use rules::parse;

#[path = "../../src/commands/filter/import/mod.rs"]
#[allow(dead_code, reason = "of the command, its parser is what is wanted")]
mod import;

static ASKED: LazyLock<Vec<import::Args>> = LazyLock::new(|| {
    let asked = [
        &["-"][..],
        &["-", "--dev", "eth1"],
        &["-", "--chain", "forward", "--table", "filter"],
    ];
    let parsed = asked.map(|words| {
        let command = import::Args::augment_args(Command::new("import")).no_binary_name(true);
        import::Args::from_arg_matches(&command.get_matches_from(words)).unwrap()
    });
    parsed.into()
});

fuzz_target!(|text: &str| {
    for args in ASKED.iter() {
        let Ok(imported) = import::translate("fuzz", text, args) else {
            continue;
        };
        if let Err(problems) = parse("fuzz", &|_| Ok(imported.rules.clone())) {
            panic!("{problems:?} in:\n{}", imported.rules);
        }
    }
});
