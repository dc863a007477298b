//! What several checks look at: the tasks, the devices behind the ports.

use std::fmt::Display;

use itertools::Itertools as _;

use super::{Remedy, Subject, When};
use host::cores::{Core, CoreSet};
use host::interface::{Interface, interfaces};
use host::pci::{self, PciDevice};
use host::threads::{self, Thread};
use host::{Fix, PortKind, PortUri, Sys, vmbus};

/// Threads that go where the `rest` is; nothing where there is no core for it.
pub fn moved(threads: &[Thread], rest: &CoreSet) -> Option<Remedy> {
    let pin = |cores: &CoreSet, id| format!("taskset -pc {cores} {id}");
    let away = |thread: &Thread| pin(&rest.kept_of(&thread.allowed), thread.id);
    let fix = Fix::all(threads.iter().map(away))
        .undone_by(threads.iter().map(|thread| pin(&thread.allowed, thread.id)));
    (!rest.is_empty()).then(|| Remedy::by_hand(When::Now, fix))
}

/// What is behind a port.
#[derive(Debug, Clone)]
pub struct Behind {
    pub port: PortUri,
    pub pci: Option<PciDevice>,
    pub interface: Option<Interface>,
    pub numa_node: Option<u32>,
}

/// What is behind each port.
pub fn behind(subject: &Subject<'_>) -> Vec<Behind> {
    if subject.ports.is_empty() {
        return Vec::new();
    }
    let all = interfaces(subject.sys);
    subject
        .ports
        .iter()
        .map(|port| behind_port(subject.sys, port, &all))
        .collect()
}

pub(super) fn behind_port(sys: &Sys, port: &PortUri, all: &[Interface]) -> Behind {
    let by = |wanted: &dyn Fn(&Interface) -> bool| all.iter().find(|interface| wanted(interface)).cloned();
    let (mut device, mut node) = (None, None);
    let interface = match &port.kind {
        PortKind::Xdp { interface, .. } | PortKind::Packet { interface, .. } => {
            by(&|it| it.name == *interface)
        }
        PortKind::Mac { address } => by(&|it| it.mac == Some(*address) && it.pci.is_some()),
        PortKind::Pci { address } => {
            device = pci::device(sys, *address);
            by(&|it| it.pci == Some(*address))
        }
        PortKind::Vmbus { id } => {
            node = vmbus::device(sys, id).and_then(|device| device.numa_node);
            by(&|it| it.vmbus.as_ref() == Some(id))
        }
        _ => None,
    };
    let address = interface.as_ref().and_then(|interface| interface.pci);
    let pci = device.or_else(|| pci::device(sys, address?));
    let node = node.or_else(|| pci.as_ref()?.numa_node);
    Behind {
        port: port.clone(),
        numa_node: node.or_else(|| interface.as_ref()?.numa_node),
        pci,
        interface,
    }
}

/// The PCI functions behind the ports; where no port is planned, every network function there is.
pub fn functions(subject: &Subject<'_>) -> Vec<PciDevice> {
    functions_of(subject, |_| true)
}

/// The same without those that the kernel goes on driving (`xdp:`, `packet:`).
pub fn taken_functions(subject: &Subject<'_>) -> Vec<PciDevice> {
    functions_of(subject, |port| port.kind.traits().takes_pci)
}

fn functions_of(subject: &Subject<'_>, wanted: fn(&PortUri) -> bool) -> Vec<PciDevice> {
    if subject.ports.is_empty() {
        return pci::network_functions(subject.sys);
    }
    let ports = behind(subject).into_iter().filter(|behind| wanted(&behind.port));
    let functions = ports.filter_map(|behind| behind.pci);
    functions.unique_by(|device| device.address).collect()
}

/// Why nothing can be said of processes, where those that were looked for were not `found`.
pub fn why_unseen(sys: &Sys, found: bool) -> Option<&'static str> {
    if found {
        None
    } else if sys.processes().is_empty() {
        Some("no process is visible in /proc")
    } else if is_blind(sys) {
        Some("other users' processes are hidden from us (hidepid): run as root")
    } else {
        let why = "the processes of this machine are not visible in a PID namespace: in a container --pid=host shows them";
        (!threads::sees_all(sys)).then_some(why)
    }
}

/// Whether `/proc` is mounted so that we do not see the processes of others (`hidepid`, proc(5)).
fn is_blind(sys: &Sys) -> bool {
    let mounts = sys.text("/proc/mounts").unwrap_or_default();
    let hides = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("/proc")
            && words.nth(1).is_some_and(|options| {
                options.contains("hidepid=")
                    && !options.contains("hidepid=0")
                    && !options.contains("hidepid=off")
            })
    };
    mounts.lines().any(hides) && sys.text("/proc/1/status").is_none()
}

/// A core's folder.
pub fn cpu(core: Core) -> String {
    format!("/sys/devices/system/cpu/cpu{core}")
}

/// The first few of some words, and how many more there are.
pub fn few<W: Display>(words: impl IntoIterator<Item = W>) -> String {
    const SHOWN: usize = 4;
    let mut words = words.into_iter();
    let first = words.by_ref().take(SHOWN).join(", ");
    match words.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::Machine;

    /// What the kernel tells of a thread, as far as it must be there.
    const STATUS: &str = "Name:\ta\nState:\tS (sleeping)\nTgid:\tID\nPid:\tID\nPPid:\t1\nTracerPid:\t0\n\
        Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\nThreads:\t1\nSigQ:\t0/1\nSigPnd:\t0\nShdPnd:\t0\n\
        SigBlk:\t0\nSigIgn:\t0\nSigCgt:\t0\nCapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCpus_allowed_list:\tALLOWED\n";

    /// The thread that is always there, by which all processes are known to be visible.
    pub fn write_kthreadd(machine: &Machine) {
        machine.write("/proc/2/comm", "kthreadd\n");
    }

    /// This process, started by `parent`.
    pub fn write_parent(machine: &Machine, parent: u32) {
        let status = STATUS.replace("ID", "13").replace("ALLOWED", "0-3");
        let status = status.replace("PPid:\t1\n", &format!("PPid:\t{parent}\n"));
        machine.write("/proc/self/status", &status);
    }

    /// The files of a thread that may run on `allowed`; `kernel` makes it the kernel's.
    pub fn write_task(machine: &Machine, id: u32, name: &str, allowed: &str, kernel: bool, policy: u32) {
        let flags = if kernel { 0x0020_0040 } else { 0x40_0000 };
        let directory = format!("/proc/{id}/task/{id}");
        let status = STATUS.replace("ID", &id.to_string()).replace("ALLOWED", allowed);
        let zeroes = |count: usize| "0 ".repeat(count);
        let stat = format!("{id} ({name}) S 1 1 1 0 -1 {flags} {}{policy} 0", zeroes(31));
        machine.write(&format!("{directory}/status"), &status);
        machine.write(&format!("{directory}/stat"), &stat);
        machine.write(&format!("/proc/{id}/comm"), name);
    }

    #[test]
    fn hidden_processes_are_noticed() {
        let machine = Machine::with(&[("/proc/mounts", "proc /proc proc rw,nosuid,hidepid=2 0 0")]);
        assert!(is_blind(&machine.sys));
        machine.write("/proc/1/status", "Name: init");
        assert!(!is_blind(&machine.sys));
        let open = Machine::with(&[("/proc/mounts", "proc /proc proc rw,nosuid 0 0")]);
        assert!(!is_blind(&open.sys));
    }
}
