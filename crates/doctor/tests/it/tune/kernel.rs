//! A kernel made of files that behaves like one: it refuses, it has its own spelling, and it can be pulled the plug on.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use doctor::tune::{Journal, Kernel};
use host::Sys;
use host::cores::CoreSet;

use crate::fixture::Fixture;

pub const NIC: &str = "0000:3b:00.0";
pub const GROUP: &str = "/sys/fs/cgroup/dropless";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const PCI: &str = "/sys/bus/pci";

pub struct Machine {
    pub files: Fixture,
    /// Operations until the process dies; none for one that lives.
    fuse: Cell<Option<u32>>,
    pub operations: Cell<u32>,
}

impl Machine {
    pub fn new() -> Self {
        let files = Fixture::new();
        files.write("/proc/sys/kernel/random/boot_id", "one\n");
        files.write("/proc/irq/default_smp_affinity", "ff\n");
        for (irq, cores) in [(7, "2"), (8, "3"), (9, "2")] {
            files.write(&format!("/proc/irq/{irq}/smp_affinity_list"), "0-7\n");
            files.write(
                &format!("/proc/irq/{irq}/effective_affinity_list"),
                &format!("{cores}\n"),
            );
        }
        files.write("/sys/devices/virtual/workqueue/cpumask", "ff\n");
        files.write("/proc/sys/kernel/watchdog", "1\n");
        files.write(THP, "always [madvise] never\n");
        files.write("/proc/70/comm", "irqbalance\n");
        files.write("/etc/default/irqbalance", "# yours\nIRQBALANCE_ARGS=\"\"\n");
        files.directory("/usr/sbin");
        files.write("/usr/sbin/update-grub", "");
        let mounts =
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n";
        files.write("/proc/mounts", mounts);
        files.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
        files.write("/sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n");
        let device = files.pci(NIC, (0x8086, 0x10fb), Some("ixgbe"), Some(1));
        files.write(&format!("{device}/driver_override"), "(null)\n");
        for driver in ["ixgbe", "vfio-pci"] {
            for file in ["bind", "unbind"] {
                files.write(&format!("{PCI}/drivers/{driver}/{file}"), "");
            }
        }
        files.write(&format!("{PCI}/drivers_probe"), "");
        Self {
            files,
            fuse: Cell::new(None),
            operations: Cell::new(0),
        }
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&self.files.sys, Path::new(doctor::tune::journal::DEFAULT)).expect("the journal")
    }

    pub fn holds(&self, path: &str) -> String {
        fs::read_to_string(self.files.path(path))
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Does `work`, and dies after so many operations; whether it died.
    pub fn killed_after(&self, operations: u32, work: impl FnOnce(&Self)) -> bool {
        self.fuse.set(Some(operations));
        let died = catch_unwind(AssertUnwindSafe(|| work(self))).is_err();
        self.fuse.set(None);
        died
    }

    /// Every file, directory and link, but for the journal, and for what the kernel chooses itself.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let root = self.files.sys.root.clone();
        let within = |path: &Path| path.strip_prefix(&root).map_or(path.to_owned(), Path::to_owned);
        let mut folders = vec![root.clone()];
        let mut found = BTreeMap::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.ends_with("var") || path.ends_with("effective_affinity_list") {
                    continue;
                }
                let kind = entry.file_type().unwrap();
                let shown = if kind.is_symlink() {
                    format!("-> {}", within(&fs::read_link(&path).unwrap()).display())
                } else if kind.is_dir() {
                    folders.push(path.clone());
                    "directory".into()
                } else {
                    fs::read_to_string(&path).unwrap()
                };
                found.insert(within(&path), shown);
            }
        }
        found
    }

    /// Dies before an operation, or after it.
    fn operation<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.burn();
        let done = work();
        self.burn();
        done
    }

    fn burn(&self) {
        self.operations.set(self.operations.get() + 1);
        match self.fuse.get() {
            Some(0) => resume_unwind(Box::new("killed")),
            Some(left) => self.fuse.set(Some(left - 1)),
            None => {}
        }
    }

    fn put(&self, path: &str, value: &str) -> io::Result<()> {
        let text = match path {
            _ if path.starts_with("/proc/irq/9/") => return Err(io::Error::from_raw_os_error(5)),
            THP => "always madvise never\n".replace(value, &format!("[{value}]")),
            "/sys/devices/virtual/workqueue/cpumask" => format!("{value:0>2}\n"),
            _ if path.ends_with("nr_hugepages") => {
                let pages: u32 = value.parse().map_err(io::Error::other)?;
                format!("{}", pages.min(700))
            }
            _ if path.ends_with("driver_override") && value.is_empty() => "(null)\n".into(),
            _ if path.ends_with("subtree_control") => {
                let list = self.holds(path);
                let name = &value[1..];
                let rest = list.split(' ').filter(|word| *word != name);
                let on = value.starts_with('+').then_some(name);
                format!("{}\n", on.into_iter().chain(rest).collect::<Vec<_>>().join(" "))
            }
            _ if path.starts_with(PCI) && !path.contains("/devices/") => return self.driver(path, value),
            _ => format!("{value}\n"),
        };
        // What comes into effect at once, but for interrupt 8: it waits for its next. An interrupt stays where it may.
        if path == "/proc/irq/7/smp_affinity_list" {
            let effective = "/proc/irq/7/effective_affinity_list";
            let cores: CoreSet = value.parse().map_err(io::Error::other)?;
            let stays = self
                .holds(effective)
                .parse()
                .is_ok_and(|now: CoreSet| now.without(&cores).is_empty());
            if let (false, Some(first)) = (stays, cores.iter().next()) {
                self.files.write(effective, &format!("{}\n", first.0));
            }
        }
        if !self.files.path(path).exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.files.write(path, &text);
        Ok(())
    }

    /// Binding as the PCI bus does it.
    fn driver(&self, path: &str, address: &str) -> io::Result<()> {
        let device = self.files.path(&format!("{PCI}/devices/{address}"));
        let wanted = fs::read_to_string(device.join("driver_override"))?;
        let wanted = wanted.trim();
        let (driver, file) = match path.rsplit('/').collect::<Vec<_>>()[..] {
            ["drivers_probe", ..] if wanted == "(null)" => ("ixgbe", "bind"),
            ["drivers_probe", ..] => (wanted, "bind"),
            [file, driver, ..] => (driver, file),
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        if file == "unbind" {
            return fs::remove_file(device.join("driver"));
        }
        let takes = if wanted == "(null)" { "ixgbe" } else { wanted };
        if takes != driver {
            return Err(io::Error::from_raw_os_error(19));
        }
        symlink(
            self.files.path(&format!("{PCI}/drivers/{driver}")),
            device.join("driver"),
        )
    }
}

