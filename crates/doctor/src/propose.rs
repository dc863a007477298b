//! Which cores to plan on, where nobody said: the workers, and what everything else may have.

use std::collections::BTreeSet;

use super::look;
use host::PortUri;
use host::cores::{self, Core, CoreSet};
use host::interface::{Interface, interfaces};
use host::roles::roles;
use host::{Problem, Sys};

/// The workers and the housekeeping cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The cores that will poll.
    pub workers: CoreSet,
    /// The cores that everything else may have; empty where the workers take all.
    pub housekeeping: CoreSet,
}

/// What is left beside `workers`: all but them, the hardware threads beside them, and the cores that somebody has set apart;
/// the former, and then the latter, too, where nothing else is left.
pub fn beside(sys: &Sys, workers: CoreSet) -> Proposal {
    let rest = cores::online(sys).without(&workers);
    let siblings = workers.iter().fold(CoreSet::default(), |all, core| {
        all.with(&cores::siblings(sys, core))
    });
    let open = rest.without(&cores::set_apart(sys));
    let choices = [open.without(&siblings), open, rest.without(&siblings)];
    let housekeeping = choices.into_iter().find(|choice| !choice.is_empty());
    let housekeeping = housekeeping.unwrap_or(rest);
    Proposal {
        workers,
        housekeeping,
    }
}

/// Two workers a port, one to send and one to receive, on at most half of the cores. Near the first port's NIC, one of a
/// physical core's threads, and, where there is a choice, not where the interrupts of the interface arrive that this machine
/// is reached by.
pub fn propose(sys: &Sys, ports: &[PortUri]) -> Result<Proposal, Problem> {
    let all = cores::allowed(sys).len();
    let wanted = (ports.len().max(1) * 2).min(all / 2).max(1);
    let interfaces = interfaces(sys);
    let node = ports
        .iter()
        .find_map(|port| look::behind_port(sys, port, &interfaces).numa_node);
    let choice = cores::pick(sys, all, node, &[])?;
    let busy = reached_on(sys, &interfaces);
    let (near, avoided): (Vec<Core>, Vec<Core>) = choice
        .workers
        .iter()
        .filter(|core| **core != choice.housekeeping)
        .partition(|core| !busy.contains(**core));
    let ranked = near.into_iter().chain(avoided);
    let mut workers = cores::first_threads_first(sys, choice.housekeeping, ranked);
    // With a single core there is no other.
    workers.push(choice.housekeeping);
    Ok(beside(sys, workers.into_iter().take(wanted).collect()))
}

/// Cores that get the interrupts of an interface that this machine is reached by.
fn reached_on(sys: &Sys, interfaces: &[Interface]) -> CoreSet {
    let roles = roles(sys, interfaces);
    let names = roles.keys().map(|name| format!("/sys/class/net/{name}/device"));
    // A virtio interface has its interrupts on the PCI function above.
    let folders = names.flat_map(|device| [format!("{device}/msi_irqs"), format!("{device}/../msi_irqs")]);
    let numbers: BTreeSet<String> = folders.flat_map(|folder| sys.names(folder)).collect();
    let effective = numbers
        .iter()
        .filter_map(|number| cores::list(sys, &format!("/proc/irq/{number}/effective_affinity_list")));
    effective.fold(CoreSet::default(), |all, cores| all.with(&cores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    fn proposed(machine: &Machine, ports: &[&str]) -> (String, String) {
        let ports: Vec<PortUri> = ports.iter().map(|port| port.parse().unwrap()).collect();
        let Proposal {
            workers,
            housekeeping,
        } = propose(&machine.sys, &ports).unwrap();
        (workers.to_string(), housekeeping.to_string())
    }

    fn expect(workers: &str, housekeeping: &str) -> (String, String) {
        (workers.to_owned(), housekeeping.to_owned())
    }

    #[test]
    fn half_of_the_cores_at_most() {
        let machine = Machine::with(&[]);
        assert_eq!(proposed(&machine, &[]), expect("2,3", "0,1"));
        machine.write("/sys/devices/system/cpu/online", "0-1");
        assert_eq!(proposed(&machine, &["ring", "ring:b"]), expect("1", "0"));
        machine.write("/sys/devices/system/cpu/online", "0");
        assert_eq!(proposed(&machine, &[]), expect("0", ""));
    }

    #[test]
    fn a_thread_beside_a_worker_keeps_no_house() {
        let machine = Machine::with(&[("/sys/devices/system/cpu/online", "0-7")]);
        for core in 0..8_u32 {
            let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
            machine.write(&file, &format!("{},{}", core % 4, core % 4 + 4));
        }
        assert_eq!(proposed(&machine, &[]), expect("6,7", "0,1,4,5"));
    }

    #[test]
    fn what_somebody_has_set_apart_keeps_no_house() {
        let machine = Machine::with(&[
            ("/sys/devices/system/cpu/online", "0-7"),
            ("/sys/devices/system/cpu/isolated", "5"),
            ("/sys/devices/system/cpu/nohz_full", "6"),
            ("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
            ("/sys/fs/cgroup/cpuset.cpus.isolated", "7\n"),
        ]);
        let left = |workers: &str| {
            let left = beside(&machine.sys, workers.parse().unwrap());
            left.housekeeping.to_string()
        };
        assert_eq!(left("2-3"), "0,1,4");
        assert_eq!(left("0-4"), "5-7", "somebody must keep it");
        assert_eq!(left("0-7"), "");
    }

    #[test]
    fn the_nic_s_node_and_the_way_to_this_machine_are_respected() {
        let machine = Machine::with(&[
            ("/sys/devices/system/cpu/online", "0-7"),
            ("/sys/devices/system/node/node0/cpulist", "0-3"),
            ("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000"),
            ("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "0"),
            ("/sys/class/net/eth0/flags", "0x1003"),
            ("/sys/class/net/eth0/device/msi_irqs/40", "msi"),
            ("/proc/irq/40/effective_affinity_list", "3"),
        ]);
        assert_eq!(
            proposed(&machine, &["pci:0000:3b:00.0"]),
            expect("2,3", "0,1,4-7")
        );
        let route = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
        machine.write("/proc/net/route", route);
        assert_eq!(proposed(&machine, &["pci:0000:3b:00.0"]), expect("1,2", "0,3-7"));
    }
}
