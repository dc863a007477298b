//! What `/proc` says of the machine, its sockets and its processes.

use nix::unistd::Pid;
use procfs_core::process::Stat;
use procfs_core::{FromRead as _, Meminfo};

/// Bytes of hugepages that nobody has; none where the machine has no pool.
pub fn hugepages_free_bytes() -> u64 {
    let memory = Meminfo::from_file("/proc/meminfo").ok();
    let bytes = memory.and_then(|memory| Some(memory.hugepages_free? * memory.hugepagesize?));
    bytes.unwrap_or(0)
}

/// Whether somebody listens at a socket whose path ends so: the file alone may be that of a dead server.
pub fn is_served(name: &str) -> bool {
    // procfs-core leaves the flags out, and without them a socket that is only bound looks the same.
    const LISTENS: &str = "00010000";
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut sockets = sockets.lines();
    sockets.any(|line| line.ends_with(name) && line.split_whitespace().nth(3) == Some(LISTENS))
}

/// What its first thread started and did not wait for; nothing of a process that is gone.
pub fn children(process: u32) -> Vec<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let text = text.unwrap_or_default();
    let ids = text.split_whitespace().filter_map(|id| id.parse().ok());
    ids.map(Pid::from_raw).collect()
}

/// How long a thread has had a core outside the kernel; hundredths of a second.
pub fn user_time(process: u32, thread: &str) -> Option<u64> {
    let stat = Stat::from_file(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    Some(stat.utime)
}

/// Whether a process is there, and not a zombie.
pub fn is_alive(process: u32) -> bool {
    Stat::from_file(format!("/proc/{process}/stat")).is_ok_and(|stat| stat.state != 'Z')
}
