//! The ports themselves: whether each planned port could be opened now; its driver, its rights, its memory.

use crate::{Finding, Patient, Remedy, Verdict, When};
use host::{Fix, Medium, PortUri, Sys};

const NAME: &str = "port";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    // That this machine is reached by it is another check's.
    let mut sys = Sys::at(&patient.sys.root);
    sys.addresses.clone_from(&patient.sys.addresses);
    sys.force = true;
    patient.ports.iter().map(|port| of_port(&sys, port)).collect()
}

fn of_port(sys: &Sys, port: &PortUri) -> Finding {
    // The checks of sockets remove what dead servers left, and a doctor changes nothing.
    if port.kind.traits().medium == Medium::Peer {
        let sentence =
            format!("whether {port} can be opened depends on who serves its socket when the run starts");
        return Finding::new(NAME, Verdict::CannotTell, sentence);
    }
    match host::check(port, sys) {
        Err(problem) => Finding::new(NAME, Verdict::Bad, format!("{port}: {}", problem.found))
            .costs("the port does not start")
            .remedy(mended(*problem.fix)),
        Ok(prepared) => {
            let notes = prepared
                .notes
                .iter()
                .filter(|note| note.code != "carries-traffic");
            let mut finding = Finding::new(NAME, Verdict::Good, format!("{port} can be opened"));
            for note in notes {
                finding.verdict = Verdict::Warning;
                finding.says = format!("{port}: {}", note.text);
                let fix = note.fix.clone();
                finding
                    .remedies
                    .extend(fix.map(|fix| Remedy::by_hand(When::Now, fix)));
            }
            finding
        }
    }
}

/// What the checks before a run advise has its effect at once, unless it is another kernel.
fn mended(fix: Fix) -> Remedy {
    let only_reboots = fix.reboots && fix.commands.is_empty();
    Remedy::by_hand(if only_reboots { When::Boot } else { When::Now }, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn each_port_is_tried() {
        let machine = Machine::with(&[])
            .port("ring")
            .port("pci:0000:3b:00.0")
            .port("memif:/run/x.sock,server");
        let verdicts: Vec<Verdict> = machine.run(check).iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Good, Verdict::Bad, Verdict::CannotTell]);
        assert!(Machine::with(&[]).run(check).is_empty());
    }
}
