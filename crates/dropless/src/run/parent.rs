//! How this program starts itself again, and that such a child ends with it: killed, it clears nothing away.
//!
//! Asked of the kernel by the child itself. setpriv(1) could do it for any program, but busybox's does not know how.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::Signal;
use report::published::own_id;

use crate::EXIT_INVALID;

/// The process id of who started us.
const PARENT: &str = "DROPLESS_PARENT";

/// This program: the very file that runs, whatever lies at its place by now. An upgrade in the middle of a search must neither
/// end it nor mix two versions in it.
pub fn itself() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("dropless");
    command
}

/// The same in network namespace `name`. What enters it is ip(8), whose own program "self" is there.
pub fn itself_in(name: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]);
    command.arg(format!("/proc/{}/exe", own_id()));
    command
}

/// Is called what it is, for `ps` and for whoever looks who holds a port: the kernel names a process after the path that started
/// it, which may be one of those above.
pub fn be_named() {
    let _ = set_name(c"dropless");
}

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
