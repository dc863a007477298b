//! The interface that this machine is reached by: who takes it away from the kernel cuts the machine off.

use crate::{Finding, Patient, Remedy, Verdict, When, look};
use host::interface::interfaces;
use host::roles::{in_words, roles};
use host::{Fix, Medium};

const NAME: &str = "reached-by";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let roles = roles(sys, &interfaces(sys));
    if roles.is_empty() {
        let sentence =
            "no default route and no SSH session is seen from here (/proc/net/route, /proc/net/tcp)";
        return vec![Finding::new(NAME, Verdict::CannotTell, sentence)];
    }
    let taken: Vec<Finding> = look::behind(patient)
        .into_iter()
        .filter_map(|behind| {
            let name = behind.interface.as_ref()?.name.clone();
            let role = in_words(roles.get(&name)?);
            let shares = behind.port.kind.traits().medium == Medium::SharedInterface;
            let (verdict, what) = if shares {
                (Verdict::Warning, "shares")
            } else {
                (Verdict::Bad, "takes")
            };
            let or = if shares {
                String::new()
            } else {
                format!("; or share it as packet:{name}")
            };
            let fix = Fix::advice(format!("choose another port: dropless ports lists them{or}"));
            let finding = Finding::new(
                NAME,
                verdict,
                format!(
                    "{} {what} {name}, which carries {role} of this machine",
                    behind.port
                ),
            )
            .read("/proc/net/route", &name)
            .costs(if shares {
                "your session's packets, and its packets appear in the counts"
            } else {
                "the machine is cut off (refused without --force)"
            })
            .remedy(Remedy::by_hand(When::Restart, fix));
            Some(finding)
        })
        .collect();
    if !taken.is_empty() {
        return taken;
    }
    let names: Vec<String> = roles
        .iter()
        .map(|(name, of)| format!("{name} ({})", in_words(of)))
        .collect();
    let sentence = format!("no planned port touches {}", look::few(&names));
    vec![Finding::new(NAME, Verdict::Good, sentence).read("/proc/net/route", names.join(" "))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                         eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";

    fn machine() -> Machine {
        Machine::with(&[
            ("/proc/net/route", ROUTE),
            ("/sys/class/net/eth0/flags", "0x1003"),
        ])
    }

    #[test]
    fn the_default_route_is_guarded() {
        assert_eq!(machine().verdict(check), Verdict::Good);
        assert_eq!(machine().port("packet:eth0").verdict(check), Verdict::Warning);
        assert_eq!(machine().port("packet:eth1").verdict(check), Verdict::Good);
        let device = "/sys/devices/pci0/0000:3b:00.0";
        let taken = machine()
            .link("/sys/class/net/eth0/device", device)
            .link(&format!("{device}/subsystem"), "/sys/bus/pci")
            .port("pci:0000:3b:00.0");
        assert_eq!(taken.verdict(check), Verdict::Bad);
    }

    #[test]
    fn nothing_to_read_is_said() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
