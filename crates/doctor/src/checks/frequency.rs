//! The frequency governor: whether the cores that shall poll run at one speed.

use crate::look::cpu;
use crate::{Change, Finding, Remedy, Subject};
use host::facts;

const NAME: &str = "frequency";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let finding = Finding::of(NAME);
    let governors = subject.of_workers(|core| format!("{}/cpufreq/scaling_governor", cpu(core)));
    let Some((file, governor)) = governors.first() else {
        return finding.cannot_tell(if facts::is_virtual(subject.sys) {
            "the hypervisor decides how fast its cores run (no cpufreq here)"
        } else {
            "no cpufreq: the firmware decides how fast the cores run"
        });
    };
    let is_slow = |(_, governor): &&(String, String)| governor != "performance";
    let slow: Vec<_> = governors.iter().filter(is_slow).collect();
    let Some((file, governor)) = slow.first() else {
        let sentence = format!("{}: full speed", subject.workers.in_words());
        return finding.good(sentence).read(file, governor);
    };
    let changes = slow
        .iter()
        .map(|(file, governor)| (Change::new(file, "performance"), governor.clone()));
    finding
        .warning(format!("the governor of {} core(s) is {governor}", slow.len()))
        .read(file, governor)
        .costs("rates change with the core's speed, and each change stops the core for 10 to 50 us")
        .remedy(Remedy::now(changes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const FILE: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";

    #[test]
    fn only_performance_will_do() {
        let finding = Machine::with(&[(FILE, "powersave\n")]).finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Warning, vec![(FILE, "performance")])
        );
        assert_eq!(
            Machine::with(&[(FILE, "performance\n")]).verdict(check),
            Verdict::Good
        );
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
