//! The facts about this machine that explain a result later: the content of `host.json`.

use crate::cores::{self, CoreSet};
use crate::cpu;
use crate::drivers::drivers;
use crate::{Sys, hugepages};
use procfs_core::{FromRead, Meminfo};
use serde::Serialize;

/// Facts about a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Host name.
    pub hostname: Option<String>,
    /// Distribution, in its own words.
    pub distribution: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Kernel command line.
    pub command_line: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Processor flags that matter here, of those the CPU has.
    pub cpu_flags: Vec<String>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// The cores.
    pub cores: CoreFacts,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory available in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Huge pages per size and node.
    pub hugepages: Vec<hugepages::Pool>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Clock sources it could use.
    pub clocksources_available: Option<String>,
    /// The hypervisor this runs under, if any.
    pub hypervisor: Option<String>,
    /// The machine's product name.
    pub product: Option<String>,
    /// Whether there is an IOMMU.
    pub iommu: bool,
    /// Where DPDK's drivers are installed.
    pub dpdk_drivers: Vec<String>,
    /// About this program, from the caller: version, DPDK version, build.
    pub build: serde_json::Value,
}

/// What is known of the cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoreFacts {
    /// Switched on.
    pub online: CoreSet,
    /// Usable by this process.
    pub allowed: CoreSet,
    /// Isolated from the scheduler.
    pub isolated: CoreSet,
    /// Without a timer tick.
    pub nohz_full: CoreSet,
    /// Hardware threads share physical cores.
    pub smt: bool,
    /// Frequency governor of core 0.
    pub governor: Option<String>,
}

/// Reads the facts; `build` is about this program and is kept as it is.
pub fn facts(sys: &Sys, build: serde_json::Value) -> Facts {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    let mut cpu = cpu::fields(sys);
    let meminfo = Meminfo::from_file(sys.path("/proc/meminfo")).ok();
    let directories = drivers(sys).directories.iter();
    Facts {
        hostname: sys.text("/proc/sys/kernel/hostname"),
        distribution: distribution(sys),
        kernel: sys.kernel_release(),
        command_line: sys.text("/proc/cmdline"),
        cpu_model: cpu.remove("model name"),
        cpu_flags: interesting_flags(&cpu.remove("flags").unwrap_or_default()),
        microcode: cpu.remove("microcode"),
        cores: core_facts(sys),
        numa_nodes: cores::numa_nodes(sys).len().max(1) as u32,
        memory_bytes: meminfo.as_ref().map(|memory| memory.mem_total),
        memory_available_bytes: meminfo.and_then(|memory| memory.mem_available),
        hugepages: hugepages::pools(sys),
        clocksource: sys.text(format!("{CLOCK}/current_clocksource")),
        clocksources_available: sys.text(format!("{CLOCK}/available_clocksource")),
        hypervisor: hypervisor(sys),
        product: sys.text("/sys/class/dmi/id/product_name"),
        iommu: crate::pci::has_iommu(sys),
        dpdk_drivers: directories.map(|path| path.display().to_string()).collect(),
        build,
    }
}

fn core_facts(sys: &Sys) -> CoreFacts {
    CoreFacts {
        online: cores::online(sys),
        allowed: cores::allowed(sys),
        isolated: cores::isolated(sys),
        nohz_full: cores::tickless(sys),
        smt: sys.text("/sys/devices/system/cpu/smt/active").as_deref() == Some("1"),
        governor: sys.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
}

fn distribution(sys: &Sys) -> Option<String> {
    let release = sys.text("/etc/os-release")?;
    let mut lines = release.lines();
    let name = lines.find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn interesting_flags(flags: &str) -> Vec<String> {
    const FLAGS: [&str; 9] = [
        "constant_tsc",
        "nonstop_tsc",
        "tsc_reliable",
        "rdtscp",
        "sse4_2",
        "avx2",
        "avx512f",
        "pdpe1gb",
        "hypervisor",
    ];
    let has = |wanted: &&str| flags.split_whitespace().any(|flag| flag == *wanted);
    FLAGS.into_iter().filter(has).map(str::to_owned).collect()
}

/// Whether this machine is a virtual one.
pub fn is_virtual(sys: &Sys) -> bool {
    hypervisor(sys).is_some()
}

/// The hypervisor by what firmware says of the machine; a CPU that says only that there is one is "unknown".
fn hypervisor(sys: &Sys) -> Option<String> {
    const VENDORS: [(&str, &str); 10] = [
        ("Microsoft Corporation", "Hyper-V"),
        ("Amazon EC2", "Amazon Nitro"),
        ("Google", "Google Compute Engine"),
        ("QEMU", "QEMU"),
        ("VMware", "VMware"),
        ("innotek", "VirtualBox"),
        ("Xen", "Xen"),
        ("OpenStack", "KVM (OpenStack)"),
        ("Red Hat", "KVM"),
        ("Alibaba Cloud", "KVM (Alibaba)"),
    ];
    if let Some(kind) = sys.text("/sys/hypervisor/type").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    let is_guest = cpu::has_flag(sys, "hypervisor");
    let vendor = sys.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let known = VENDORS.iter().find(|(prefix, _)| vendor.starts_with(prefix));
    is_guest.then(|| known.map_or("unknown", |(_, name)| name).to_owned())
}
