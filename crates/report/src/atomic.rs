//! Writes a file so that a reader sees the old one, or the whole new one, and never half of it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::ours;

/// Writes `content` to where `path` leads ([`ours::landing`]), as the user named it.
/// What is no regular file, such as a device or a pipe, is written to, not replaced.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = &ours::landing(path)?;
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return File::options().write(true).open(path)?.write_all(content);
    }
    // Of a file that a process has open (/dev/stdout) the name is wanted.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    replace(&path, content)
}

/// Puts a file with `content` in the place of whatever has the name `path`, by way of a hidden neighbour that is renamed
/// at the end. Nothing is left behind when it fails.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
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
    let mut file = ours::create(path)?;
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
    fn a_link_in_a_run_directory_is_replaced_and_its_target_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("summary.json"));
        fs::write(&file, b"untouched").unwrap();
        for planted in [&link, &dir.path().join(".summary.json.tmp")] {
            std::os::unix::fs::symlink(&file, planted).unwrap();
        }
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"untouched");
        assert_eq!(fs::read(&link).unwrap(), b"new");
        assert_eq!(names_in(dir.path()), ["file", "summary.json"]);
    }

    #[test]
    fn a_pipe_stays_one_and_a_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.is_symlink());
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe)
        });
        write(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"through");
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
