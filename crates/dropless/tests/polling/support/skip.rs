//! A test that cannot run here says so. Tests of other crates include this file, too.

use std::fs::OpenOptions;
use std::io::Write;

/// Appends `name: reason` to the file that `./dev test` reads its skips from.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("?");
    let line = match env!("CARGO_PKG_NAME") {
        "dropless" => format!("{name}: {reason}\n"),
        other => format!("{other}::{name}: {reason}\n"),
    };
    eprint!("skipped: {line}");
    if let Some(path) = std::env::var_os("DROPLESS_SKIPS") {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .expect("opening DROPLESS_SKIPS");
        file.write_all(line.as_bytes()).expect("writing DROPLESS_SKIPS");
    }
}
