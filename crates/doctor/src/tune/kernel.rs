//! What tune lays hands on: files, directories and programs. Tests put a kernel of their own in its place.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::Sys;

/// Everything that tune does to a machine goes through here; the machine below [`Sys::root`] unless told otherwise.
pub trait Kernel {
    /// The machine, to look at.
    fn sys(&self) -> &Sys;

    /// What the file holds, without the line's end.
    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = fs::read(self.sys().path(path))?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Writes into a file of the kernel's, which must exist.
    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.sys().path(path))?;
        // One call: the kernel takes each write for a value of its own.
        file.write_all(format!("{value}\n").as_bytes())
    }

    /// The whole text of an ordinary file; `None` where there is none.
    fn text(&self, path: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.sys().path(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an ordinary file hold `text`, wholly or not at all; `None` removes it.
    fn replace(&self, path: &str, text: Option<&str>) -> io::Result<()> {
        let real = self.sys().path(path);
        let Some(text) = text else {
            return fs::remove_file(real);
        };
        let name = unfinished(&real);
        let mut file = fs::File::create(&name)?;
        if let Ok(old) = fs::metadata(&real) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(name, real)
    }

    /// Removes what a [`Kernel::replace`] that was killed has left.
    fn sweep(&self, path: &str) {
        // Most often there is nothing.
        let _ = fs::remove_file(unfinished(&self.sys().path(path)));
    }

    /// Makes a directory.
    fn make_directory(&self, path: &str) -> io::Result<()> {
        fs::create_dir(self.sys().path(path))
    }

    /// Removes a directory.
    fn remove_directory(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.sys().path(path))
    }

    /// Runs a program to its end. A directory tree has none to run.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        if !self.sys().is_live() {
            return Ok(());
        }
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().next_back().unwrap_or("it failed").to_owned();
        Err(io::Error::other(said))
    }
}

/// The file that is written before it takes the place of `path`.
fn unfinished(path: &Path) -> PathBuf {
    with_suffix(path, ".dropless-new")
}

/// A file beside `path`.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Kernel for Sys {
    fn sys(&self) -> &Sys {
        self
    }
}
