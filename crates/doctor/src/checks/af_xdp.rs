//! `AF_XDP` and BPF: what the kernel must have been built with for `xdp:` ports.

use crate::{Finding, Remedy, Subject, Verdict, When};
use host::Capability;

const NAME: &str = "af-xdp";
const PROTOCOLS: &str = "/proc/net/protocols";
const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let sys = subject.sys;
    let Some(protocols) = sys.text(PROTOCOLS) else {
        return Finding::unreadable(NAME, PROTOCOLS);
    };
    let is_listed = protocols
        .lines()
        .any(|line| line.split_whitespace().next() == Some("XDP"));
    let jit = sys.text(JIT);
    let may = [Capability::NetAdmin, Capability::NetRaw]
        .iter()
        .all(|capability| sys.has(*capability))
        && (sys.has(Capability::Bpf) || sys.has(Capability::SysAdmin));
    let finding = Finding::of(NAME)
        .read(PROTOCOLS, if is_listed { "XDP is listed" } else { "no XDP" })
        .read_all(jit.clone().map(|value| (JIT, value)));
    if !is_listed || !may {
        let is_planned = subject.ports.iter().any(|port| port.kind.traits().needs_program);
        let (sentence, when, advice) = if is_listed {
            (
                "the kernel has it, but this process lacks CAP_NET_ADMIN, CAP_NET_RAW or CAP_BPF",
                When::Restart,
                "run dropless with sudo",
            )
        } else {
            (
                "this kernel was built without CONFIG_XDP_SOCKETS",
                When::Boot,
                "boot a kernel with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL, as those of the distributions are",
            )
        };
        return finding
            .judged(Verdict::bad_if(is_planned), sentence)
            .costs("xdp: ports do not start")
            .remedy(Remedy::advice(when, advice));
    }
    match jit {
        Some(old) if old == "0" => finding
            .warning("the kernel has it, but interprets BPF programs instead of compiling them")
            .costs("100 ns and more a packet")
            .remedy(Remedy::write(JIT, "1", old)),
        _ => finding.good("the kernel has it, and this process may use it"),
    }
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
