//! The interface that this machine is reached by: who takes it away from the kernel cuts the machine off.

use crate::{Finding, Remedy, Subject, When, look};
use host::Medium;
use host::interface::interfaces;
use host::roles::{in_words, roles};

const NAME: &str = "reached-by";
const ROUTES: &str = "/proc/net/route";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let sys = subject.sys;
    let roles = roles(sys, &interfaces(sys));
    if roles.is_empty() {
        let sentence =
            "no default route and no SSH session is seen from here (/proc/net/route, /proc/net/tcp)";
        return Finding::of(NAME).cannot_tell(sentence).into();
    }
    let taken = look::behind(subject).into_iter().filter_map(|behind| {
        let (name, port) = (behind.interface?.name, behind.port);
        let carried = format!(
            "{name}, which carries {} of this machine",
            in_words(roles.get(&name)?)
        );
        let advice = "choose another port: dropless ports lists them";
        let finding = Finding::of(NAME).read(ROUTES, &name);
        Some(if port.kind.traits().medium == Medium::SharedInterface {
            finding
                .warning(format!("{port} shares {carried}"))
                .costs("your session's packets, and its packets appear in the counts")
                .remedy(Remedy::advice(When::Restart, advice))
        } else {
            let advice = format!("{advice}; or share it as packet:{name}");
            finding
                .bad(format!("{port} takes {carried}"))
                .costs("the machine is cut off (refused without --force)")
                .remedy(Remedy::advice(When::Restart, advice))
        })
    });
    let taken: Vec<Finding> = taken.collect();
    if !taken.is_empty() {
        return taken;
    }
    let names: Vec<String> = roles
        .iter()
        .map(|(name, of)| format!("{name} ({})", in_words(of)))
        .collect();
    let untouched = format!("no planned port touches {}", look::few(&names));
    let finding = Finding::of(NAME).good(untouched);
    finding.read(ROUTES, names.join(" ")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
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
