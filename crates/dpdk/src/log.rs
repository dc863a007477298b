//! DPDK's log, kept in memory so that errors can quote it.

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

/// How many bytes are in the log: the place from which [`since`] quotes.
pub(crate) fn append(text: &[u8]) {
    // SAFETY: `text` has `text.len()` readable bytes.
    unsafe { sys::dl_log_append(text.as_ptr().cast(), text.len()) };
}

/// Starts the capture; with `echo` the lines reach standard error too.
pub(crate) fn capture(echo: bool) {
    // A refusal means only that the log stays on standard error.
    // SAFETY: called before EAL starts, from the one thread that starts it.
    let _ = unsafe { sys::dl_log_capture(i32::from(echo)) };
}
