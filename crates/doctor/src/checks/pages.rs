//! Huge pages: whether enough are free where the NIC is.

use std::collections::BTreeSet;

use crate::{Finding, Remedy, Subject, Verdict, When, look};
use host::Medium;
use host::hugepages::{self, MINIMUM_BYTES, Pool};

const NAME: &str = "hugepages";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let pools = hugepages::pools(subject.sys);
    if pools.is_empty() {
        let sentence =
            "no huge pages in /sys: the kernel was built without CONFIG_HUGETLBFS, or sysfs is not mounted";
        return Finding::of(NAME).cannot_tell(sentence).into();
    }
    let behind = look::behind(subject).into_iter();
    let nodes: BTreeSet<u32> = behind
        .filter_map(|behind| behind.numa_node)
        .filter(|node| pools.iter().any(|pool| pool.node == *node))
        .collect();
    if nodes.is_empty() {
        return on(subject, &pools, None).into();
    }
    let on_node = |node| on(subject, &pools, Some(node));
    nodes.into_iter().map(on_node).collect()
}

fn on(subject: &Subject<'_>, pools: &[Pool], node: Option<u32>) -> Finding {
    let place = node.map_or_else(String::new, |node| format!(" on NUMA node {node}"));
    let there = pools
        .iter()
        .filter(|pool| node.is_none_or(|node| pool.node == node));
    let free = hugepages::free_bytes(subject.sys, node);
    let limit = hugepages::forbidden(subject.sys, MINIMUM_BYTES, node);
    let finding = Finding::of(NAME).read_all(there.map(|pool| {
        let (node, kib) = (pool.node, pool.page_bytes >> 10);
        (
            format!("node{node}/hugepages/hugepages-{kib}kB/free_hugepages"),
            format!("{} of {}", pool.free, pool.total),
        )
    }));
    let is_free = match &limit {
        None => format!("{} MiB are free{place}", free >> 20),
        Some(limit) => format!(
            "this process's cgroup may take {} MiB{place} ({})",
            free >> 20,
            limit.file
        ),
    };
    if free >= MINIMUM_BYTES {
        return finding.good(is_free);
    }
    // What a NIC's driver needs, software ports are only faster with.
    let needed = subject
        .ports
        .iter()
        .any(|port| port.kind.traits().medium == Medium::Nic);
    let reserve = hugepages::reservation(pools, MINIMUM_BYTES, node)
        .map(|wanted| Remedy::write(wanted.file, wanted.pages.to_string(), wanted.total.to_string()));
    let wanted = MINIMUM_BYTES >> 20;
    let finding = finding
        .judged(
            Verdict::bad_if(needed),
            format!("{is_free}, and a NIC port takes {wanted} MiB"),
        )
        .costs(if needed {
            "the port does not start"
        } else {
            "NIC ports do not start, others miss the TLB more often"
        });
    if limit.is_some() {
        // More of what is forbidden helps nobody.
        return finding.remedy(Remedy::advice(When::Restart, hugepages::RAISE));
    }
    finding
        .remedy(reserve)
        .remedy(Remedy::boot(["hugepagesz=1G", "hugepages=2"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    const SIZE: &str = "hugepages/hugepages-2048kB";

    fn machine(free: [&str; 2]) -> Machine {
        let machine = Machine::with(&[
            ("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000"),
            ("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1"),
        ]);
        for (node, free) in free.iter().enumerate() {
            let folder = format!("/sys/devices/system/node/node{node}/{SIZE}");
            machine.write(&format!("{folder}/nr_hugepages"), "512");
            machine.write(&format!("{folder}/free_hugepages"), free);
        }
        machine
    }

    #[test]
    fn the_nic_s_node_counts() {
        assert_eq!(machine(["512", "0"]).verdict(check), Verdict::Good);
        let finding = machine(["512", "0"]).port("pci:0000:3b:00.0").finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        let file = format!("/sys/devices/system/node/node1/{SIZE}/nr_hugepages");
        assert_eq!(finding.changed(), [(file.as_str(), "640")]);
        assert_eq!(finding.booted().len(), 2);
        assert_eq!(
            machine(["0", "128"]).port("pci:0000:3b:00.0").verdict(check),
            Verdict::Good
        );
    }

    #[test]
    fn what_a_cgroup_forbids_is_said_and_nothing_reserved() {
        let machine = machine(["512", "512"]);
        machine.write("/proc/self/cgroup", "0::/pod\n");
        let limit = "/sys/fs/cgroup/pod/hugetlb.2MB.max";
        machine.write(limit, "max");
        assert_eq!(machine.verdict(check), Verdict::Good);
        machine.write(limit, "0");
        let finding = machine.port("pci:0000:3b:00.0").finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.says.contains(limit), "{finding:?}");
        assert_eq!(finding.changed(), []);
    }

    #[test]
    fn software_ports_can_do_without() {
        assert_eq!(machine(["0", "0"]).port("ring").verdict(check), Verdict::Warning);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
