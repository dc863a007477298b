//! Work queues: kernel work that belongs to no core, and may run on those that shall poll.

use crate::{Change, Finding, Patient, Remedy, Verdict};
use host::cores::CoreSet;

const NAME: &str = "workqueues";
const FILE: &str = "/sys/devices/virtual/workqueue/cpumask";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let mask = patient.sys.text(FILE);
    let Some((mask, cores)) = mask.and_then(|mask| Some((mask.clone(), CoreSet::from_mask(&mask)?))) else {
        return vec![Finding::new(
            NAME,
            Verdict::CannotTell,
            format!("{FILE} cannot be read"),
        )];
    };
    let open = cores.common(&patient.workers);
    if open.is_empty() {
        let sentence = format!("unbound kernel work stays off {}", patient.workers.in_words());
        return vec![Finding::new(NAME, Verdict::Good, sentence).read(FILE, mask)];
    }
    let finding = Finding::new(
        NAME,
        Verdict::Warning,
        format!("unbound kernel work may run on {}", open.in_words()),
    )
    .read(FILE, &mask)
    .costs("10 us to some milliseconds, when the kernel writes back, frees or resets something");
    if patient.housekeeping.is_empty() {
        return vec![finding];
    }
    let change = Change::new(FILE, patient.housekeeping.mask());
    vec![finding.remedy(Remedy::now(vec![(change, mask)]))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn the_mask_decides() {
        let finding = Machine::with(&[(FILE, "f\n")]).finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Warning, vec![(FILE, "3")])
        );
        assert_eq!(finding.remedies[0].fix.undo, [format!("echo f > {FILE}")]);
        assert_eq!(Machine::with(&[(FILE, "3\n")]).verdict(check), Verdict::Good);
        assert_eq!(
            Machine::with(&[(FILE, "?\n")]).verdict(check),
            Verdict::CannotTell
        );
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
