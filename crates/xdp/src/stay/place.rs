//! Where in the BPF file system filters are kept that stay, and how something gets there.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys as sys;
use nix::sys::statfs::{FsType, statfs};

use super::error::{StayError, io_error};

/// Names another directory, in the place of the usual one.
const VARIABLE: &str = "DROPLESS_BPF_DIR";
pub(super) const USUAL: &str = "/sys/fs/bpf/dropless";
/// `BPF_FS_MAGIC` of `linux/magic.h`.
const BPF_FS: FsType = FsType(0xCAFE_4A11);

/// Where filters are kept that stay.
pub(super) fn root() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from(USUAL), PathBuf::from)
}

/// The number of our network namespace.
pub(super) fn namespace() -> Result<u64, StayError> {
    let path = Path::new("/proc/thread-self/ns/net");
    let data = fs::metadata(path).map_err(io_error(path))?;
    Ok(data.ino())
}

/// In a BPF file system that everybody may write to, somebody else may have made the directory before us, and could exchange
/// what we keep there.
pub(super) fn check_owner(root: &Path) -> Result<(), StayError> {
    let Ok(found) = fs::symlink_metadata(root) else {
        return Ok(());
    };
    let me = nix::unistd::geteuid().as_raw();
    let is_ours = found.is_dir() && [0, me].contains(&found.uid()) && found.mode() & 0o022 == 0;
    if is_ours {
        return Ok(());
    }
    let why = format!(
        "others may write there (it is of user {}); fix: remove it, or name another directory by {VARIABLE}",
        found.uid()
    );
    Err(io_error(root)(io::Error::new(
        io::ErrorKind::PermissionDenied,
        why,
    )))
}

/// Where the filter of this interface is kept.
pub(super) fn dir(index: u32) -> Result<PathBuf, StayError> {
    let root = root();
    let place = root.parent().unwrap_or(&root);
    match statfs(place) {
        Ok(found) if found.filesystem_type() == BPF_FS => {}
        _ => return Err(StayError::NotMounted(place.to_path_buf())),
    }
    check_owner(&root)?;
    Ok(root.join(format!("{}-{index}", namespace()?)))
}

/// A descriptor's object, under this name.
pub(crate) fn pin(object: BorrowedFd<'_>, path: &Path) -> Result<(), StayError> {
    let name = CString::new(path.as_os_str().as_bytes());
    let name = name.map_err(|_| io_error(path)(io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: both live through the call.
    let result = unsafe { sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) };
    if result < 0 {
        return Err(io_error(path)(io::Error::from_raw_os_error(-result)));
    }
    Ok(())
}
