//! Steal: time that the hypervisor gave to somebody else.

use crate::{Finding, Remedy, Subject, When};
use host::facts;

const NAME: &str = "steal";
const FILE: &str = "/proc/stat";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (watched, finding) = (&subject.watched, Finding::of(NAME));
    if !facts::is_virtual(subject.sys) {
        let sentence = "this is not a virtual machine";
        return finding
            .good(sentence)
            .read("/proc/cpuinfo", "the hypervisor flag is not set");
    }
    let known = subject.workers.iter().filter_map(|core| {
        let (after, before) = (watched.after.steal.get(&core)?, watched.before.steal.get(&core)?);
        Some((core, after.saturating_sub(*before)))
    });
    let worst = known.max_by_key(|(_, ticks)| *ticks);
    let Some((core, ticks)) = worst.filter(|_| watched.is_there()) else {
        return finding.cannot_tell("a virtual machine, whose steal time was not watched");
    };
    // An idle machine has none either, but one that has run since boot has met somebody.
    if watched.after.steal.values().all(|ticks| *ticks == 0) {
        let says = "this hypervisor has told of no stolen time since boot: it may tell of none";
        return finding.cannot_tell(says).read(FILE, "steal of every core: 0");
    }
    let finding = finding.read(FILE, format!("steal of core {core}: +{ticks} ticks of 10 ms"));
    if ticks == 0 {
        return finding
            .good("no core lost 10 ms in total to the hypervisor; shorter absences do not show here");
    }
    let ms = watched.per_second(ticks) * 10.0;
    let advice = "dedicated (pinned) virtual cores, or a dedicated machine";
    finding
        .bad(format!("the hypervisor took core {core} for {ms:.0} ms a second"))
        .costs("each absence is a stall of up to some milliseconds that nothing in this machine can prevent")
        .remedy(Remedy::advice(When::Host, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const BEFORE: &str = "cpu 1 1 1 1 1 1 1 1\ncpu2 1 1 1 1 1 1 1 7\ncpu3 1 1 1 1 1 1 1 7\n";

    fn guest() -> Machine {
        Machine::with(&[("/proc/cpuinfo", "flags : hypervisor\n"), (FILE, BEFORE)])
    }

    #[test]
    fn stolen_time_is_counted() {
        let finding = guest()
            .watched(&[(
                FILE,
                &BEFORE.replace("cpu3 1 1 1 1 1 1 1 7", "cpu3 1 1 1 1 1 1 1 12"),
            )])
            .finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(
            finding.says.contains("core 3 for 50 ms a second"),
            "{}",
            finding.says
        );
        assert_eq!(guest().watched(&[]).verdict(check), Verdict::Good);
        assert_eq!(guest().verdict(check), Verdict::CannotTell);
        let silent = BEFORE.replace(" 7\n", " 0\n");
        let silent = guest().watched(&[(FILE, &silent)]);
        assert_eq!(
            silent.verdict(check),
            Verdict::CannotTell,
            "none was ever told of"
        );
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
    }
}
