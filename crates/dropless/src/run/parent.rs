//! A dropless that another one started ends with it: killed, that one clears nothing away.
//!
//! Asked of the kernel by the child itself. setpriv(1) could do it for any program, but busybox's does not know how.

use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use crate::EXIT_INVALID;

/// The process id of who started us.
const PARENT: &str = "DROPLESS_PARENT";

/// Has `command`, which runs this program, end with this process.
pub fn bind(command: &mut Command) {
    command.env(PARENT, std::process::id().to_string());
}

/// Whether another dropless started this one, and tells for both.
pub fn is_another() -> bool {
    std::env::var_os(PARENT).is_some()
}

/// Ends with the dropless that started this one, if one did.
pub fn end_with() {
    let parent = std::env::var(PARENT).ok().and_then(|id| id.parse::<i32>().ok());
    let Some(parent) = parent else { return };
    let is_bound = set_pdeathsig(Signal::SIGKILL).is_ok();
    // It may have gone before the kernel was asked.
    if is_bound && nix::unistd::getppid().as_raw() != parent {
        std::process::exit(EXIT_INVALID.into());
    }
}
