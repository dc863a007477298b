//! The cgroups that a process is in.

use std::fs;
use std::path::{Path, PathBuf};

use procfs_core::{FromBufRead as _, ProcessCGroup, ProcessCGroups};

use crate::Sys;
use crate::core_set::CoreSet;

/// Where version 2 is mounted; beside version 1 one floor down.
const VERSION_2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Those of `file`, a `/proc/PID/cgroup` (cgroups(7)): that of version 2 has hierarchy 0 and no controllers. None if it
/// cannot be read.
pub fn cgroups(file: &Path) -> Vec<ProcessCGroup> {
    let bytes = fs::read(file).unwrap_or_default();
    // A name may be any bytes; the library would refuse all for one that is no UTF-8.
    let text = String::from_utf8_lossy(&bytes);
    ProcessCGroups::from_buf_read(text.as_bytes()).map_or_else(|_| Vec::new(), |all| all.0)
}

/// The folders of this process's cgroups that may have `controller`, its own before those above it; of those that are not
/// there, too.
pub fn cgroup_folders(sys: &Sys, controller: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for cgroup in cgroups(&sys.path("/proc/self/cgroup")) {
        let bases = if cgroup.hierarchy == 0 {
            VERSION_2.map(str::to_owned)
        } else if cgroup.controllers.iter().any(|name| name == controller) {
            // Those that belong together are mounted as one, to which each name may be a link.
            [controller, &cgroup.controllers.join(",")].map(|name| format!("/sys/fs/cgroup/{name}"))
        } else {
            continue;
        };
        let mut seen = Vec::new();
        for base in bases {
            let place = sys.path(&base);
            let place = place.canonicalize().unwrap_or(place);
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            let own = Path::new(&base).join(cgroup.pathname.trim_start_matches('/'));
            let above = own.ancestors().take_while(|folder| folder.starts_with(&base));
            all.extend(above.map(Path::to_owned));
        }
    }
    all
}

/// What a cgroup lets its processes take more of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Where its limit is told.
    pub file: String,
    /// How much that leaves.
    pub bytes: u64,
}

/// The least room that the cgroups of this process leave it; none where there is no limit. Each of `files` is a limit and what
/// was taken of it, as versions 2 and 1 call them; of what was taken, the kernel gives up what `gives_up` says of a folder.
pub(crate) fn room(
    sys: &Sys,
    controller: &str,
    files: &[(String, String)],
    gives_up: impl Fn(&Path) -> u64,
) -> Option<Room> {
    let folders = cgroup_folders(sys, controller);
    let each = folders
        .iter()
        .flat_map(|folder| files.iter().map(move |file| (folder, file)));
    let rooms = each.filter_map(|(folder, (limit, taken))| {
        let file = folder.join(limit);
        // No number where it is `max`.
        let limit: u64 = sys.number(&file)?;
        let taken = sys.number::<u64>(folder.join(taken)).unwrap_or(0);
        Some(Room {
            bytes: limit.saturating_sub(taken.saturating_sub(gives_up(folder))),
            file: file.display().to_string(),
        })
    });
    rooms.min_by_key(|room| room.bytes)
}

/// The cpuset that this process is in, which no affinity leads out of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpuset {
    /// Where it is told.
    pub file: String,
    /// Its cores.
    pub cores: CoreSet,
}

/// See [`Cpuset`]; none where no cgroup tells of one.
pub fn cpuset(sys: &Sys) -> Option<Cpuset> {
    cgroup_folders(sys, "cpuset").iter().find_map(|folder| {
        // As versions 2 and 1 call it.
        ["cpuset.cpus.effective", "cpuset.effective_cpus"]
            .iter()
            .find_map(|name| {
                let file = folder.join(name).display().to_string();
                let cores: CoreSet = sys.text(&file)?.parse().ok()?;
                (!cores.is_empty()).then_some(Cpuset { file, cores })
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_that_is_no_text_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cgroup");
        fs::write(&file, b"3:cpu,cpuacct:/a:b\n2:name=systemd:/\xFF\n0::/c d \n").unwrap();
        let all = cgroups(&file);
        let said: Vec<_> = all
            .iter()
            .map(|one| (one.hierarchy, one.controllers.join("+"), one.pathname.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                (3, "cpu+cpuacct".to_owned(), "/a:b"),
                (2, "name=systemd".to_owned(), "/\u{FFFD}"),
                (0, String::new(), "/c d "),
            ]
        );
        assert!(cgroups(&folder.path().join("absent")).is_empty());
    }
    #[test]
    fn the_own_one_comes_before_those_above_and_none_twice() {
        let folder = tempfile::tempdir().unwrap();
        let sys = Sys::at(folder.path());
        let mount = folder.path().join("sys/fs/cgroup");
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        fs::write(
            folder.path().join("proc/self/cgroup"),
            "2:cpuset:/x\n1:cpu,cpuacct:/a\n0::/b\n",
        )
        .unwrap();
        let said = || {
            let folders = cgroup_folders(&sys, "cpu").into_iter();
            folders
                .map(|folder| folder.display().to_string().replace("/sys/fs/cgroup", "."))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let version_2 = "./b . ./unified/b ./unified";
        assert_eq!(
            said(),
            format!("./cpu/a ./cpu ./cpu,cpuacct/a ./cpu,cpuacct {version_2}")
        );
        fs::create_dir_all(mount.join("cpu,cpuacct")).unwrap();
        std::os::unix::fs::symlink("cpu,cpuacct", mount.join("cpu")).unwrap();
        assert_eq!(said(), format!("./cpu/a ./cpu {version_2}"));
    }
}
