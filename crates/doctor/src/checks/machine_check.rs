//! Corrected machine checks: a timer on each core polls the memory controllers for them.

use crate::{Change, Finding, Remedy, Subject};

const NAME: &str = "machine-checks";
const FOLDER: &str = "/sys/devices/system/machinecheck";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let finding = Finding::of(NAME);
    let values = subject.of_workers(|core| format!("{FOLDER}/machinecheck{core}/ignore_ce"));
    let Some((file, value)) = values.first() else {
        return finding.cannot_tell(format!("this kernel shows no machine checks ({FOLDER})"));
    };
    let polled: Vec<_> = values.iter().filter(|(_, value)| value == "0").collect();
    let Some((first, zero)) = polled.first() else {
        return finding
            .good("corrected errors are not polled for")
            .read(file, value);
    };
    let changes = polled
        .iter()
        .map(|(file, value)| (Change::new(file, "1"), value.clone()));
    let count = polled.len();
    finding
        .warning(format!(
            "corrected errors are polled for on {count} worker core(s)"
        ))
        .read(first, zero)
        .costs("10 to 100 us every 5 minutes; without it, failing memory is noticed later")
        .remedy(Remedy::now(changes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
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
