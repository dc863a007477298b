//! What a name means: a ring, standard input, or a file.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capture::input::Reader;
use capture::ring::share::door_at;

use super::patient::Patient;
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
        if io::stdin().is_terminal() {
            bail!(
                "- is standard input, which is a terminal; send packets into it: tcpdump -w - | dropless read -"
            );
        }
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        return stream("standard input", file, interrupt);
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
    // Nobody need have opened the other end of a named pipe yet.
    let nonblocking = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
    let file = file.with_context(|| format!("cannot open {name}"))?;
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() || kind.is_char_device() {
        return stream(&name.to_string(), file, interrupt);
    }
    Ok(Source::File(Box::new(Reader::open(path)?)))
}

/// Whatever may have to be waited for.
fn stream(name: &str, file: File, interrupt: &Interrupt) -> Result<Source> {
    let patient = Patient {
        file,
        interrupt: interrupt.clone(),
    };
    Ok(Source::File(Box::new(Reader::new(name.to_owned(), patient)?)))
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| there.file_type().is_socket())
}
