//! The ports themselves: whether each planned port could be opened now; its driver, its rights, its memory.

use crate::{Finding, Remedy, Subject, When};
use host::{Fix, Medium, PortUri, Sys};

const NAME: &str = "port";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    // That this machine is reached by it is another check's.
    let mut sys = Sys::at(&subject.sys.root);
    sys.addresses.clone_from(&subject.sys.addresses);
    sys.force = true;
    subject.ports.iter().map(|port| of_port(&sys, port)).collect()
}

fn of_port(sys: &Sys, port: &PortUri) -> Finding {
    let finding = Finding::of(NAME);
    // To try a socket is to connect to it, and a doctor disturbs nobody.
    if port.kind.traits().medium == Medium::Peer {
        return finding.cannot_tell(format!(
            "whether {port} can be opened depends on who serves its socket when the run starts"
        ));
    }
    let prepared = match host::check(port, sys) {
        Ok(prepared) => prepared,
        Err(problem) => {
            return finding
                .bad(format!("{port}: {}", problem.found))
                .costs("the port does not start")
                .remedy(mended(*problem.fix));
        }
    };
    let notes = prepared.notes.into_iter();
    notes.filter(|note| note.code != "carries-traffic").fold(
        finding.good(format!("{port} can be opened")),
        |finding, note| {
            finding
                .warning(format!("{port}: {}", note.text))
                .remedy(note.fix.map(|fix| Remedy::by_hand(When::Now, fix)))
        },
    )
}

/// What the checks before a run advise has its effect at once, unless it is another kernel.
fn mended(fix: Fix) -> Remedy {
    let only_reboots = fix.reboots && fix.commands.is_empty();
    Remedy::by_hand(if only_reboots { When::Boot } else { When::Now }, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    #[test]
    fn each_port_is_tried() {
        let machine = Machine::with(&[])
            .port("ring")
            .port("pci:0000:3b:00.0")
            .port("memif:/run/x.sock,server");
        let verdicts: Vec<Verdict> = machine.run(check).iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [Verdict::Good, Verdict::Bad, Verdict::CannotTell]);
        assert_eq!(Machine::with(&[]).run(check).len(), 0);
    }
}
