//! A port and the machine it is checked against, and what comes of it.

use crate::capability::Capability;
use crate::drivers::drivers;
use crate::interface::{Interface, interfaces};
use crate::problem::quoted;
use crate::roles::{Role, roles};
use crate::{Fix, Medium, PortUri, Problem, Sys, Warning, hugepages};
use itertools::Itertools as _;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What memory a port wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Ordinary pages will do (`--no-huge`); huge pages are faster.
    Any,
    /// Huge pages, or the device cannot reach the memory.
    HugePages,
}

/// A port that passed its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prepared {
    /// The port; `mac:` has become the device it names.
    pub uri: PortUri,
    /// What memory it wants.
    pub memory: Memory,
    /// NUMA node of its device.
    pub numa_node: Option<u32>,
    /// Interface of the kernel that it uses or takes over.
    pub interface: Option<String>,
    /// A socket that a dead server has left where this port opens one: see [`Prepared::make_way`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<PathBuf>,
    /// What the user should know, though it does not stop the run.
    pub notes: Vec<Warning>,
}

impl Prepared {
    pub(super) fn of(uri: &PortUri) -> Self {
        Self {
            uri: uri.clone(),
            memory: Memory::Any,
            numa_node: None,
            interface: None,
            abandoned: None,
            notes: Vec::new(),
        }
    }

    pub(super) fn with_notes(self, notes: Vec<Warning>) -> Self {
        Self { notes, ..self }
    }
}

/// A port and the machine it is checked against.
pub(super) struct Look<'a> {
    pub uri: &'a PortUri,
    pub sys: &'a Sys,
    pub interfaces: Vec<Interface>,
    pub roles: BTreeMap<String, BTreeSet<Role>>,
}

impl<'a> Look<'a> {
    pub fn new(uri: &'a PortUri, sys: &'a Sys) -> Self {
        let needs_interfaces = matches!(
            uri.kind.traits().medium,
            Medium::Nic | Medium::SharedInterface | Medium::OwnInterface
        );
        let mut look = Self {
            uri,
            sys,
            interfaces: Vec::new(),
            roles: BTreeMap::new(),
        };
        if needs_interfaces {
            look.interfaces = interfaces(sys);
            look.roles = roles(sys, &look.interfaces);
        }
        look
    }

    pub fn problem(&self, found: impl Into<String>, fix: Fix) -> Problem {
        Problem::new(self.uri, found, fix)
    }

    /// The DPDK driver library that ports of this kind load.
    pub fn own_driver(&self) -> Result<(), Problem> {
        self.uri
            .kind
            .traits()
            .driver
            .map_or(Ok(()), |name| self.driver(name))
    }

    /// The DPDK driver library this port loads.
    pub fn driver(&self, name: &str) -> Result<(), Problem> {
        let drivers = drivers(self.sys);
        if drivers.has(name) != Some(false) {
            return Ok(());
        }
        let found = format!("DPDK's driver for it (librte_net_{name}.so) is not installed");
        let install = Fix::one(format!("apt-get install -y {}", drivers.package(name)));
        Err(self.problem(found, install.persistent()))
    }

    /// Every capability, or the word that root is needed.
    pub fn capabilities(&self, wanted: &[Capability], what_for: &str) -> Result<(), Problem> {
        // Before 5.8 (and for some operations since), CAP_SYS_ADMIN stands for CAP_BPF.
        let has = |capability: Capability| {
            self.sys.has(capability) || (capability == Capability::Bpf && self.sys.has(Capability::SysAdmin))
        };
        let missing = wanted
            .iter()
            .filter(|capability| !has(**capability))
            .join(" and ");
        if missing.is_empty() {
            return Ok(());
        }
        let found = format!("{what_for} needs {missing}, which this process does not have");
        Err(self.problem(found, as_root()))
    }

    /// The port, with the huge pages that a NIC's driver needs, which must be free on `node`.
    pub fn on_huge_pages(&self, node: Option<u32>) -> Result<Prepared, Problem> {
        hugepages::check(self.sys, &self.uri.to_string(), hugepages::MINIMUM_BYTES, node)?;
        Ok(Prepared {
            memory: Memory::HugePages,
            numa_node: node,
            ..Prepared::of(self.uri)
        })
    }

    /// Where a path from the user is: below the root if absolute, else as it is.
    pub fn path(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            self.sys.path(path)
        } else {
            path.to_owned()
        }
    }

    /// The directory that is to hold a file of the user's.
    pub fn writable_parent(&self, path: &Path) -> Result<(), Problem> {
        let parent = parent(path);
        let (shown, quoted, real) = (parent.display(), quoted(parent.display()), self.path(parent));
        if !real.exists() {
            let fix = Fix::one(format!("mkdir -p {quoted}"))
                .persistent()
                .undone_by([format!("rmdir {quoted}")]);
            return Err(self.problem(format!("directory {shown} does not exist"), fix));
        }
        if !real.is_dir() {
            let fix = Fix::advice("choose another path");
            return Err(self.problem(format!("{shown} is not a directory"), fix));
        }
        if !may(&real, AccessFlags::W_OK | AccessFlags::X_OK) {
            let fix = Fix::advice("choose a directory of your own, or run dropless with sudo");
            return Err(self.problem(format!("directory {shown} cannot be written"), fix));
        }
        Ok(())
    }
}

/// The directory that a file is in.
pub(super) fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Whether this process (as its effective user) has the access.
pub(super) fn may(path: &Path, access: AccessFlags) -> bool {
    faccessat(AT_FDCWD, path, access, AtFlags::AT_EACCESS).is_ok()
}

pub(super) fn as_root() -> Fix {
    Fix::one("sudo dropless <the same arguments>")
}
