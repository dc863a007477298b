//! Huge pages: whether enough are free where the NIC is.

use crate::{Change, Finding, Patient, Remedy, Verdict, look};
use host::Medium;
use host::hugepages::{self, MINIMUM_BYTES, Pool};

const NAME: &str = "hugepages";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let pools = hugepages::pools(sys);
    if pools.is_empty() {
        let sentence =
            "no huge pages in /sys: the kernel was built without CONFIG_HUGETLBFS, or sysfs is not mounted";
        return vec![Finding::new(NAME, Verdict::CannotTell, sentence)];
    }
    let nodes = look::behind(patient)
        .into_iter()
        .filter_map(|behind| behind.numa_node);
    let mut nodes: Vec<u32> = nodes
        .filter(|node| pools.iter().any(|pool| pool.node == *node))
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() {
        return vec![on(patient, &pools, None)];
    }
    nodes
        .into_iter()
        .map(|node| on(patient, &pools, Some(node)))
        .collect()
}

fn on(patient: &Patient<'_>, pools: &[Pool], node: Option<u32>) -> Finding {
    let place = node
        .map(|node| format!(" on NUMA node {node}"))
        .unwrap_or_default();
    let there: Vec<&Pool> = pools
        .iter()
        .filter(|pool| node.is_none_or(|node| pool.node == node))
        .collect();
    let free: u64 = there.iter().map(|pool| pool.free_bytes()).sum();
    let mut finding = Finding::new(NAME, Verdict::Good, format!("{} MiB are free{place}", free >> 20));
    for pool in there {
        let folder = format!(
            "node{}/hugepages/hugepages-{}kB",
            pool.node,
            pool.page_bytes >> 10
        );
        finding = finding.read(
            format!("{folder}/free_hugepages"),
            format!("{} of {}", pool.free, pool.total),
        );
    }
    if free >= MINIMUM_BYTES {
        return finding;
    }
    // What a NIC's driver needs, software ports are only faster with.
    let needed = patient
        .ports
        .iter()
        .any(|port| port.kind.traits().medium == Medium::Nic);
    finding.verdict = if needed { Verdict::Bad } else { Verdict::Warning };
    finding.says = format!(
        "{} MiB are free{place}, and a NIC port takes {} MiB",
        free >> 20,
        MINIMUM_BYTES >> 20
    );
    finding = finding.costs(if needed {
        "the port does not start"
    } else {
        "NIC ports do not start, others miss the TLB more often"
    });
    if let Some(wanted) = hugepages::reservation(pools, MINIMUM_BYTES, node) {
        let change = Change::new(wanted.file, wanted.pages.to_string());
        finding = finding.remedy(Remedy::now(vec![(change, wanted.total.to_string())]));
    }
    finding.remedy(Remedy::boot([
        "default_hugepagesz=1G",
        "hugepagesz=1G",
        "hugepages=2",
    ]))
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
        assert_eq!(finding.booted().len(), 3);
        assert_eq!(
            machine(["0", "128"]).port("pci:0000:3b:00.0").verdict(check),
            Verdict::Good
        );
    }

    #[test]
    fn software_ports_can_do_without() {
        assert_eq!(machine(["0", "0"]).port("ring").verdict(check), Verdict::Warning);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
