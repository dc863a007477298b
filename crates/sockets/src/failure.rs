//! The end of a ring: which worker had it, and why.

use std::io;
use std::thread;

/// Why a worker moves nothing more through a socket.
#[derive(Debug)]
pub struct Failure {
    /// The name of the worker's thread.
    pub worker: String,
    /// What the kernel said.
    pub source: io::Error,
}

impl Failure {
    /// Of the calling thread.
    pub fn here(source: io::Error) -> Self {
        let worker = thread::current()
            .name()
            .unwrap_or("a thread without a name")
            .to_owned();
        Self { worker, source }
    }
}

/// Whether a call of `io_uring` that failed so may be made again: it was interrupted, or results must be taken first.
pub fn passes(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)
    )
}
