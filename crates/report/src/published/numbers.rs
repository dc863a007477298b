//! Numbers of processes: in a PID namespace that kept the `/proc` of the one above (`unshare --pid --fork`), files there have
//! others than calls of the kernel. What is published, named and told are those of `/proc`: these can be looked up.

use std::path::{Path, PathBuf};

use procfs_core::FromRead as _;
use procfs_core::process::Status;

const PROC: &str = "/proc";

/// The number of this process.
pub fn own_id() -> u32 {
    let own = status(Path::new(PROC), "self");
    own.map_or_else(std::process::id, |status| status.pid as u32)
}

/// The number of the process that the kernel calls `id` here, as a child or the peer of a socket is; none where it cannot be
/// found.
pub fn in_proc(id: u32) -> Option<u32> {
    number_in(Path::new(PROC), id)
}

/// What the kernel calls the process with this number, so that it gets a signal; none where it is not in our PID namespace.
pub fn of_kernel(process: u32) -> Option<u32> {
    number_of(Path::new(PROC), process)
}

fn number_in(proc: &Path, id: u32) -> Option<u32> {
    if agrees(proc) {
        return Some(id);
    }
    let entries = proc.read_dir().ok()?.flatten();
    let mut all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.find(|process| within(proc, *process) == Some(id))
}

fn number_of(proc: &Path, process: u32) -> Option<u32> {
    if agrees(proc) {
        return Some(process);
    }
    within(proc, process)
}

/// Whether it is of our PID namespace, or tells nothing of others.
fn agrees(proc: &Path) -> bool {
    let numbers = status(proc, "self").and_then(|status| status.nspid);
    numbers.is_none_or(|numbers| numbers.len() < 2)
}

/// The number of a process in our PID namespace, if that is its own.
fn within(proc: &Path, process: u32) -> Option<u32> {
    let process = process.to_string();
    let namespace = |of: &str| -> Option<PathBuf> { proc.join(of).join("ns/pid").read_link().ok() };
    // Numbers of another namespace of the same depth look the same.
    let ours = namespace("self")?;
    let numbers = status(proc, &process)?.nspid?;
    let number = u32::try_from(*numbers.last()?).ok();
    number.filter(|_| namespace(&process) == Some(ours))
}

fn status(proc: &Path, process: &str) -> Option<Status> {
    Status::from_file(proc.join(process).join("status")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A process of these numbers, from the namespace of `/proc` inwards, in this PID namespace.
    fn process(proc: &Path, numbers: &[u32], namespace: &str) {
        let own = fs::read_to_string("/proc/self/status").unwrap();
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let lines = own.lines().map(|line| match line.split_once(':') {
            Some((name @ "Pid", _)) => format!("{name}:\t{}\n", words[0]),
            Some((name @ "NSpid", _)) => format!("{name}:\t{}\n", words.join("\t")),
            _ => format!("{line}\n"),
        });
        let dir = proc.join(&words[0]);
        fs::create_dir_all(dir.join("ns")).unwrap();
        fs::write(dir.join("status"), lines.collect::<String>()).unwrap();
        symlink(format!("pid:[{namespace}]"), dir.join("ns/pid")).unwrap();
    }

    #[test]
    fn in_a_namespace_of_its_own_a_process_has_two_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path();
        process(proc, &[1], "host");
        process(proc, &[900, 1], "ours");
        process(proc, &[901, 2], "ours");
        process(proc, &[800, 2], "another's");
        process(proc, &[902, 3, 1], "below ours");
        symlink("900", proc.join("self")).unwrap();
        assert_eq!(
            [1, 2, 3].map(|id| number_in(proc, id)),
            [Some(900), Some(901), None]
        );
        // Not one of them gets a signal that is for another, and init least of all.
        let signalled = [900, 901, 800, 902, 1, 7].map(|process| number_of(proc, process));
        assert_eq!(signalled, [Some(1), Some(2), None, None, None, None]);
    }

    #[test]
    fn elsewhere_it_has_one() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), &[900], "ours");
        symlink("900", dir.path().join("self")).unwrap();
        assert_eq!(
            (number_in(dir.path(), 7), number_of(dir.path(), 7)),
            (Some(7), Some(7))
        );
        let own = std::process::id();
        assert_eq!(in_proc(own), Some(own_id()));
        assert_eq!(of_kernel(own_id()), Some(own));
    }
}
