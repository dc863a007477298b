//! The limit of real-time tasks: a poller of `SCHED_FIFO` is stopped for 50 ms of each second by default.

use crate::{Change, Finding, Patient, Remedy, Verdict, look};

const NAME: &str = "rt-limit";
const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// Since 6.12 a server task that stands in for the fair class takes the place of the limit (kernel/sched/deadline.c).
const FAIR_SERVER: (u32, u32) = (6, 12);

/// See the module.
pub fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let sys = patient.sys;
    let on_workers = |task: &look::Task| {
        task.is_real_time && !task.is_kernel && !task.allowed.common(&patient.workers).is_empty()
    };
    let pollers: Vec<String> = look::tasks(sys)
        .into_iter()
        .filter(on_workers)
        .map(|task| task.name)
        .collect();
    let has_server = sys
        .kernel_release()
        .and_then(|release| version(&release))
        .is_some_and(|it| it >= FAIR_SERVER);
    let files: Vec<String> = if has_server {
        let file = |core| format!("/sys/kernel/debug/sched/fair_server/cpu{core}/runtime");
        patient.workers.iter().map(file).collect()
    } else {
        vec![RUNTIME.to_owned()]
    };
    let off = if has_server { "0" } else { "-1" };
    let held: Vec<(String, Option<String>)> = files
        .into_iter()
        .map(|file| (file.clone(), sys.text(file)))
        .collect();
    let limiting: Vec<_> = held
        .iter()
        .filter(|(_, value)| value.as_deref() != Some(off))
        .collect();
    let unread = held.iter().any(|(_, value)| value.is_none());
    let (verdict, sentence) = if limiting.is_empty() {
        (Verdict::Good, "real-time tasks are not limited".to_owned())
    } else if pollers.is_empty() {
        (
            Verdict::Good,
            "real-time tasks are limited, but none runs on these cores (dropless's workers are not real-time tasks)"
                .to_owned(),
        )
    } else if unread {
        let sentence = format!(
            "{} run(s) as real-time task, and {} cannot be read",
            look::few(&pollers),
            held[0].0
        );
        (Verdict::CannotTell, sentence)
    } else {
        (
            Verdict::Bad,
            format!(
                "{} run(s) as real-time task, and will be stopped",
                look::few(&pollers)
            ),
        )
    };
    let mut finding = Finding::new(NAME, verdict, sentence);
    for (file, value) in &held {
        finding = finding.read(file, value.as_deref().unwrap_or("cannot be read"));
    }
    if verdict != Verdict::Bad {
        return vec![finding];
    }
    let changes = limiting
        .iter()
        .map(|(file, value)| (Change::new(file, off), value.clone().unwrap_or_default()));
    vec![
        finding
            .costs("up to 50 ms of each second, when anything else wants the core")
            .remedy(Remedy::now(changes.collect())),
    ]
}

/// The first two numbers of a kernel's release.
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;
    use crate::look::tests::write_task;

    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    const SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu2/runtime";

    #[test]
    fn a_limit_hurts_only_who_is_limited() {
        let machine = Machine::with(&[(RELEASE, "6.1.0-18-amd64"), (RUNTIME, "950000")]);
        write_task(&machine, 7, "migration/2", "2", true, 1);
        assert_eq!(machine.verdict(check), Verdict::Good);
        write_task(&machine, 8, "poller", "2", false, 1);
        let finding = machine.finding(check);
        assert_eq!(
            (finding.verdict, finding.changed()),
            (Verdict::Bad, vec![(RUNTIME, "-1")])
        );
        machine.write(RUNTIME, "-1");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }

    #[test]
    fn a_newer_kernel_has_a_server_instead() {
        let machine = Machine::with(&[(RELEASE, "6.18.44"), (RUNTIME, "950000")]).workers("2");
        write_task(&machine, 8, "poller", "2", false, 2);
        assert_eq!(machine.verdict(check), Verdict::CannotTell);
        machine.write(SERVER, "50000000");
        assert_eq!(machine.finding(check).changed(), [(SERVER, "0")]);
    }
}
