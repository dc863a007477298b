//! What a test needs of the machine, and how it is skipped, with the reason, where that is missing.

use std::process::Command;
use std::sync::OnceLock;

use super::lab::Lab;
use super::proc::hugepages_free_bytes;
use super::skip::skip;

/// Something that a test cannot do without.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// Effective user id 0.
    Root,
    /// Leave to make network namespaces.
    Namespaces,
    /// A program in `PATH`.
    Tool(&'static str),
    /// A file, such as a device node.
    File(&'static str),
    /// VLAN interfaces of the kernel (8021q).
    VlanInterfaces,
    /// At least this many processors to run on.
    Processors(usize),
    /// Free hugepages for two processes.
    Hugepages,
    /// Cgroups that can be given a quota of CPU time.
    CpuController,
    /// The reference implementation of `MLRsearch`, where `./dev setup` puts it.
    Oracle,
}

impl Need {
    /// Whether this need is met here.
    pub fn is_met(self) -> bool {
        self.missing().is_none()
    }

    /// Why this need is not met here, or nothing when it is.
    fn missing(self) -> Option<String> {
        match self {
            Self::Root if !nix::unistd::geteuid().is_root() => Some("needs root".into()),
            Self::Namespaces => namespaces_missing(),
            Self::Tool(tool) if find_tool(tool).is_none() => Some(format!("needs the program {tool}")),
            Self::Processors(count) => {
                let found = std::thread::available_parallelism().map_or(1, usize::from);
                (found < count).then(|| format!("needs {count} processors, {found} found"))
            }
            Self::File(path) if !std::path::Path::new(path).exists() => Some(format!("needs {path}")),
            Self::Hugepages => hugepages_missing(),
            Self::Oracle => oracle_missing(),
            Self::CpuController => {
                let reason =
                    || "needs a cgroup controller for CPU time (cpu.max, or cpu.cfs_quota_us)".to_owned();
                cpu_controller().is_none().then(reason)
            }
            Self::VlanInterfaces => vlan_interfaces_missing(),
            Self::Root | Self::Tool(_) | Self::File(_) => None,
        }
    }
}

/// Where `./dev setup` installs Python packages for tests.
pub fn oracle() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("oracle")
}

fn oracle_missing() -> Option<String> {
    let found = oracle().join("MLRsearch/__init__.py").is_file();
    let reason = || "needs the Python package MLRsearch, which ./dev setup installs".to_owned();
    Need::Tool("python3").missing().or_else(|| (!found).then(reason))
}

/// The folder below which a cgroup has a quota of CPU time, in either version.
pub fn cpu_controller() -> Option<std::path::PathBuf> {
    let version_1 = std::path::PathBuf::from("/sys/fs/cgroup/cpu");
    let version_2 = std::path::PathBuf::from("/sys/fs/cgroup");
    let children = std::fs::read_to_string(version_2.join("cgroup.subtree_control")).unwrap_or_default();
    if version_1.join("cpu.cfs_quota_us").exists() {
        return Some(version_1);
    }
    let has_quotas = children.split_whitespace().any(|controller| controller == "cpu");
    has_quotas.then_some(version_2)
}

fn hugepages_missing() -> Option<String> {
    let free_mib = hugepages_free_bytes() >> 20;
    (free_mib < 256).then(|| format!("needs 256 MiB of free hugepages, {free_mib} MiB found"))
}

fn namespaces_missing() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    if let Some(reason) = Need::Root.missing().or_else(|| Need::Tool("ip").missing()) {
        return Some(reason);
    }
    MISSING.get_or_init(try_a_namespace).clone()
}

fn try_a_namespace() -> Option<String> {
    let name = format!("dropless-{}-probe", std::process::id());
    let added = Command::new("ip").args(["netns", "add", &name]).output();
    let _ = Command::new("ip").args(["netns", "delete", &name]).output();
    match added {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "needs network namespaces: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("needs network namespaces: {error}")),
    }
}

/// Tries one in a namespace of its own.
fn vlan_interfaces_missing() -> Option<String> {
    if let Some(reason) = namespaces_missing() {
        return Some(reason);
    }
    let name = format!("dropless-{}-vlan", std::process::id());
    let script = format!(
        "ip netns add {name} && ip -n {name} link add link lo name vlan5 type vlan id 5; code=$?; ip netns delete {name}; exit $code"
    );
    let tried = Command::new("sh").args(["-c", &script]).output();
    let made = tried.is_ok_and(|output| output.status.success());
    (!made).then(|| "needs VLAN interfaces, which this kernel was built without (CONFIG_VLAN_8021Q)".into())
}

/// Where `PATH` has the program.
pub fn find_tool(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    // An ordinary user's PATH often lacks the directories of the network tools.
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// Waits for this test's turn and returns its lab, or records why the test is skipped.
pub fn require(needs: &[Need]) -> Option<Lab> {
    let missing: Vec<String> = needs.iter().filter_map(|need| need.missing()).collect();
    if missing.is_empty() {
        return Some(Lab::enter());
    }
    skip(&missing.join(", "));
    None
}
