//! Writes a file so that a reader sees the old one, or the whole new one, and never half of it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `content` to `path` by way of a hidden neighbour that is renamed at the end.
/// Nothing is left behind when it fails.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = neighbour(path)?;
    let written = write_through(&beside, content).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not exist at all; the first error is the one worth telling.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// The data is forced out before the rename: a file system may otherwise keep the new name and lose the bytes.
fn write_through(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn neighbour(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".tmp");
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_whole_and_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.json");
        write(&path, b"first, and longer").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names_in(dir.path()), ["summary.json"]);
    }

    #[test]
    fn a_failed_rename_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.json");
        fs::create_dir(&path).unwrap(); // a directory cannot be replaced by a file
        assert!(write(&path, b"x").is_err());
        assert_eq!(names_in(dir.path()), ["summary.json"]);
    }
}
