//! What tune lays hands on: files, directories and programs. Tests put a kernel of their own in its place.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
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

    /// Makes an ordinary file hold `text`, wholly or not at all; `None` removes it. A link stays one: what it leads to is
    /// replaced, and stays its owner's.
    fn replace(&self, path: &str, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else {
            return fs::remove_file(self.sys().path(path));
        };
        let real = landing(self.sys(), path)?;
        let old = fs::metadata(&real).ok();
        self.sweep(path);
        // A link leads into directories where others may write: no link of theirs is followed, and nothing that was for
        // some eyes only is for others meanwhile.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if old.is_some() {
            options.mode(0o600);
        }
        let name = unfinished(&real);
        let mut file = options.open(&name)?;
        if let Some(old) = old {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(name, real)
    }

    /// Removes what a [`Kernel::replace`] that was killed has left.
    fn sweep(&self, path: &str) {
        // Most often there is nothing.
        if let Ok(real) = landing(self.sys(), path) {
            let _ = fs::remove_file(unfinished(&real));
        }
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

/// Where what is written to `path` comes to lie: where a link there leads to.
fn landing(sys: &Sys, path: &str) -> io::Result<PathBuf> {
    let real = sys.path(path);
    if !real.is_symlink() {
        return Ok(real);
    }
    let target = match fs::canonicalize(&real) {
        Ok(target) => target,
        // What it was made for is not known, and undo would not bring it back.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::other("it is a link that leads nowhere"));
        }
        Err(error) => return Err(error),
    };
    // The machine may be a tree of files.
    if !target.starts_with(fs::canonicalize(&sys.root)?) {
        return Err(io::Error::other("it is a link that leads elsewhere"));
    }
    Ok(target)
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
