//! NUMA: whether the cores are beside the NIC.

use crate::{Finding, Remedy, Subject, When, look};
use host::cores;

const NAME: &str = "numa";
const NODES: &str = "/sys/devices/system/node";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let (sys, finding) = (subject.sys, Finding::of(NAME));
    let nodes = cores::numa_nodes(sys).len();
    if nodes < 2 {
        let one = finding.good("this machine has one NUMA node");
        return one.read(NODES, format!("{nodes} node(s)")).into();
    }
    let known = look::behind(subject).into_iter().filter_map(|behind| {
        let (port, node) = (behind.port, behind.numa_node?);
        let file = format!("{NODES}/node{node}/cpulist");
        let near = cores::list(sys, &file)?;
        let finding = Finding::of(NAME).read(file, near.to_string());
        let away = subject.workers.without(&near);
        if away.is_empty() {
            return Some(finding.good(format!("{port} and its cores are on node {node}")));
        }
        let advice = format!("choose --cores from {near}, and memory of that node");
        let finding = finding
            .bad(format!("{port} is on node {node}, {} elsewhere", away.in_words()))
            .costs("each packet crosses between the sockets: 10 to 40 % of the rate");
        Some(finding.remedy(Remedy::advice(When::Restart, advice)))
    });
    let findings: Vec<Finding> = known.collect();
    if findings.is_empty() {
        let unknown =
            format!("this machine has {nodes} NUMA nodes, and the node of no planned port is known (--port)");
        return finding.cannot_tell(unknown).into();
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
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
