//! What runs that were killed left in DPDK's runtime folder and of hugepages: nobody else takes it away.

use std::fs::{self, File};
use std::path::Path;

use host::Sys;
use nix::fcntl::{FcntlArg, Flock, FlockArg, fcntl};
use nix::libc;
use report::published::own_id;

use super::claim;

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

/// Removes the hugepages that killed runs left in files (`--dpdk-tools`), before anybody asks how many are free.
pub fn sweep_pages() {
    for mount in Sys::live().mounts("hugetlbfs") {
        sweep_in(Path::new(&mount));
    }
}

fn sweep_in(mount: &Path) {
    remove_pages(mount, |id, file| !is_starting(id) && !is_mapped(file));
}

/// The hugepages of this process, where they are in files that others may map; removed with the end of this.
pub struct OwnPages;

impl Drop for OwnPages {
    fn drop(&mut self) {
        let own = own_id();
        for mount in Sys::live().mounts("hugetlbfs") {
            remove_pages(Path::new(&mount), |id, _| id == own);
        }
    }
}

/// Removes the files of hugepages whose process and file are such ones.
fn remove_pages(mount: &Path, is_meant: impl Fn(u32, &Path) -> bool) {
    for file in fs::read_dir(mount).into_iter().flatten().flatten() {
        let owner = page_owner(&file.file_name().to_string_lossy());
        // Whoever may write there may have made a pipe of that name, which nobody opens.
        let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && owner.is_some_and(|id| is_meant(id, &file.path())) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Whether a dropless of this number lives here, which may be about to lock what it made. This process has made nothing yet:
/// what has its number is that of one which had it before, as in a container that was started again.
fn is_starting(id: u32) -> bool {
    id != own_id() && claim::is_one_of_ours(id)
}

/// Whether somebody has locked a file of hugepages, or we may not know: DPDK does while it maps it (`get_seg_fd` of
/// `eal_memalloc.c`), and the lock of whoever lives in another namespace of processes is seen, too.
fn is_mapped(file: &Path) -> bool {
    let lock = |file| Flock::lock(file, FlockArg::LockExclusiveNonblock);
    !File::open(file).is_ok_and(|file| lock(file).is_ok())
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

    /// Beyond the largest id that Linux gives.
    const DEAD: u32 = 4_194_305;

    #[test]
    fn pages_are_known_by_their_names() {
        assert_eq!(page_owner("dropless-4711map_0"), Some(4711));
        for other in ["rtemap_0", "dropless-map_0", "dropless-xmap_0", "dropless-4711"] {
            assert_eq!(page_owner(other), None, "{other}");
        }
    }

    #[test]
    fn only_the_pages_of_the_dead_go() {
        let mount = tempfile::tempdir().unwrap();
        let page = |id: u32| mount.path().join(format!("{PREFIX}{id}map_0"));
        let (own, dead, elsewhere) = (std::process::id(), DEAD, DEAD + 1);
        let others = mount.path().join("rtemap_0");
        for file in [page(own), page(dead), page(elsewhere), others.clone()] {
            fs::write(file, "").unwrap();
        }
        let lives = File::open(page(elsewhere)).unwrap();
        let lives = Flock::lock(lives, FlockArg::LockSharedNonblock).unwrap();
        sweep_in(mount.path());
        assert!(!page(dead).exists() && !page(own).exists());
        assert!(page(elsewhere).exists() && others.exists());
        drop(lives);
        sweep_in(mount.path());
        assert!(!page(elsewhere).exists());
    }

    #[test]
    fn the_pages_of_one_that_starts_stay() {
        let mount = tempfile::tempdir().unwrap();
        // A thread has a number and a name, as a process has.
        let starts = std::thread::Builder::new().name("dropless".into());
        let swept = starts.spawn(move || {
            let id = nix::unistd::gettid().as_raw();
            let page = mount.path().join(format!("{PREFIX}{id}map_0"));
            fs::write(&page, "").unwrap();
            sweep_in(mount.path());
            page.exists()
        });
        assert!(swept.unwrap().join().unwrap());
    }

    #[test]
    fn only_the_folders_of_the_dead_go() {
        let all = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for (name, file) in [
            (format!("{PREFIX}{DEAD}"), Some("fbarray_memzone")),
            (format!("{PREFIX}{}", DEAD + 1), None),
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
