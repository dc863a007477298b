//! Which cgroups limit and count the CPU time of this process: its own and all above it.

use std::path::{Path, PathBuf};

use host::{Sys, cgroups};

/// Where version 2 is mounted; beside version 1 one floor down.
const VERSION_2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Where the controller `cpu` of version 1 is mounted.
const VERSION_1: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// The folders of this process's cgroups, its own before those above it; of those that are not there, too.
pub fn folders(sys: &Sys) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for cgroup in cgroups(&sys.path("/proc/self/cgroup")) {
        let places = if cgroup.hierarchy == 0 {
            VERSION_2
        } else if cgroup.controllers.iter().any(|name| name == "cpu") {
            VERSION_1
        } else {
            continue;
        };
        for base in places {
            let own = Path::new(base).join(cgroup.pathname.trim_start_matches('/'));
            let above = own.ancestors().take_while(|folder| folder.starts_with(base));
            all.extend(above.map(Path::to_owned));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn the_own_one_comes_before_those_above() {
        let machine = Machine::with(&[("/proc/self/cgroup", "2:cpuset:/x\n1:cpu,cpuacct:/a\n0::/b\n")]);
        let folders = folders(&machine.sys);
        let said: Vec<_> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        assert_eq!(
            said,
            [
                "/sys/fs/cgroup/cpu/a",
                "/sys/fs/cgroup/cpu",
                "/sys/fs/cgroup/cpu,cpuacct/a",
                "/sys/fs/cgroup/cpu,cpuacct",
                "/sys/fs/cgroup/b",
                "/sys/fs/cgroup",
                "/sys/fs/cgroup/unified/b",
                "/sys/fs/cgroup/unified"
            ]
        );
    }
}
