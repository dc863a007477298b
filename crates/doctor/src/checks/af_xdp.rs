//! `AF_XDP` and BPF: what the kernel must have been built with for `xdp:` ports.

use crate::{Change, Finding, Patient, Reading, Remedy, Verdict, When};
use host::Capability;
use host::Fix;

const NAME: &str = "af-xdp";
const PROTOCOLS: &str = "/proc/net/protocols";
const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let Some(protocols) = sys.text(PROTOCOLS) else {
        return vec![Finding::new(
            NAME,
            Verdict::CannotTell,
            format!("{PROTOCOLS} cannot be read"),
        )];
    };
    let planned = patient.ports.iter().any(|port| port.kind.traits().needs_program);
    let is_listed = protocols
        .lines()
        .any(|line| line.split_whitespace().next() == Some("XDP"));
    let jit = sys.text(JIT);
    let may = [Capability::NetAdmin, Capability::NetRaw]
        .iter()
        .all(|capability| sys.has(*capability))
        && (sys.has(Capability::Bpf) || sys.has(Capability::SysAdmin));
    let mut finding = Finding::new(
        NAME,
        Verdict::Good,
        "the kernel has it, and this process may use it",
    )
    .read(PROTOCOLS, if is_listed { "XDP is listed" } else { "no XDP" });
    finding.read.extend(jit.clone().map(|value| Reading {
        from: JIT.to_owned(),
        value,
    }));
    if !is_listed {
        finding.verdict = if planned { Verdict::Bad } else { Verdict::Warning };
        finding.says = String::from("this kernel was built without CONFIG_XDP_SOCKETS");
        let fix = Fix::advice(
            "boot a kernel with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL, as those of the distributions are",
        );
        return vec![
            finding
                .costs("xdp: ports do not start")
                .remedy(Remedy::by_hand(When::Boot, fix)),
        ];
    }
    if !may {
        finding.verdict = if planned { Verdict::Bad } else { Verdict::Warning };
        finding.says =
            String::from("the kernel has it, but this process lacks CAP_NET_ADMIN, CAP_NET_RAW or CAP_BPF");
        let fix = Fix::advice("run dropless with sudo");
        return vec![
            finding
                .costs("xdp: ports do not start")
                .remedy(Remedy::by_hand(When::Restart, fix)),
        ];
    }
    if let Some(old) = jit.filter(|jit| jit == "0") {
        finding.verdict = Verdict::Warning;
        finding.says =
            String::from("the kernel has it, but interprets BPF programs instead of compiling them");
        let remedy = Remedy::now(vec![(Change::new(JIT, "1"), old)]);
        return vec![finding.costs("100 ns and more a packet").remedy(remedy)];
    }
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    fn machine(protocols: &str, jit: &str) -> Machine {
        Machine::with(&[(PROTOCOLS, protocols), (JIT, jit)])
    }

    #[test]
    fn the_kernel_and_its_compiler_matter() {
        assert_eq!(machine("PACKET 1\nXDP 1", "1").verdict(check), Verdict::Good);
        assert_eq!(machine("PACKET 1", "1").verdict(check), Verdict::Warning);
        assert_eq!(
            machine("PACKET 1", "1").port("xdp:eth1").verdict(check),
            Verdict::Bad
        );
        assert_eq!(machine("XDP 1", "0").finding(check).changed(), [(JIT, "1")]);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
