//! System management interrupts: the firmware takes all cores at once, and no kernel sees it.

use crate::sample::Smi;
use crate::{Finding, Remedy, Subject, When};

const NAME: &str = "smi";
const FROM: &str = "/dev/cpu/*/msr, register 0x34";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (watched, finding) = (&subject.watched, Finding::of(NAME));
    match (watched.before.smi, watched.after.smi) {
        (Smi::Count(before), Smi::Count(after)) if after > before => {
            let count = after - before;
            let advice = "switch off in the firmware: USB legacy support, power capping, patrol scrub reports; or ask the vendor";
            finding
                .bad(format!(
                    "the firmware stopped all cores {count} times ({:.1} a second)",
                    watched.per_second(count)
                ))
                .read(FROM, format!("{before}, then {after}"))
                .costs("50 us to some milliseconds each, on every core")
                .remedy(Remedy::advice(When::Firmware, advice))
        }
        (Smi::Count(before), Smi::Count(_)) => finding
            .good("the firmware did not interrupt while watching")
            .read(FROM, before.to_string()),
        (_, Smi::Virtual) => finding
            .cannot_tell("this is a virtual machine: what its host's firmware does is not counted here"),
        (_, Smi::NotCounted) => finding.cannot_tell("only Intel processors count them"),
        (_, Smi::NoAccess | Smi::Count(_)) => {
            finding.cannot_tell("/dev/cpu/0/msr cannot be read: modprobe msr, and be root")
        }
        (_, Smi::NotRead) => finding.cannot_tell("nobody watched"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const CPU: &str = "vendor_id : GenuineIntel\nflags : avx2\n";
    const MSR: &str = "/dev/cpu/0/msr";

    /// A register file whose counter is this character's code.
    fn registers(count: char) -> String {
        format!("{}{count}{}", "\0".repeat(0x34), "\0".repeat(7))
    }

    #[test]
    fn the_counter_is_compared() {
        let machine = || Machine::with(&[("/proc/cpuinfo", CPU), (MSR, &registers('A'))]);
        let bad = machine().watched(&[(MSR, &registers('C'))]).finding(check);
        assert_eq!(bad.verdict, Verdict::Bad);
        assert!(bad.says.contains("2 times"), "{}", bad.says);
        assert_eq!(machine().watched(&[]).verdict(check), Verdict::Good);
    }

    #[test]
    fn where_it_means_nothing_the_reason_is_said() {
        let sentence = |cpu: &str| {
            Machine::with(&[("/proc/cpuinfo", cpu)])
                .watched(&[])
                .finding(check)
                .says
        };
        assert!(sentence("flags : hypervisor\n").contains("virtual machine"));
        assert!(sentence("vendor_id : AuthenticAMD\n").contains("Intel"));
        assert!(sentence(CPU).contains("modprobe msr"));
        assert!(Machine::with(&[]).finding(check).says.contains("nobody watched"));
    }
}
