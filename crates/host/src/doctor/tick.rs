//! The timer tick: how often it interrupts the cores that shall poll.

use super::{Finding, Patient, Remedy, Verdict};
use crate::cores;

const NAME: &str = "tick";
/// More than the one a second that a tickless core keeps.
const PER_SECOND_MAX: f64 = 2.0;

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let watched = &patient.watched;
    let tickless = cores::tickless(patient.sys);
    let rates = patient.workers.iter().map(|core| {
        let deltas = watched.after.interrupts.since(&watched.before.interrupts, core);
        let local = deltas.iter().find(|delta| delta.line == "LOC");
        (core, watched.per_second(local.map_or(0, |delta| delta.count)))
    });
    let Some((core, worst)) = rates.max_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Vec::new();
    };
    let finding = if watched.after.interrupts.is_empty() {
        Finding::new(NAME, Verdict::CannotTell, "/proc/interrupts cannot be read")
    } else if worst <= PER_SECOND_MAX {
        // An idle core has no tick either: only `nohz_full` keeps it away from a busy one.
        let (verdict, says) = if patient.workers.without(&tickless).is_empty() {
            (Verdict::Good, "the cores are tickless, and have no tick")
        } else {
            (
                Verdict::Warning,
                "no tick while idle, but a polling core will have one",
            )
        };
        Finding::new(NAME, verdict, says)
    } else {
        let says = format!("the timer interrupts core {core} {worst:.0} times a second");
        Finding::new(NAME, Verdict::Bad, says)
    };
    let finding = finding
        .read("/proc/interrupts", format!("LOC on core {core}: {worst:.1} /s"))
        .read("/sys/devices/system/cpu/nohz_full", tickless.to_string());
    if finding.verdict == Verdict::Good || finding.verdict == Verdict::CannotTell {
        return vec![finding];
    }
    let remedy = Remedy::boot([
        format!("nohz_full={}", patient.workers),
        format!("rcu_nocbs={}", patient.workers),
    ]);
    vec![
        finding
            .costs("1 to 5 us a tick, and each one moves cache lines out")
            .remedy(remedy),
    ]
}
