//! A capture that is read: a file, or standard input or a pipe, which may have to be waited for.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use capture::input::{InputError, Reader};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long one wait takes at most; ms.
const WAIT: u16 = 100;

/// A capture that was opened.
pub struct CaptureInput {
    /// Its name, for people.
    pub name: String,
    /// Its length, where it is a file that can be read again.
    pub len: Option<u64>,
    file: File,
}

impl CaptureInput {
    /// Opens `path`; `-` is standard input. Nobody need have opened the other end of a named pipe yet.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, file) = if path == Path::new("-") {
            ("standard input".to_owned(), own_stdin()?)
        } else {
            let name = path.display().to_string();
            let nonblocking = OFlag::O_NONBLOCK.bits();
            let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
            let file = file.with_context(|| format!("cannot open {name}"))?;
            (name, file)
        };
        let about = file.metadata().with_context(|| name.clone())?;
        ensure!(
            !about.is_dir(),
            "{name} is a directory; name a pcap or pcapng file"
        );
        let len = about.is_file().then_some(about.len());
        Ok(Self { name, len, file })
    }

    /// Reads it, a file from its beginning. A stream is waited for, and ends once `is_over` says so.
    pub fn reader(&mut self, is_over: impl Fn() -> bool + Send + 'static) -> Result<Reader, InputError> {
        let failed = |error| InputError::Open(self.name.clone(), error);
        let mut file = self.file.try_clone().map_err(failed)?;
        let name = self.name.clone();
        if self.len.is_some() {
            file.rewind().map_err(failed)?;
            Reader::new(name, file)
        } else {
            Reader::new(name, Patient { file, is_over })
        }
    }
}

/// A handle of our own, past the buffer that the standard library keeps.
fn own_stdin() -> Result<File> {
    let stdin = io::stdin();
    ensure!(
        !stdin.is_terminal(),
        "standard input is a terminal; pipe a capture into it, such as from tcpdump -w -, or name a file"
    );
    let own = stdin.as_fd().try_clone_to_owned().context("standard input")?;
    Ok(File::from(own))
}

/// Reads a pipe, a socket or a device. When it is over, that is its end.
struct Patient<F> {
    file: File,
    is_over: F,
}

impl<F: Fn() -> bool> Read for Patient<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !(self.is_over)() {
            let mut ready = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::from(WAIT)) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return self.file.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}
