//! The frequency governor: whether the cores that shall poll run at one speed.

use crate::look::cpu;
use crate::{Change, Finding, Patient, Remedy, Verdict};
use host::facts;

const NAME: &str = "frequency";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let file = |core| format!("{}/cpufreq/scaling_governor", cpu(core));
    let governors = patient
        .workers
        .iter()
        .filter_map(|core| Some((file(core), sys.text(file(core))?)));
    let governors: Vec<(String, String)> = governors.collect();
    if governors.is_empty() {
        let why = if facts::is_virtual(sys) {
            "the hypervisor decides how fast its cores run (no cpufreq here)"
        } else {
            "no cpufreq: the firmware decides how fast the cores run"
        };
        return vec![Finding::new(NAME, Verdict::CannotTell, why)];
    }
    let slow: Vec<_> = governors
        .iter()
        .filter(|(_, governor)| governor != "performance")
        .collect();
    let Some((file, governor)) = slow.first() else {
        let sentence = format!("{}: full speed", patient.workers.in_words());
        return vec![Finding::new(NAME, Verdict::Good, sentence).read(&governors[0].0, &governors[0].1)];
    };
    let changes = slow
        .iter()
        .map(|(file, governor)| (Change::new(file, "performance"), governor.clone()));
    vec![
        Finding::new(
            NAME,
            Verdict::Warning,
            format!("the governor of {} core(s) is {governor}", slow.len()),
        )
        .read(file, governor)
        .costs("rates change with the core's speed, and each change stops the core for 10 to 50 us")
        .remedy(Remedy::now(changes.collect())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
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
