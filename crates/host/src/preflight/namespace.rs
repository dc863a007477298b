//! Network namespaces: whether `/sys` shows the one that we are in, and which other one has an interface.

use crate::{Fix, Problem, Sys};
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const CLASS: &str = "/sys/class/net";
const NAMED: &str = "/run/netns";
/// Network namespaces looked into at the most.
const NAMESPACES_MAX: usize = 256;

/// A network namespace other than ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// `ip netns` knows it by this name.
    Named(String),
    /// Only its processes hold it, this one among them.
    OfProcess(u32),
}

impl Namespace {
    /// The command that runs dropless in it.
    pub fn enter(&self) -> String {
        match self {
            Self::Named(name) => format!("ip netns exec {name} dropless <the same arguments>"),
            Self::OfProcess(pid) => format!("nsenter --target {pid} --net {WITH_ITS_SYS}"),
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::OfProcess(pid) => write!(f, "that of process {pid}"),
        }
    }
}

/// Runs dropless with the `/sys` of the network namespace that it is in: one that is mounted shows that which it was mounted in.
pub const WITH_ITS_SYS: &str =
    "unshare --mount sh -c 'mount -t sysfs none /sys && exec dropless <the same arguments>'";

const FOREIGN_SYS: &str = "/sys shows another network namespace (nsenter --net leaves it as it was)";

/// Refuses a `/sys` that shows the interfaces of another network namespace: its numbers of interfaces mean others here, or
/// none.
pub fn check_sys(sys: &Sys, what: &str) -> Result<(), Problem> {
    // What comes or goes between two readings is not the same each time.
    let first = differing(sys);
    if first.is_empty() || differing(sys).is_disjoint(&first) {
        return Ok(());
    }
    Err(Problem::new(what, FOREIGN_SYS.to_owned(), Fix::one(WITH_ITS_SYS)))
}

/// Interfaces that only one of `/sys` and our network namespace has.
fn differing(sys: &Sys) -> BTreeSet<String> {
    let Some(table) = sys.text("/proc/net/dev") else {
        return BTreeSet::new();
    };
    let here = names(&table).map(str::to_owned).collect();
    let shown = sys.names(CLASS).into_iter();
    // Beside interfaces there are files, such as `bonding_masters`.
    let shown = shown.filter(|name| sys.exists(Path::new(CLASS).join(name).join("ifindex")));
    &shown.collect::<BTreeSet<_>>() ^ &here
}

/// What keeps an interface from being seen that `/sys` does not show, and what mends that.
pub fn hidden(sys: &Sys, interface: &str) -> Option<(String, String)> {
    // Of this process, wherever it was mounted.
    if lists(&sys.text("/proc/net/dev").unwrap_or_default(), interface) {
        return Some((
            format!("{interface} is here, but {FOREIGN_SYS}"),
            WITH_ITS_SYS.to_owned(),
        ));
    }
    let elsewhere = holding(sys, interface)?;
    let found = format!("interface {interface} is in another network namespace ({elsewhere})");
    Some((found, elsewhere.enter()))
}

/// The namespace that has an interface of this name, as far as we may look.
fn holding(sys: &Sys, interface: &str) -> Option<Namespace> {
    let known = sys.names(NAMED);
    let mut candidates = known.iter().take(NAMESPACES_MAX);
    if let Some(name) = candidates.find(|name| sys.is_live() && named_lists(sys, name, interface)) {
        return Some(Namespace::Named(name.clone()));
    }
    let own = sys.link_name("/proc/self/ns/net");
    let mut seen = vec![own];
    for pid in sys.processes().iter().filter_map(|name| name.parse::<u32>().ok()) {
        let namespace = sys.link_name(format!("/proc/{pid}/ns/net"));
        if namespace.is_none() || seen.contains(&namespace) || seen.len() > NAMESPACES_MAX {
            continue;
        }
        let table = sys.text(format!("/proc/{pid}/net/dev")).unwrap_or_default();
        if lists(&table, interface) {
            let name = namespace.and_then(|namespace| name_of(sys, &known, &namespace));
            return Some(name.map_or(Namespace::OfProcess(pid), Namespace::Named));
        }
        seen.push(namespace);
    }
    None
}

/// Whether `/proc/net/dev` lists the interface.
fn lists(table: &str, interface: &str) -> bool {
    names(table).any(|name| name == interface)
}

/// The interfaces that `/proc/net/dev` lists.
fn names(table: &str) -> impl Iterator<Item = &str> {
    let lines = table.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, _)| name.trim())
}

/// Enters the namespace with a thread of its own, which ends with it, and reads its interfaces there.
fn named_lists(sys: &Sys, name: &str, interface: &str) -> bool {
    let Ok(namespace) = File::open(sys.path(format!("{NAMED}/{name}"))) else {
        return false;
    };
    let thread = std::thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).ok()?;
        fs::read_to_string("/proc/thread-self/net/dev").ok()
    });
    let table = thread.join().ok().flatten();
    table.is_some_and(|table| lists(&table, interface))
}

/// The name `ip netns` has for `net:[inode]`.
fn name_of(sys: &Sys, names: &[String], namespace: &str) -> Option<String> {
    let inode: u64 = namespace.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    let file = |name: &String| fs::metadata(sys.path(format!("{NAMED}/{name}")));
    let is_it = |name: &&String| file(name).is_ok_and(|file| file.ino() == inode);
    names.iter().find(is_it).cloned()
}
