//! The cgroups that a process is in.

use std::fs;
use std::path::Path;

use procfs_core::{FromBufRead as _, ProcessCGroup, ProcessCGroups};

/// Those of `file`, a `/proc/PID/cgroup` (cgroups(7)): that of version 2 has hierarchy 0 and no controllers. None if it
/// cannot be read.
pub fn cgroups(file: &Path) -> Vec<ProcessCGroup> {
    let bytes = fs::read(file).unwrap_or_default();
    // A name may be any bytes; the library would refuse all for one that is no UTF-8.
    let text = String::from_utf8_lossy(&bytes);
    ProcessCGroups::from_buf_read(text.as_bytes()).map_or_else(|_| Vec::new(), |all| all.0)
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
}
