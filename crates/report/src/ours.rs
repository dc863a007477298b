//! Files and directories that we make: never by way of a link, and of a run under sudo the user's who asked for it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Links that lead to one another; the kernel follows as many.
const LINKS_MAX: usize = 40;

/// A new file in the place of what had this name: of a link the link goes, and not what it leads to.
pub fn create(path: &Path) -> io::Result<File> {
    create_as(path, 0o666)
}

/// The same for its owner alone: packets hold what others said.
pub fn create_private(path: &Path) -> io::Result<File> {
    create_as(path, 0o600)
}

fn create_as(path: &Path, mode: u32) -> io::Result<File> {
    make_room(path)?;
    // Nothing may be there, no link either.
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path)?;
    hand_over(&file);
    Ok(file)
}

/// Opens a file of an earlier run of ours to add to it, or makes it.
pub fn append(path: &Path) -> io::Result<File> {
    let open = || {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let mut options = OpenOptions::new();
        options.append(true).custom_flags(flags.bits()).open(path)
    };
    match open() {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(io::Error::other("it is no regular file")),
        Err(cause) if cause.kind() == ErrorKind::NotFound => create(path),
        Err(cause) => Err(cause),
    }
}

/// Adds to the end of a file that is `len` bytes long: all of it, or the file ends where it ended.
pub fn add(file: &mut File, len: u64, bytes: &[u8]) -> io::Result<()> {
    let added = file.write_all(bytes);
    if added.is_err() {
        // Neither works on a device or a pipe, and there it does not matter.
        let _ = file.set_len(len);
        let _ = file.seek(SeekFrom::Start(len));
    }
    added
}

/// What mends an error that comes from a limit, and not from the name: no other name in `directory` would do either.
pub fn limit(cause: &io::Error, directory: &Path) -> Option<String> {
    match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            let place = if directory.as_os_str().is_empty() {
                Path::new(".")
            } else {
                directory
            };
            Some(format!(
                "free some space (df -h {}), or name another place",
                place.display()
            ))
        }
        ErrorKind::FileTooLarge => Some("raise `ulimit -f`".to_owned()),
        _ if cause.raw_os_error() == Some(nix::Error::EMFILE as i32) => Some("raise `ulimit -n`".to_owned()),
        _ if cause.raw_os_error() == Some(nix::Error::ENFILE as i32) => {
            Some("raise `sysctl fs.file-max`: the machine has no more open files".to_owned())
        }
        _ => None,
    }
}

/// Makes a directory, which must not be there.
pub fn make_dir(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    let flags = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY;
    let made = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    // It may have been exchanged by who owns the directory above it: only what is ours is given away.
    if made.metadata()?.uid() == nix::unistd::geteuid().as_raw() {
        hand_over(&made);
    }
    Ok(())
}

/// Makes a directory and those above it, where they are not there.
pub fn make_dirs(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), make_dirs)?;
    match make_dir(path) {
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Where what is written to `path` comes to lie. A link is followed where we or root made it, and it does not lead to a
/// file of somebody else: or whoever may make links here would choose what we replace.
pub fn landing(path: &Path) -> io::Result<PathBuf> {
    let me = nix::unistd::geteuid().as_raw();
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(found) = fs::symlink_metadata(&at) else {
            // A link that leads nowhere is replaced itself.
            return Ok(path.to_owned());
        };
        if !found.is_symlink() {
            let is_theirs = at != path && found.is_file() && found.uid() != me;
            if is_theirs {
                return Err(refused(&format!("a link to a file of user {}'s", found.uid())));
            }
            return Ok(at);
        }
        if ![me, 0].contains(&found.uid()) {
            return Err(refused(&format!("a link of user {}'s", found.uid())));
        }
        let next = at.parent().unwrap_or(Path::new("")).join(fs::read_link(&at)?);
        // What a process has open (/dev/stdout) has a link without a name that can be followed.
        if fs::symlink_metadata(&next).is_err() && fs::metadata(&at).is_ok() {
            return Ok(at);
        }
        at = next;
    }
    Err(refused("a link to itself"))
}

