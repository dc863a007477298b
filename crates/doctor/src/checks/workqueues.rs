//! Work queues: kernel work that belongs to no core, and may run on those that shall poll.

use crate::{Finding, Remedy, Subject};
use host::cores::CoreSet;

const NAME: &str = "workqueues";
const FILE: &str = "/sys/devices/virtual/workqueue/cpumask";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let mask = subject.sys.text(FILE);
    let Some((mask, cores)) = mask.and_then(|mask| Some((mask.clone(), CoreSet::from_mask(&mask)?))) else {
        return Finding::unreadable(NAME, FILE);
    };
    let finding = Finding::of(NAME).read(FILE, &mask);
    let open = cores.common(&subject.workers);
    if open.is_empty() {
        return finding.good(format!(
            "unbound kernel work stays off {}",
            subject.workers.in_words()
        ));
    }
    let (away, spared) = (
        subject.housekeeping.kept_of(&cores).mask(),
        !subject.housekeeping.is_empty(),
    );
    finding
        .warning(format!("unbound kernel work may run on {}", open.in_words()))
        .costs("10 us to some milliseconds, when the kernel writes back, frees or resets something")
        .remedy(spared.then(|| Remedy::write(FILE, away, mask)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    #[test]
    fn the_mask_decides() {
        let finding = Machine::with(&[(FILE, "f\n")]).finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Warning, vec![(FILE, "3")])
        );
        assert_eq!(finding.remedies[0].fix.undo, [format!("echo f > {FILE}")]);
        let narrow = Machine::with(&[(FILE, "6\n")]).finding(check);
        assert_eq!(narrow.changed(), [(FILE, "2")], "no core comes in");
        let ours_alone = Machine::with(&[(FILE, "c\n")]).finding(check);
        assert_eq!(ours_alone.changed(), [(FILE, "3")]);
        assert_eq!(Machine::with(&[(FILE, "3\n")]).verdict(check), Verdict::Good);
        assert_eq!(
            Machine::with(&[(FILE, "?\n")]).verdict(check),
            Verdict::CannotTell
        );
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
