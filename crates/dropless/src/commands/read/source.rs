//! What a name means: a ring, standard input, or a file.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capture::input::Reader;
use capture::ring::share::door_at;

use crate::run::capture_input::CaptureInput;
use crate::run::signals::Interrupt;

/// Where packets come from.
pub enum Source {
    /// A file, or a stream of one.
    File(Box<Reader>),
    /// The socket of a ring.
    Ring(PathBuf),
}

/// Whether `path` means a ring. What is nowhere, or a file that is no capture, is an error; a stream is not begun.
pub fn check(path: &Path) -> Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    let is_ring = door(path)?.is_some();
    if !is_ring && path.is_file() {
        CaptureInput::open(path)?.reader(|| false)?;
    }
    Ok(is_ring)
}

/// Finds what is meant by `path`.
pub fn find(path: &Path, interrupt: &Interrupt) -> Result<Source> {
    if path == Path::new("-") {
        return open(path, interrupt);
    }
    match door(path)? {
        Some(door) => Ok(Source::Ring(door)),
        None => open(path, interrupt),
    }
}

/// The socket of the ring of this name; `None` where a file has it.
fn door(path: &Path) -> Result<Option<PathBuf>> {
    let doors = [path.to_owned(), door_at(path)];
    if let Some(door) = doors.iter().find(|door| is_socket(door)) {
        return Ok(Some(door.clone()));
    }
    let name = path.display();
    if !path
        .try_exists()
        .with_context(|| format!("cannot look for {name}"))?
    {
        let [file, door] = doors.map(|place| place.display().to_string());
        if file.contains(char::is_whitespace) {
            bail!("no file or ring is called {file}; a filter is written --filter '{file}'");
        }
        if file == door {
            bail!("no file or ring {file}");
        }
        bail!(
            "no file {file}, and no ring {door}; is a capture with --ring running? A filter is written --filter '{file}'"
        );
    }
    Ok(None)
}

/// A file or a stream of one, which an interrupt ends.
fn open(path: &Path, interrupt: &Interrupt) -> Result<Source> {
    let interrupt = interrupt.clone();
    let reader = CaptureInput::open(path)?.reader(move || interrupt.is_set())?;
    Ok(Source::File(Box::new(reader)))
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| there.file_type().is_socket())
}
