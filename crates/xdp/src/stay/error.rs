//! Why a filter cannot stay, or not be taken over.

use std::io;
use std::path::{Path, PathBuf};

use crate::attach::Mode;

/// Why a filter cannot stay, or one that stayed cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum StayError {
    /// The BPF file system is not there.
    #[error(
        "a filter stays by pins in the BPF file system, which is not mounted at {path}; fix: {first}mount -t bpf bpf {path}{aside}", path = .0.display(), first = first(.0), aside = aside(.0)
    )]
    NotMounted(PathBuf),
    /// It was put there by a later version.
    #[error(
        "a later dropless ({by}) put the filter on {interface}, and this one cannot read what it left; fix: use that"
    )]
    TooNew {
        /// Its version.
        by: String,
        /// The interface.
        interface: String,
    },
    /// It is in another mode.
    #[error("the filter that stays there is in {mode} mode; fix: --mode {mode}, or dropless filter stop first", mode = .0.name())]
    OtherMode(Mode),
    /// What is kept cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is no state of ours.
    #[error("{}: it is damaged: {what}; fix: rm -r {}", path.display(), path.parent().unwrap_or(path).display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// What comes before the mount, where the directory is not there.
fn first(path: &Path) -> String {
    if path.exists() {
        String::new()
    } else {
        format!("mkdir -p {} && ", path.display())
    }
}

/// Where somebody else's namespace hides what is mounted.
fn aside(path: &Path) -> &'static str {
    // ip-netns(8) mounts a /sys of its own, in which nothing is mounted, and which ends with the command.
    if path.starts_with("/sys") {
        " (ip netns exec hides it: mount another one outside of /sys, and name a directory in it by DROPLESS_BPF_DIR)"
    } else {
        ""
    }
}

pub(super) fn io_error(path: &Path) -> impl Fn(io::Error) -> StayError {
    let path = path.to_path_buf();
    move |cause| StayError::Io {
        path: path.clone(),
        cause,
    }
}
