//! Wrong uses: each ends with code 2 and one line on stderr that says what is wrong and what to do.

mod arguments;
mod machine;
mod places;

use std::path::Path;
use std::process::Command;

/// Runs the program in `directory` and insists on a refusal whose line holds all of `words`.
fn refused_in(directory: &Path, arguments: &[&str], words: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dropless"));
    command.args(arguments).current_dir(directory);
    refused_by(&mut command, words);
}

/// The same by a command that starts the program somehow else.
fn refused_by(command: &mut Command, words: &[&str]) {
    let output = command.output().expect("starting it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    insist(
        output.status.code(),
        &text(&output.stdout),
        &text(&output.stderr),
        words,
    );
}

/// The same in a directory of its own, which stays as it was: nothing was started.
fn refused(arguments: &[&str], words: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    refused_in(directory.path(), arguments, words);
    let left = std::fs::read_dir(directory.path())
        .expect("reading the directory")
        .count();
    assert_eq!(left, 0, "{arguments:?} left something behind");
}

/// Code 2, nothing on stdout, one line on stderr with all of `words`, the last of which says what to do.
fn insist(code: Option<i32>, stdout: &str, stderr: &str, words: &[&str]) {
    assert_eq!(code, Some(2), "stdout: {stdout}\nstderr: {stderr}");
    assert_eq!(stdout, "", "it printed something");
    assert!(
        stderr.starts_with("dropless: ") && stderr.ends_with('\n'),
        "{stderr:?}"
    );
    assert_eq!(stderr.lines().count(), 1, "not one line: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "it does not say {word:?}: {stderr}");
    }
}
