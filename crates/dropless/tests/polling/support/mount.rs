//! A file system that goes with the test that mounts it. Tests of other crates include this file, too.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What is mounted at a directory of the test's own; unmounted when dropped, also where the test fails meanwhile.
pub struct Mount(PathBuf);

impl Mount {
    /// `mount ARGUMENTS` at a directory, which is made where it is not there.
    pub fn new(arguments: &[&str], at: &Path) -> Self {
        std::fs::create_dir_all(at).expect("a directory to mount at");
        let mut command = Command::new("mount");
        command.args(arguments).arg(at);
        let status = command.status().expect("starting mount");
        assert!(status.success(), "{command:?}: {status}");
        Self(at.to_path_buf())
    }

    /// Memory of this size as a disk, such as `8m`.
    pub fn disk(size: &str, at: &Path) -> Self {
        Self::new(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: whoever still has a file open there keeps it from nobody else.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
