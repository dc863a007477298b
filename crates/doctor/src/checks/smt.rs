//! SMT: a hardware thread beside a worker shares its core's units and caches.

use crate::look::cpu;
use crate::{Change, Finding, Remedy, Subject, When};
use host::cores::{self, CoreSet};
use host::cpu::USER_HZ;

const NAME: &str = "smt";
/// Less than this share of its time is a tick here and there.
const BUSY: f64 = 0.02;

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, watched, workers) = (subject.sys, &subject.watched, &subject.workers);
    let file = |core| format!("{}/topology/thread_siblings_list", cpu(core));
    if !workers.iter().all(|core| sys.exists(file(core))) {
        return Finding::unreadable(NAME, "thread_siblings_list of the cores");
    }
    let online = cores::online(sys);
    let others = |core| {
        let own: CoreSet = [core].into_iter().collect();
        cores::siblings(sys, core).without(&own).common(&online)
    };
    let all = workers
        .iter()
        .fold(CoreSet::default(), |all, core| all.with(&others(core)));
    let finding = Finding::of(NAME).read_all(
        workers
            .iter()
            .map(|core| (file(core), cores::siblings(sys, core).to_string())),
    );
    if all.is_empty() {
        let on = workers.in_words();
        return finding.good(format!("no other thread shares the physical core of {on}"));
    }
    let together = all.common(workers);
    if !together.is_empty() {
        let advice = "choose one core of each pair in --cores";
        return finding
            .bad(format!(
                "workers {together} are threads of a physical core that they share"
            ))
            .costs("each gets about half of the core")
            .remedy(Remedy::advice(When::Restart, advice));
    }
    let share = |core| {
        let ticks = watched.after.busy.get(&core).zip(watched.before.busy.get(&core));
        let ticks = ticks.map_or(0, |(after, before)| after.saturating_sub(*before));
        watched.per_second(ticks) / USER_HZ as f64
    };
    let busiest = all
        .iter()
        .map(|core| (core, share(core)))
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let finding = match busiest {
        Some((core, share)) if watched.is_there() && share > BUSY => finding.bad(format!(
            "core {core}, a thread beside a worker's, was {:.0} % busy",
            share.min(1.0) * 100.0
        )),
        _ => finding.warning(format!(
            "beside the workers, in the same physical core: {}; what runs there slows them down",
            all.in_words()
        )),
    };
    let remedy = if subject.housekeeping.without(&all).is_empty() {
        let advice = "choose fewer cores: every core that is left is a thread beside a worker's";
        Remedy::advice(When::Restart, advice)
    } else {
        let switch_off = |core| (Change::new(format!("{}/online", cpu(core)), "0"), "1".to_owned());
        Remedy::now(all.iter().map(switch_off).collect())
    };
    finding
        .costs("up to half of the worker's speed while the other thread runs")
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const STAT: &str = "cpu0 5 0 0 9 0 0 0 0\ncpu1 5 0 0 9 0 0 0 0\n";

    fn machine(second: &str, third: &str) -> Machine {
        let file = |core: u32| format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        Machine::with(&[(&file(2), second), (&file(3), third), ("/proc/stat", STAT)])
    }

    #[test]
    fn a_busy_neighbour_is_switched_off() {
        let later = STAT.replace("cpu0 5", "cpu0 55");
        let finding = machine("0,2", "1,3")
            .workers("2")
            .watched(&[("/proc/stat", &later)])
            .finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(finding.says.starts_with("core 0"), "{}", finding.says);
        assert_eq!(finding.changed(), [("/sys/devices/system/cpu/cpu0/online", "0")]);
        let last = machine("0,2", "1,3").watched(&[]).finding(check);
        assert_eq!((last.verdict, last.changed()), (Verdict::Warning, vec![]));
    }

    #[test]
    fn workers_do_not_share() {
        assert_eq!(machine("2-3", "2-3").verdict(check), Verdict::Bad);
        assert_eq!(machine("2", "3").verdict(check), Verdict::Good);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
