//! Any bytes as the result of a run: it is shown in the terminal and as a page, or refused, and nothing of it gets at the terminal.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use report::{Style, html, load, terminal};

fuzz_target!(|bytes: &[u8]| {
    let run = tempfile::tempdir_in("/dev/shm").expect("a folder");
    fs::write(run.path().join("summary.json"), bytes).expect("a file");
    let Ok(loaded) = load::load(run.path()) else {
        return;
    };
    for width in [40, 120] {
        let style = Style {
            width,
            ..Style::plain()
        };
        let text = terminal::render(&*loaded.result, &style);
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    if let Ok(page) = html::page(std::slice::from_ref(&loaded)) {
        assert!(page.contains("</html>"));
    }
});
