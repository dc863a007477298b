//! A machine made of files: 8 cores, one NUMA node, DPDK drivers installed, root's capabilities, huge pages free.

use host::{PortUri, Prepared, Problem, Sys};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const STATUS: &str = "Name:\tdropless\nUmask:\t0022\nState:\tR (running)\nTgid:\t7\nNgid:\t0\nPid:\t7\nPPid:\t1\n\
TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\nThreads:\t1\nSigQ:\t0/1\n\
SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n\
SigCgt:\t0000000000000000\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\tCAPABILITIES\n\
CapBnd:\t000001ffffffffff\nCpus_allowed_list:\tALLOWED\n";
const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n";
pub const PMDS: &str = "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0";

pub struct Fixture {
    directory: TempDir,
    pub sys: Sys,
}

impl Fixture {
    /// A bare-metal machine with an IOMMU, as root, without any network device.
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let sys = Sys::at(directory.path());
        let machine = Self { directory, sys };
        machine.process("000001ffffffffff", "0-7");
        machine.write("/proc/self/limits", &limits("unlimited"));
        machine.write(
            "/proc/mounts",
            "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n",
        );
        machine.write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
        machine.write(
            "/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: avx2 constant_tsc\n\n",
        );
        machine.write(
            "/proc/net/protocols",
            "protocol  size\nPACKET 1600 0\nXDP 1088 0\n",
        );
        let modules = "kernel/drivers/vfio/pci/vfio-pci.ko: a\nkernel/drivers/uio/uio_pci_generic.ko.xz:\n\
                       kernel/drivers/uio/uio_hv_generic.ko:\n";
        machine.write("/lib/modules/6.1.0-18-amd64/modules.dep", modules);
        machine.write("/sys/devices/system/cpu/online", "0-7\n");
        machine.write("/sys/devices/system/cpu/present", "0-7\n");
        machine.hugepages(0, 2048, 512, 512);
        machine.directory("/sys/kernel/iommu_groups/1/devices");
        machine.drivers();
        machine
    }

    /// The same as a virtual machine without an IOMMU.
    pub fn virtual_machine() -> Self {
        let machine = Self::new();
        machine.remove("/sys/kernel/iommu_groups/1");
        machine.write("/proc/cpuinfo", "processor\t: 0\nflags\t\t: avx2 hypervisor\n\n");
        machine
    }

    fn drivers(&self) {
        for name in ["af_packet", "af_xdp", "tap", "memif", "vhost", "pcap", "null"] {
            self.driver(name, &format!("{{\"name\": \"net_{name}\", \"pci_ids\": []}}"));
        }
        let pci = |name: &str, kmod: &str, vendor: u32, device: u32| {
            self.driver(
                name,
                &format!(
                    "{{\"name\": \"net_{name}\", \"kmod\": \"{kmod}\", \"pci_ids\": [[{vendor}, {device}, 65535, 65535]]}}"
                ),
            );
        };
        pci("ixgbe", "* igb_uio | uio_pci_generic | vfio-pci", 0x8086, 0x10fb);
        pci("virtio", "* igb_uio | uio_pci_generic | vfio-pci", 0x1af4, 0x1041);
        pci("mlx5", "* ib_uverbs & mlx5_core & mlx5_ib", 0x15b3, 0x1017);
        self.driver(
            "netvsc",
            "{\"name\": \"net_netvsc\", \"kmod\": \"* uio_hv_generic\", \"pci_ids\": []}",
        );
    }

    /// Installs a DPDK driver library that describes itself so.
    pub fn driver(&self, name: &str, description: &str) {
        let library = format!("\u{7f}ELF\0PMD_INFO_STRING= {description}\0end");
        self.write(&format!("{PMDS}/librte_net_{name}.so"), &library);
    }

    /// A process of one thread: its state, where it may run, and the kernel's flags.
    pub fn thread(&self, id: u32, state: &str, allowed: &str, flags: u32) {
        let status = STATUS.replace("CAPABILITIES", "0").replace("ALLOWED", allowed);
        let zeroes = "0 ".repeat(32);
        let stat = format!("{id} (a) b) {state} 1 1 1 0 -1 {flags} {zeroes}0");
        self.write(&format!("/proc/{id}/task/{id}/status"), &status);
        self.write(&format!("/proc/{id}/task/{id}/stat"), &stat);
    }

    /// This process's capabilities and affinity.
    pub fn process(&self, capabilities: &str, allowed: &str) {
        let status = STATUS
            .replace("CAPABILITIES", capabilities)
            .replace("ALLOWED", allowed);
        self.write("/proc/self/status", &status);
    }

    pub fn hugepages(&self, node: u32, kib: u32, total: u32, free: u32) {
        let base = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB");
        self.write(&format!("{base}/nr_hugepages"), &total.to_string());
        self.write(&format!("{base}/free_hugepages"), &free.to_string());
    }

    /// A PCI function as the kernel shows it, with the IOMMU group if there is one.
    pub fn pci(
        &self,
        address: &str,
        identifiers: (u32, u32),
        driver: Option<&str>,
        group: Option<u32>,
    ) -> String {
        let device = format!("/sys/devices/pci0000:00/{address}");
        self.write(&format!("{device}/class"), "0x020000\n");
        self.write(&format!("{device}/vendor"), &format!("{:#06x}\n", identifiers.0));
        self.write(&format!("{device}/device"), &format!("{:#06x}\n", identifiers.1));
        self.write(&format!("{device}/numa_node"), "0\n");
        self.link(&format!("{device}/subsystem"), "/sys/bus/pci");
        self.link(&format!("/sys/bus/pci/devices/{address}"), &device);
        if let Some(driver) = driver {
            self.link(
                &format!("{device}/driver"),
                &format!("/sys/bus/pci/drivers/{driver}"),
            );
        }
        if let Some(group) = group {
            self.link(
                &format!("{device}/iommu_group"),
                &format!("/sys/kernel/iommu_groups/{group}"),
            );
            self.link(
                &format!("/sys/kernel/iommu_groups/{group}/devices/{address}"),
                &device,
            );
        }
        device
    }

    /// A `VMBus` network device.
    pub fn vmbus(&self, id: &str, driver: &str) -> String {
        let device = format!("/sys/devices/LNXSYSTM:00/VMBUS:00/{id}");
        self.write(
            &format!("{device}/class_id"),
            "{f8615163-df3e-46c5-913f-f2d2f965ed0e}\n",
        );
        self.link(&format!("{device}/subsystem"), "/sys/bus/vmbus");
        self.link(&format!("/sys/bus/vmbus/devices/{id}"), &device);
        self.link(
            &format!("{device}/driver"),
            &format!("/sys/bus/vmbus/drivers/{driver}"),
        );
        device
    }

    /// An interface that is up and has a link; on `device` if given, else made in software.
    pub fn interface(&self, name: &str, device: Option<&str>) {
        let base = match device {
            Some(device) => format!("{device}/net/{name}"),
            None => format!("/sys/devices/virtual/net/{name}"),
        };
        let index = name.bytes().map(u32::from).sum::<u32>().to_string();
        for (file, text) in [
            ("flags", "0x1003"),
            ("type", "1"),
            ("carrier", "1"),
            ("mtu", "1500"),
            ("address", "02:00:00:00:00:01"),
            ("ifindex", &index),
            ("iflink", &index),
            ("uevent", ""),
            ("speed", "-1"),
        ] {
            self.write(&format!("{base}/{file}"), text);
        }
        self.directory(&format!("{base}/queues/rx-0"));
        self.directory(&format!("{base}/queues/tx-0"));
        if let Some(device) = device {
            self.link(&format!("{base}/device"), device);
        }
        self.link(&format!("/sys/class/net/{name}"), &base);
    }

    /// The table of IPv4 routes: the default route leaves by `interface`.
    pub fn default_route(&self, interface: &str) {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let route = format!("{interface}\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
        self.write("/proc/net/route", &format!("{head}{route}"));
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn directory(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    pub fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.directory(target);
        symlink(self.path(target), path).unwrap();
    }

    /// A link that leads nowhere, as those below `/proc/PID/fd` and `/proc/PID/ns` look.
    pub fn dangling_link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory
            .path()
            .join(Path::new(path).strip_prefix("/").unwrap())
    }

    pub fn check(&self, uri: &str) -> Result<Prepared, Problem> {
        host::check(&uri.parse::<PortUri>().unwrap(), &self.sys)
    }

    /// The one line that a port is refused with.
    #[track_caller]
    pub fn line(&self, uri: &str) -> String {
        let line = self.check(uri).expect_err("the port was accepted").to_string();
        assert!(!line.contains('\n'), "{line:?} is more than one line");
        line
    }

    /// The codes of what the user is told of an accepted port.
    #[track_caller]
    pub fn notes(&self, uri: &str) -> Vec<&'static str> {
        self.check(uri)
            .unwrap()
            .notes
            .iter()
            .map(|note| note.code)
            .collect()
    }
}

/// `/proc/self/limits` with this limit of locked memory.
pub fn limits(locked: &str) -> String {
    const NAMES: &str = "cpu time,file size,data size,stack size,core file size,resident set,processes,open files,\
                         locked memory,address space,file locks,pending signals,msgqueue size,nice priority,\
                         realtime priority,realtime timeout";
    let row = |name: &str| {
        let value = if name == "locked memory" {
            locked
        } else {
            "unlimited"
        };
        // Priorities have no unit.
        let unit = if name.ends_with("priority") { "" } else { "units" };
        format!("{:<26}{value:<21}{value:<21}{unit:<10}\n", format!("Max {name}"))
    };
    LIMITS.to_owned() + &NAMES.split(',').map(row).collect::<String>()
}
