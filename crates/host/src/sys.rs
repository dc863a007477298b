//! The machine being looked at: a root directory, plus the few facts that no file tells.

use crate::capability::Capability;
use crate::pmd::Drivers;
use nix::ifaddrs::getifaddrs;
use procfs_core::FromRead;
use procfs_core::process::{Limits, Status};
use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A machine to look at. [`Sys::live`] is this one; [`Sys::at`] is a directory tree that looks like one.
#[derive(Debug)]
pub struct Sys {
    /// Everything is read below this directory: `/`, or a fixture tree.
    pub root: PathBuf,
    /// Addresses of the interfaces, with their interface's name.
    pub addresses: Vec<(String, IpAddr)>,
    /// Kinds of the interfaces of a fixture tree that are made in software, by name, such as `veth`: the kernel tells those of a
    /// live machine.
    pub kinds: HashMap<String, String>,
    /// `SSH_CONNECTION` of this session: client address and port, server address and port.
    pub ssh_connection: Option<String>,
    /// The user said `--force`: take devices that carry the default route or an SSH session, too.
    pub force: bool,
    /// See [`crate::drivers`].
    pub(crate) drivers: OnceLock<Drivers>,
}

impl Sys {
    /// This machine, as this process sees it.
    pub fn live() -> Self {
        let mut addresses = Vec::new();
        for entry in getifaddrs().into_iter().flatten() {
            let Some(storage) = entry.address else { continue };
            let ip = match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
                (Some(v4), _) => IpAddr::V4(v4.ip()),
                (_, Some(v6)) => IpAddr::V6(v6.ip()),
                _ => continue,
            };
            addresses.push((entry.interface_name, ip));
        }
        let ssh_connection = std::env::var("SSH_CONNECTION").ok();
        Self {
            addresses,
            ssh_connection,
            ..Self::at("/")
        }
    }

    /// The machine that the tree below `root` describes; without addresses and SSH session until they are set.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            addresses: Vec::new(),
            kinds: HashMap::new(),
            ssh_connection: None,
            force: false,
            drivers: OnceLock::new(),
        }
    }

    /// Whether this is the machine we run on, where system calls tell the truth, too.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// `path` (absolute, as on the machine) below the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file, trimmed; `None` if it cannot be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number in a file.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The hexadecimal number in a file, with or without `0x`.
    pub fn hex(&self, path: impl AsRef<Path>) -> Option<u32> {
        let text = self.text(path)?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    }

    /// The names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The directories of `/proc` that are processes.
    pub fn processes(&self) -> Vec<String> {
        let mut names = self.names("/proc");
        names.retain(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        names
    }

    /// Where file systems of this kind are mounted.
    pub fn mounts(&self, kind: &str) -> Vec<String> {
        let table = self.text("/proc/mounts").unwrap_or_default();
        let mounts = table.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let place = words.next()?;
            (words.next()? == kind).then(|| place.to_owned())
        });
        mounts.collect()
    }

    /// The last component of where a symbolic link points: sysfs names a driver, a group, a bus that way.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Whether the path exists (after following links).
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// `/proc/self/status`, typed.
    pub fn status(&self) -> Option<Status> {
        Status::from_file(self.path("/proc/self/status")).ok()
    }

    /// Whether this process has the capability; yes when that cannot be read, so as not to refuse what may work.
    pub fn has(&self, capability: Capability) -> bool {
        self.status()
            .is_none_or(|status| status.capeff & capability.mask() != 0)
    }

    /// Soft limit of locked memory in bytes; `None` is no limit.
    pub fn locked_memory_limit(&self) -> Option<u64> {
        use procfs_core::process::LimitValue;
        let limits = Limits::from_file(self.path("/proc/self/limits")).ok()?;
        match limits.max_locked_memory.soft_limit {
            LimitValue::Value(bytes) => Some(bytes),
            LimitValue::Unlimited => None,
        }
    }

    /// The running kernel's release: `6.1.0-18-amd64`.
    pub fn kernel_release(&self) -> Option<String> {
        self.text("/proc/sys/kernel/osrelease")
    }

    /// The first two numbers of it.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let release = self.kernel_release()?;
        let mut numbers = release.split(['.', '-', '+']).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}
