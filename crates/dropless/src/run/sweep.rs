//! What runs that were killed left in DPDK's runtime folder: nobody else takes it away.

use std::fs::{self, File};
use std::path::Path;

use host::Sys;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Whom the folders of this program belong to is in their names.
pub const PREFIX: &str = "dropless-";
/// DPDK keeps it locked while a process lives, also in another namespace of processes (`rte_eal_primary_proc_alive`).
const LOCKED: &str = "config";

/// Removes the folders of processes that are gone beside `own`.
pub fn sweep(own: &Path) {
    let beside = own.parent().and_then(|all| fs::read_dir(all).ok());
    for folder in beside.into_iter().flatten().flatten() {
        let id = folder
            .file_name()
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        let is_gone =
            |id: u32| !Path::new(&format!("/proc/{id}")).exists() && !is_locked(&folder.path().join(LOCKED));
        if id.is_some_and(is_gone) && folder.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&folder.path());
        }
    }
}

/// The hugepages of this process, where they are in files that others may map; removed with the end of this.
pub struct OwnPages(());

impl OwnPages {
    /// Before DPDK starts: what killed runs left is removed, since it takes pages that nobody else gives back.
    pub fn new() -> Self {
        remove_pages(|id| !Path::new(&format!("/proc/{id}")).exists());
        Self(())
    }
}

impl Drop for OwnPages {
    fn drop(&mut self) {
        let own = std::process::id();
        remove_pages(|id| id == own);
    }
}

/// Removes the files of hugepages whose process is such a one.
fn remove_pages(is_meant: impl Fn(u32) -> bool) {
    for mount in Sys::live().mounts("hugetlbfs") {
        for file in fs::read_dir(mount).into_iter().flatten().flatten() {
            if page_owner(&file.file_name().to_string_lossy()).is_some_and(&is_meant) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// Whose a file of hugepages is, by its name: `dropless-4711map_0`.
fn page_owner(name: &str) -> Option<u32> {
    let (id, _) = name.strip_prefix(PREFIX)?.split_once("map_")?;
    id.parse().ok()
}

fn is_locked(file: &Path) -> bool {
    let Ok(file) = File::options().read(true).write(true).open(file) else {
        return false;
    };
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut lock)).is_err() || i32::from(lock.l_type) != libc::F_UNLCK
}

/// Its files, none of which is a folder; then the folder. What is not ours to remove stays.
pub fn remove(folder: &Path) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let _ = fs::remove_file(file.path());
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_by_their_names() {
        assert_eq!(page_owner("dropless-4711map_0"), Some(4711));
        for other in ["rtemap_0", "dropless-map_0", "dropless-xmap_0", "dropless-4711"] {
            assert_eq!(page_owner(other), None, "{other}");
        }
    }

    #[test]
    fn only_the_folders_of_the_dead_go() {
        let all = tempfile::tempdir().unwrap();
        let own = std::process::id();
        // Beyond the largest id that Linux gives.
        let dead = 4_194_305;
        for (name, file) in [
            (format!("{PREFIX}{dead}"), Some("fbarray_memzone")),
            (format!("{PREFIX}{}", dead + 1), None),
            (format!("{PREFIX}{own}"), None),
            (format!("{PREFIX}x"), None),
            ("rte".to_owned(), Some("config")),
        ] {
            fs::create_dir(all.path().join(&name)).unwrap();
            if let Some(file) = file {
                fs::write(all.path().join(name).join(file), "").unwrap();
            }
        }
        sweep(&all.path().join(format!("{PREFIX}{own}")));
        let mut left: Vec<_> = fs::read_dir(all.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [format!("{PREFIX}{own}"), format!("{PREFIX}x"), "rte".to_owned()]
        );
    }
}
