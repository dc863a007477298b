//! Housekeeping: whether a core is left for everything that does not poll.

use crate::{Finding, Patient, Remedy, Verdict, When};
use host::{Fix, cores};

const NAME: &str = "housekeeping";

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let online = cores::online(patient.sys);
    if online.is_empty() {
        let sentence = "/sys/devices/system/cpu/online cannot be read";
        return vec![Finding::new(NAME, Verdict::CannotTell, sentence)];
    }
    let finding = |verdict, sentence: String| {
        Finding::new(NAME, verdict, sentence).read("/sys/devices/system/cpu/online", online.to_string())
    };
    let rest = &patient.housekeeping;
    if !rest.is_empty() {
        return vec![finding(
            Verdict::Good,
            format!("{} for everything else", rest.in_words()),
        )];
    }
    let fix = if online.len() > 1 {
        let mut kept = patient.workers.iter();
        kept.next();
        let kept: cores::CoreSet = kept.collect();
        Fix::advice(format!("leave a core out, for example: --cores {kept}"))
    } else {
        Fix::advice("a machine with more cores: a single core cannot be kept free")
    };
    vec![
        finding(
            Verdict::Bad,
            "the workers take every core: the kernel and everything else share them".to_owned(),
        )
        .costs("1 to 10 ms whenever anything else runs")
        .remedy(Remedy::by_hand(
            if online.len() > 1 {
                When::Restart
            } else {
                When::Hardware
            },
            fix,
        )),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn a_core_must_be_left() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
        let finding = Machine::with(&[]).workers("0-3").finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.remedies[0].fix.to_string().ends_with("--cores 1-3"));
        let blind = Machine::with(&[("/sys/devices/system/cpu/online", "?")]);
        assert_eq!(blind.verdict(check), Verdict::CannotTell);
    }

    #[test]
    fn nothing_isolates_every_core() {
        let files = [
            ("/sys/devices/system/cpu/isolated", ""),
            ("/sys/devices/system/cpu/nohz_full", ""),
            ("/proc/cmdline", ""),
        ];
        let machine = Machine::with(&files).workers("0-3");
        for check in [
            super::super::isolation::check,
            super::super::tick::check,
            super::super::rcu::check,
        ] {
            let finding = machine.finding(check);
            assert!(
                finding.verdict >= Verdict::Warning && finding.remedies.is_empty(),
                "{finding:?}"
            );
        }
    }
}