impl Kernel for Machine {
    fn sys(&self) -> &Sys {
        &self.files.sys
    }

    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        self.operation(|| self.put(path, value))
    }

    fn replace(&self, path: &str, text: Option<&str>) -> io::Result<()> {
        // Killed in the middle, what was to take the file's place is left.
        self.files.write(&format!("{path}.dropless-new"), "half");
        self.operation(|| {
            self.sweep(path);
            self.files.sys.replace(path, text)
        })
    }

    fn make_directory(&self, path: &str) -> io::Result<()> {
        self.operation(|| {
            self.files.directory(path);
            if path == GROUP {
                self.files.write(&format!("{path}/cgroup.type"), "domain\n");
                self.files.write(&format!("{path}/cgroup.threads"), "");
                self.files.write(&format!("{path}/cpuset.cpus"), "\n");
                self.files
                    .write(&format!("{path}/cpuset.cpus.partition"), "member\n");
            }
            Ok(())
        })
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.operation(|| {
            if path == GROUP {
                return fs::remove_dir_all(self.files.path(path));
            }
            fs::remove_dir(self.files.path(path))
        })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        self.operation(|| {
            let module = "/sys/module/vfio_pci";
            match (program, arguments) {
                ("modprobe", ["vfio-pci"]) => self.files.directory(module),
                ("modprobe", ["-r", "vfio-pci"]) => self.files.remove(module),
                _ => {}
            }
            Ok(())
        })
    }
}
