//! Any text as a rule file: rules, or mistakes that each have a place in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::check::never;
use rules::{Tables, parse};

fuzz_target!(|text: &str| {
    // What it includes, and lists of addresses, are the same text: who includes himself is told so.
    let read = |_: &str| Ok(text.to_owned());
    match parse("fuzz.rules", &read) {
        Ok(set) => {
            let _ = never(&set);
            let _ = Tables::new(&set);
            for rule in &set.rules {
                assert!(!rule.text.is_empty() && rule.place.1 >= 1);
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(problem.line >= 1 && problem.column >= 1, "{problem}");
            }
        }
    }
});
