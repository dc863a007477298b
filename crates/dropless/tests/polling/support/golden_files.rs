//! Files that hold a text word for word. Tests of other crates include this file, too.

use std::fs;
use std::path::PathBuf;

/// Each file holds its text. With `UPDATE_GOLDEN=1` those that do not are written anew, and the test fails all the same: what it
/// has just written it has not checked.
pub fn assert_golden(files: &[(PathBuf, String)]) {
    let held = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
    let old = files.iter().filter(|(path, text)| held(path) != *text);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let written: Vec<_> = old.map(|(path, text)| write(path, text)).collect();
        assert!(
            written.is_empty(),
            "written anew, look at them and run this without UPDATE_GOLDEN: {written:#?}"
        );
        return;
    }
    for (path, text) in old {
        assert_eq!(
            held(path),
            *text,
            "{} is old; UPDATE_GOLDEN=1 writes it anew",
            path.display()
        );
    }
}

fn write<'p>(path: &'p PathBuf, text: &str) -> &'p PathBuf {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).expect("making the folder");
    fs::write(path, text).expect("writing the file");
    path
}
