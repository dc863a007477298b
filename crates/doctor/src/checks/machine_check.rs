//! Corrected machine checks: a timer on each core polls the memory controllers for them.

use crate::{Change, Finding, Patient, Remedy, Verdict};

const NAME: &str = "machine-checks";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let file = |core| format!("/sys/devices/system/machinecheck/machinecheck{core}/ignore_ce");
    let values = patient
        .workers
        .iter()
        .filter_map(|core| Some((file(core), patient.sys.text(file(core))?)));
    let values: Vec<(String, String)> = values.collect();
    let Some((first, value)) = values.first() else {
        let sentence = "this kernel shows no machine checks (/sys/devices/system/machinecheck)";
        return vec![Finding::new(NAME, Verdict::CannotTell, sentence)];
    };
    let polled: Vec<_> = values.iter().filter(|(_, value)| value == "0").collect();
    if polled.is_empty() {
        return vec![
            Finding::new(NAME, Verdict::Good, "corrected errors are not polled for").read(first, value),
        ];
    }
    let changes = polled
        .iter()
        .map(|(file, value)| (Change::new(file, "1"), value.clone()));
    vec![
        Finding::new(
            NAME,
            Verdict::Warning,
            format!(
                "corrected errors are polled for on {} worker core(s)",
                polled.len()
            ),
        )
        .read(&polled[0].0, &polled[0].1)
        .costs("10 to 100 us every 5 minutes; without it, failing memory is noticed later")
        .remedy(Remedy::now(changes.collect())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    const FILE: &str = "/sys/devices/system/machinecheck/machinecheck2/ignore_ce";

    #[test]
    fn polling_is_found() {
        let finding = Machine::with(&[(FILE, "0\n")]).finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Warning, vec![(FILE, "1")])
        );
        assert_eq!(Machine::with(&[(FILE, "1\n")]).verdict(check), Verdict::Good);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
