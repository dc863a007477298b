//! Memory that this process may still take: the machine's, or what its cgroups leave of that.

use procfs_core::{FromRead as _, Meminfo};
use std::path::Path;

use crate::Sys;
use crate::cgroups::room;

/// Memory that may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// Bytes that the kernel could give away without swapping; as many as anybody wants where it does not say.
    pub bytes: u64,
    /// The file of the cgroup's limit, where that is what bounds it.
    pub limit: Option<String>,
}

/// See [`Available`]. `MemAvailable` is the machine's, also in a container.
pub fn available(sys: &Sys) -> Available {
    let memory = Meminfo::from_file(sys.path("/proc/meminfo")).ok();
    let bytes = memory.and_then(|memory| memory.mem_available).unwrap_or(u64::MAX);
    let files = [
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ];
    let files = files.map(|(limit, taken)| (limit.to_owned(), taken.to_owned()));
    match room(sys, "memory", &files, |folder| unused_cache(sys, folder)) {
        Some(room) if room.bytes < bytes => Available {
            bytes: room.bytes,
            limit: Some(room.file),
        },
        _ => Available { bytes, limit: None },
    }
}

/// Pages of files that nobody has used for a while: they count as taken, and go first.
fn unused_cache(sys: &Sys, folder: &Path) -> u64 {
    let text = sys.text(folder.join("memory.stat")).unwrap_or_default();
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find_map(|(key, value)| (key == name).then(|| value.parse().ok())?)
    };
    // Of version 1, where the other one is without the cgroups below.
    value("total_inactive_file")
        .or_else(|| value("inactive_file"))
        .unwrap_or(0)
}

impl Available {
    /// Why `bytes` cannot be had for what `wants` them ("the ring needs"), and what to do instead; `None` if they can.
    pub fn refuses(&self, wants: &str, bytes: u64, advice: &str) -> Option<String> {
        let limit = self.limit.as_ref();
        let limit = limit.map_or_else(String::new, |file| format!(" below the limit of {file}"));
        (bytes > self.bytes).then(|| {
            format!(
                "{wants} {} MiB, and {} MiB of memory are available{limit}; {advice}",
                bytes.div_ceil(1 << 20),
                self.bytes >> 20
            )
        })
    }
}
