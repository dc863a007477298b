//! Memory that may be taken: the machine's, and what cgroups leave of it.

use crate::fixture::Fixture;
use host::memory::{Available, available};

const MEMINFO: &str = "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 8388608 kB\nBuffers: 0 kB\nCached: 0 kB\n\
SwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\n\
Mapped: 0 kB\nSlab: 0 kB\nCommitted_AS: 0 kB\nVmallocTotal: 0 kB\nVmallocUsed: 0 kB\nVmallocChunk: 0 kB\n";

#[test]
fn a_cgroup_s_limit_counts_where_it_leaves_less() {
    let machine = Fixture::new();
    let now = || available(&machine.sys);
    let nobody_says = Available {
        bytes: u64::MAX,
        limit: None,
    };
    assert_eq!(now(), nobody_says);
    machine.write("/proc/meminfo", MEMINFO);
    assert_eq!((now().bytes, now().limit), (8 << 30, None));
    machine.write("/proc/self/cgroup", "0::/a/b\n");
    let folder = "/sys/fs/cgroup/a";
    machine.write(&format!("{folder}/b/memory.max"), "max\n");
    machine.write(&format!("{folder}/memory.max"), "1073741824\n");
    machine.write(&format!("{folder}/memory.current"), "536870912\n");
    assert_eq!(now().bytes, 512 << 20);
    // Pages of files that were read once are given up first.
    machine.write(
        &format!("{folder}/memory.stat"),
        "anon 1\ninactive_file 268435456\nactive_file 7\n",
    );
    let file = format!("{folder}/memory.max");
    assert_eq!((now().bytes, now().limit), (768 << 20, Some(file.clone())));
    assert_eq!(now().refuses("the ring needs", 768 << 20, "use less"), None);
    assert_eq!(
        now().refuses("the ring needs", (768 << 20) + 1, "use less"),
        Some(format!(
            "the ring needs 769 MiB, and 768 MiB of memory are available below the limit of {file}; use less"
        ))
    );
    machine.write("/proc/self/cgroup", "3:memory:/docker/c\n");
    let folder = "/sys/fs/cgroup/memory";
    machine.write(
        &format!("{folder}/memory.limit_in_bytes"),
        "9223372036854771712\n",
    );
    assert_eq!((now().bytes, now().limit), (8 << 30, None));
    machine.write(&format!("{folder}/memory.limit_in_bytes"), "1048576\n");
    machine.write(&format!("{folder}/memory.usage_in_bytes"), "2097152\n");
    machine.write(
        &format!("{folder}/memory.stat"),
        "inactive_file 0\ntotal_inactive_file 1572864\n",
    );
    assert_eq!(now().bytes, 512 << 10);
}
