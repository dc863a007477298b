//! Housekeeping: whether a core is left for everything that does not poll.

use crate::{Finding, Remedy, Subject, When};
use host::cores::{self, CoreSet};

const NAME: &str = "housekeeping";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let online = cores::online(subject.sys);
    if online.is_empty() {
        return Finding::unreadable(NAME, ONLINE);
    }
    let finding = Finding::of(NAME).read(ONLINE, online.to_string());
    let rest = &subject.housekeeping;
    let allowed = cores::allowed(subject.sys);
    let ours = rest.common(&allowed);
    if !ours.is_empty() {
        let few = (ours != *rest).then(|| format!(" (this process may use {})", ours.in_words()));
        let rest = rest.in_words();
        return finding.good(format!("{rest} for everything else{}", few.unwrap_or_default()));
    }
    if !rest.is_empty() {
        let says = format!(
            "the workers take all cores that this process may use ({allowed}): the rest of it runs beside them"
        );
        let advice = "leave a core out, or give this process more (its cpuset, taskset)";
        return finding
            .warning(says)
            .costs("1 to 10 ms whenever the thread that looks after them runs")
            .remedy(Remedy::advice(When::Restart, advice));
    }
    let remedy = if online.len() > 1 {
        let kept: CoreSet = subject.workers.iter().skip(1).collect();
        let advice = format!("leave a core out, for example: --cores {kept}");
        Remedy::advice(When::Restart, advice)
    } else {
        let advice = "a machine with more cores: a single core cannot be kept free";
        Remedy::advice(When::Hardware, advice)
    };
    finding
        .bad("the workers take every core: the kernel and everything else share them")
        .costs("1 to 10 ms whenever anything else runs")
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::write_parent;

    #[test]
    fn a_core_must_be_left() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::Good);
        let finding = Machine::with(&[]).workers("0-3").finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.remedies[0].fix.to_string().ends_with("--cores 1-3"));
        let machine = Machine::with(&[]);
        write_parent(&machine, 1);
        let status = machine.sys.text("/proc/self/status").unwrap();
        let bound = |cores: &str| {
            machine.write(
                "/proc/self/status",
                &status.replace("list:\t0-3", &format!("list:\t{cores}")),
            );
            machine.finding(check)
        };
        assert_eq!(bound("2-3").verdict, Verdict::Warning);
        let some = bound("1-3");
        assert_eq!(some.verdict, Verdict::Good);
        assert!(
            some.says.ends_with("(this process may use core 1)"),
            "{}",
            some.says
        );
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
        for finding in [
            machine.finding(super::super::isolation::check),
            machine.finding(super::super::tick::check),
            machine.finding(super::super::rcu::check),
        ] {
            assert!(
                finding.verdict >= Verdict::Warning && finding.remedies.is_empty(),
                "{finding:?}"
            );
        }
    }
}
