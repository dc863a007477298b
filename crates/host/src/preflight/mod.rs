//! Checks that everything a port needs is there, before EAL starts and says it in its own way. One file per kind.

pub(crate) mod bifurcated;
mod clash;
mod interface;
mod kernel;
mod mac;
mod namespace;
mod pcap;
mod pci;
mod socket;
mod tap;
mod vdev;
mod vmbus;

use crate::capability::Capability;
use crate::interface::{Interface, interfaces};
use crate::problem::quoted;
use crate::roles::{Role, roles};
use crate::{Fix, Medium, PciAddress, PortKind, PortUri, Problem, Sys, Warning};
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
    /// What the user should know, though it does not stop the run.
    pub notes: Vec<Warning>,
}

impl Prepared {
    fn of(uri: &PortUri) -> Self {
        Self {
            uri: uri.clone(),
            memory: Memory::Any,
            numa_node: None,
            interface: None,
            notes: Vec::new(),
        }
    }

    fn with_notes(self, notes: Vec<Warning>) -> Self {
        Self { notes, ..self }
    }
}

/// Checks one port. Changes nothing, except that the socket file of a dead server is removed (and noted).
pub fn check(uri: &PortUri, sys: &Sys) -> Result<Prepared, Problem> {
    let look = Look::new(uri, sys);
    match &uri.kind {
        PortKind::Ring { .. } => Ok(Prepared::of(uri)),
        PortKind::Null { .. } => look.driver("null").map(|()| Prepared::of(uri)),
        PortKind::Pci { address } => pci::check(&look, *address),
        PortKind::Vmbus { id } => vmbus::check(&look, id),
        PortKind::Mac { address } => mac::check(&look, *address),
        PortKind::Xdp { interface, start, .. } => interface::xdp(&look, interface, *start),
        PortKind::Packet { interface, .. } => interface::packet(&look, interface),
        PortKind::Tap { name, .. } => tap::check(&look, name),
        PortKind::Memif {
            path,
            server,
            zero_copy,
            ..
        } => socket::memif(&look, path, *server, *zero_copy),
        PortKind::Vhost { path, client } => socket::vhost(&look, path, *client),
        PortKind::VirtioUser { path, server } => socket::virtio_user(&look, path, *server),
        PortKind::Pcap { input, output } => pcap::check(&look, input.as_deref(), output.as_deref()),
        PortKind::Kernel { address, port, .. } => kernel::check(&look, *address, *port),
        PortKind::Vdev { arguments } => vdev::check(&look, arguments),
    }
}

/// The PCI function of a port and the driver that it is to be bound to; nothing where it is right as it is.
pub(crate) fn takeover(uri: &PortUri, sys: &Sys) -> Result<Option<(PciAddress, &'static str)>, Problem> {
    let PortKind::Pci { address } = uri.kind else {
        return Ok(None);
    };
    let driver = pci::takeover(&Look::new(uri, sys), address)?;
    Ok(driver.map(|driver| (address, driver)))
}

/// Checks all ports of a run: that there is one, each alone, and that no two take the same thing.
pub fn check_all(uris: &[PortUri], sys: &Sys) -> Result<Vec<Prepared>, Problem> {
    if uris.is_empty() {
        let fix = Fix::advice("name one, for example ring, or see: dropless ports");
        return Err(Problem::new("ports", "no port was given", fix));
    }
    clash::check(uris)?;
    let prepared = uris
        .iter()
        .map(|uri| check(uri, sys))
        .collect::<Result<Vec<_>, _>>()?;
    // A mac: may turn out to be a device that is also named directly.
    let resolved: Vec<PortUri> = prepared.iter().map(|port| port.uri.clone()).collect();
    clash::check(&resolved)?;
    Ok(prepared)
}

/// A port and the machine it is checked against.
struct Look<'a> {
    uri: &'a PortUri,
    sys: &'a Sys,
    interfaces: Vec<Interface>,
    roles: BTreeMap<String, BTreeSet<Role>>,
}

impl<'a> Look<'a> {
    fn new(uri: &'a PortUri, sys: &'a Sys) -> Self {
        let needs_interfaces = matches!(
            uri.kind.traits().medium,
            Medium::Nic | Medium::SharedInterface | Medium::OwnInterface
        );
        let interfaces = if needs_interfaces {
            interfaces(sys)
        } else {
            Vec::new()
        };
        let roles = if needs_interfaces {
            roles(sys, &interfaces)
        } else {
            BTreeMap::new()
        };
        Self {
            uri,
            sys,
            interfaces,
            roles,
        }
    }

    fn problem(&self, found: impl Into<String>, fix: Fix) -> Problem {
        Problem::new(self.uri, found, fix)
    }

    /// The DPDK driver library this port loads.
    fn driver(&self, name: &str) -> Result<(), Problem> {
        let drivers = self.sys.drivers();
        if drivers.has(name) != Some(false) {
            return Ok(());
        }
        let found = format!("DPDK's driver for it (librte_net_{name}.so) is not installed");
        Err(self.problem(
            found,
            Fix::one(format!("apt-get install -y {}", drivers.package(name))).persistent(),
        ))
    }

    /// Every capability, or the word that root is needed.
    fn capabilities(&self, wanted: &[Capability], what_for: &str) -> Result<(), Problem> {
        // Before 5.8 (and for some operations since), CAP_SYS_ADMIN stands for CAP_BPF.
        let has = |capability: Capability| {
            self.sys.has(capability) || (capability == Capability::Bpf && self.sys.has(Capability::SysAdmin))
        };
        let missing: Vec<String> = wanted
            .iter()
            .filter(|c| !has(**c))
            .map(ToString::to_string)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let found = format!(
            "{what_for} needs {}, which this process does not have",
            missing.join(" and ")
        );
        Err(self.problem(found, as_root()))
    }

    /// Where a path from the user is: below the root if absolute, else as it is.
    fn path(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            self.sys.path(path)
        } else {
            path.to_owned()
        }
    }

    /// The directory that is to hold a file of the user's.
    fn writable_parent(&self, path: &Path) -> Result<(), Problem> {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let (shown, quoted, real) = (parent.display(), quoted(parent.display()), self.path(parent));
        if !real.exists() {
            let fix = Fix::one(format!("mkdir -p {quoted}"))
                .persistent()
                .undone_by([format!("rmdir {quoted}")]);
            return Err(self.problem(format!("directory {shown} does not exist"), fix));
        }
        if !real.is_dir() {
            return Err(self.problem(
                format!("{shown} is not a directory"),
                Fix::advice("choose another path"),
            ));
        }
        if !may(&real, AccessFlags::W_OK | AccessFlags::X_OK) {
            let fix = Fix::advice("choose a directory of your own, or run dropless with sudo");
            return Err(self.problem(format!("directory {shown} cannot be written"), fix));
        }
        Ok(())
    }
}

/// Whether this process (as its effective user) has the access.
fn may(path: &Path, access: AccessFlags) -> bool {
    faccessat(AT_FDCWD, path, access, AtFlags::AT_EACCESS).is_ok()
}

fn as_root() -> Fix {
    Fix::one("sudo dropless <the same arguments>")
}
