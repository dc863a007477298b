//! DPDK's log, kept in memory so that errors can quote it.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
};

use dpdk_sys as sys;

const CAPACITY: usize = 65536;

/// The newest `count` lines DPDK logged, oldest first.
pub(crate) fn tail(count: usize) -> Vec<String> {
    let mut room = vec![0_u8; CAPACITY];
    // SAFETY: `room` has `room.len()` writable bytes; the shim writes at most that many.
    let length = unsafe { sys::dl_log_read(room.as_mut_ptr().cast(), room.len()) };
    let text = String::from_utf8_lossy(&room[..length]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

/// Adds what was said elsewhere.
fn append(text: &[u8]) {
    // SAFETY: `text` has `text.len()` readable bytes.
    unsafe { sys::dl_log_append(text.as_ptr().cast(), text.len()) };
}

/// Starts the capture; with `echo` the lines reach standard error too.
pub(crate) fn capture(echo: bool) {
    // A refusal means only that the log stays on standard error.
    // SAFETY: called before EAL starts, from the one thread that starts it.
    let _ = unsafe { sys::dl_log_capture(i32::from(echo)) };
}

/// Standard output and error of the process go into the log from `begin` to `end`: EAL prints its usage and its fatal
/// errors straight there.
pub(crate) struct Quiet {
    file: File,
    /// Where each of the two really leads.
    kept: Vec<(RawFd, OwnedFd)>,
}

impl Quiet {
    /// Nothing is redirected where the system does not allow it.
    pub(crate) fn begin() -> Option<Self> {
        // Rust's own buffered words belong before what follows.
        io::stdout().flush().ok()?;
        // SAFETY: a constant zero-terminated name; the result is checked and owned by nobody else.
        let file = unsafe {
            let fd = libc::memfd_create(c"dpdk".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return None;
            }
            File::from_raw_fd(fd)
        };
        let kept = [
            (
                libc::STDOUT_FILENO,
                io::stdout().as_fd().try_clone_to_owned().ok()?,
            ),
            (
                libc::STDERR_FILENO,
                io::stderr().as_fd().try_clone_to_owned().ok()?,
            ),
        ];
        for (target, _) in &kept {
            // SAFETY: both are open; a refusal leaves the target as it was.
            unsafe { libc::dup2(file.as_raw_fd(), *target) };
        }
        Some(Self {
            file,
            kept: kept.into(),
        })
    }

    /// Gives standard output and error back: what was printed meanwhile, which the log has now too.
    pub(crate) fn end(self) -> String {
        // SAFETY: flushes all of C's streams; EAL's usage waits in one.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        for (target, kept) in &self.kept {
            // SAFETY: both are open.
            unsafe { libc::dup2(kept.as_raw_fd(), *target) };
        }
        let (mut file, mut text) = (self.file, Vec::new());
        if file.rewind().is_ok() && file.read_to_end(&mut text).is_ok() {
            append(&text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}
