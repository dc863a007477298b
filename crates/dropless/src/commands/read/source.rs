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

/// Finds what is meant by `path`.
pub fn find(path: &Path, interrupt: &Interrupt) -> Result<Source> {
    if path == Path::new("-") {
        return open(path, interrupt);
    }
    let doors = [path.to_owned(), door_at(path)];
    if let Some(door) = doors.iter().find(|door| is_socket(door)) {
        return Ok(Source::Ring(door.clone()));
    }
    let name = path.display();
    if !path
        .try_exists()
        .with_context(|| format!("cannot look for {name}"))?
    {
        let [file, door] = doors.map(|place| place.display().to_string());
        if file == door {
            bail!("no file or ring {file}");
        }
        bail!("no file {file}, and no ring {door}; is a capture with --ring running?");
    }
    open(path, interrupt)
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
