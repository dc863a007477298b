//! A pipe that is waited for, but no longer than until an interrupt.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::run::signals::Interrupt;

/// How long one wait takes at most; ms.
const WAIT: u16 = 100;

/// Reads a pipe, a socket or a terminal. An interrupt is its end.
pub struct Patient {
    pub file: File,
    pub interrupt: Interrupt,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.interrupt.is_set() {
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
