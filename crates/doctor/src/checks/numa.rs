//! NUMA: whether the cores are beside the NIC.

use crate::{Finding, Patient, Remedy, Verdict, When, look};
use host::Fix;
use host::cores;

const NAME: &str = "numa";
const NODES: &str = "/sys/devices/system/node";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let nodes = sys
        .names(NODES)
        .into_iter()
        .filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok());
    let nodes: Vec<u32> = nodes.collect();
    if nodes.len() < 2 {
        let sentence = "this machine has one NUMA node";
        return vec![
            Finding::new(NAME, Verdict::Good, sentence).read(NODES, format!("{} node(s)", nodes.len())),
        ];
    }
    let far = look::behind(patient).into_iter().filter_map(|behind| {
        let node = behind.numa_node?;
        let near = cores::list(sys, &format!("{NODES}/node{node}/cpulist"))?;
        Some((behind.port, node, near))
    });
    let known: Vec<_> = far.collect();
    if known.is_empty() {
        let sentence = format!(
            "this machine has {} NUMA nodes, and the node of no planned port is known (--port)",
            nodes.len()
        );
        return vec![Finding::new(NAME, Verdict::CannotTell, sentence)];
    }
    let mut findings = Vec::new();
    for (port, node, near) in known {
        let away = patient.workers.without(&near);
        let file = format!("{NODES}/node{node}/cpulist");
        if away.is_empty() {
            let sentence = format!("{port} and its cores are on node {node}");
            findings.push(Finding::new(NAME, Verdict::Good, sentence).read(file, near.to_string()));
            continue;
        }
        let fix = Fix::advice(format!("choose --cores from {near}, and memory of that node"));
        findings.push(
            Finding::new(
                NAME,
                Verdict::Bad,
                format!("{port} is on node {node}, {} elsewhere", away.in_words()),
            )
            .read(file, near.to_string())
            .costs("each packet crosses between the sockets: 10 to 40 % of the rate")
            .remedy(Remedy::by_hand(When::Restart, fix)),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    fn machine(node: &str) -> Machine {
        Machine::with(&[
            ("/sys/devices/system/node/node0/cpulist", "0-1"),
            ("/sys/devices/system/node/node1/cpulist", "2-3"),
            ("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000"),
            ("/sys/bus/pci/devices/0000:3b:00.0/numa_node", node),
        ])
    }

    #[test]
    fn the_cores_belong_beside_the_nic() {
        assert_eq!(
            machine("1").port("pci:0000:3b:00.0").verdict(check),
            Verdict::Good
        );
        let finding = machine("0").port("pci:0000:3b:00.0").finding(check);
        assert_eq!(
            (finding.verdict, finding.remedies[0].when),
            (Verdict::Bad, When::Restart)
        );
        assert_eq!(
            machine("-1").port("pci:0000:3b:00.0").verdict(check),
            Verdict::CannotTell
        );
        assert_eq!(machine("0").verdict(check), Verdict::CannotTell);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
    }
}
