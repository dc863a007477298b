//! System management interrupts: the firmware takes all cores at once, and no kernel sees it.

use crate::sample::Smi;
use crate::{Finding, Patient, Remedy, Verdict, When};
use host::Fix;

const NAME: &str = "smi";
const FROM: &str = "/dev/cpu/*/msr, register 0x34";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let watched = &patient.watched;
    let cannot = |why: &str| vec![Finding::new(NAME, Verdict::CannotTell, why)];
    match (watched.before.smi, watched.after.smi) {
        (Smi::Count(before), Smi::Count(after)) if after > before => {
            let count = after - before;
            let sentence = format!(
                "the firmware stopped all cores {count} times ({:.1} a second)",
                watched.per_second(count)
            );
            let fix = Fix::advice(
                "switch off in the firmware: USB legacy support, power capping, patrol scrub reports; or ask the vendor",
            );
            vec![
                Finding::new(NAME, Verdict::Bad, sentence)
                    .read(FROM, format!("{before}, then {after}"))
                    .costs("50 us to some milliseconds each, on every core")
                    .remedy(Remedy::by_hand(When::Firmware, fix)),
            ]
        }
        (Smi::Count(before), Smi::Count(_)) => {
            let sentence = "the firmware did not interrupt while watching";
            vec![Finding::new(NAME, Verdict::Good, sentence).read(FROM, before.to_string())]
        }
        (_, Smi::Virtual) => {
            cannot("this is a virtual machine: what its host's firmware does is not counted here")
        }
        (_, Smi::NotCounted) => cannot("only Intel processors count them"),
        (_, Smi::NoAccess | Smi::Count(_)) => {
            cannot("/dev/cpu/0/msr cannot be read: modprobe msr, and be root")
        }
        (_, Smi::NotRead) => cannot("nobody watched"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