fn refused(what: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("it is {what}"))
}

/// Takes away a file or a link that is in the way, and nothing else.
fn make_room(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if found.is_file() || found.is_symlink() => fs::remove_file(path),
        Ok(_) => Err(io::Error::other("what is no regular file is in its place")),
    }
}

/// Gives what we have just made to the user who let root run this. A file system without owners has none to give it to.
fn hand_over(made: &File) {
    if let Some((user, group)) = invoker() {
        let _ = fchown(made, Some(user), Some(group));
    }
}

/// The user and the group of whoever called sudo, where we are root by that.
pub fn invoker() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let known = id("SUDO_UID").zip(id("SUDO_GID"));
    known.filter(|(user, _)| *user != 0 && nix::unistd::geteuid().is_root())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::ExportError;
    use std::os::unix::fs::{lchown, symlink};

    /// Another user, where we may give files away; only root may.
    const OTHER: u32 = 65534;

    fn is_root() -> bool {
        nix::unistd::geteuid().is_root()
    }

    #[test]
    fn a_new_file_takes_the_place_of_a_link_and_not_of_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "untouched").unwrap();
        symlink(&file, &link).unwrap();
        assert!(append(&link).is_err(), "a link is not added to");
        drop(create(&link).unwrap());
        assert!(!link.is_symlink() && link.is_file());
        assert_eq!(fs::read_to_string(&file).unwrap(), "untouched");
        assert!(create(dir.path()).is_err(), "a directory stays");
    }

    #[test]
    fn a_private_file_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "anybody's").unwrap();
        let made = create_private(&path).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_link_is_followed_where_we_or_root_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("link", at("chain")).unwrap();
        symlink("nowhere", at("loose")).unwrap();
        symlink("itself", at("itself")).unwrap();
        assert_eq!(landing(&at("absent")).unwrap(), at("absent"));
        assert_eq!(landing(&at("file")).unwrap(), at("file"));
        assert_eq!(landing(&at("chain")).unwrap(), at("file"));
        assert_eq!(landing(&at("loose")).unwrap(), at("loose"));
        assert!(landing(&at("itself")).is_err());
        if !is_root() {
            return;
        }
        // In the middle of a chain it is another's, too.
        lchown(at("link"), Some(OTHER), None).unwrap();
        for name in ["link", "chain"] {
            let error = landing(&at(name)).unwrap_err().to_string();
            assert_eq!(error, "it is a link of user 65534's", "{name}");
        }
        lchown(at("link"), Some(0), None).unwrap();
        lchown(at("file"), Some(OTHER), None).unwrap();
        let error = landing(&at("link")).unwrap_err().to_string();
        assert_eq!(error, "it is a link to a file of user 65534's");
        assert_eq!(landing(&at("file")).unwrap(), at("file"), "named by ourselves");
    }

    #[test]
    fn directories_are_made_down_to_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        make_dirs(&deep).unwrap();
        make_dirs(&deep).unwrap();
        assert!(deep.is_dir());
        assert!(make_dir(&deep).is_err());
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(make_dirs(&dir.path().join("file/below")).is_err());
    }

    #[test]
    fn a_limit_is_named_and_nothing_else_is_one() {
        let limit = |code, directory| limit(&io::Error::from_raw_os_error(code), Path::new(directory));
        let full = limit(28, "/mnt").unwrap();
        assert_eq!(full, "free some space (df -h /mnt), or name another place");
        assert!(limit(122, "").unwrap().contains("(df -h .)"));
        assert_eq!(limit(27, "/mnt").unwrap(), "raise `ulimit -f`");
        assert_eq!(limit(24, "/mnt").unwrap(), "raise `ulimit -n`");
        assert_eq!(limit(13, "/mnt"), None);
        let page = ExportError::Write("page.html".into(), ErrorKind::StorageFull.into());
        assert!(
            page.to_string().contains("fix: free some space (df -h .)"),
            "{page}"
        );
    }
}
