//! irqbalance: a service that moves interrupts back to where we took them from.

use crate::{Finding, Remedy, Subject, When, look};
use host::cores::{self, CoreSet};
use host::{Fix, Sys};

/// The check's name, which is the service's, too.
pub(crate) const NAME: &str = "irqbalance";
/// What tells it to leave cores alone.
pub(crate) const BANNED: &str = "IRQBALANCE_BANNED_CPULIST";
/// The same as a mask, as it was called before.
const BANNED_MASK: &str = "IRQBALANCE_BANNED_CPUS";
/// Where its settings are: Debian's place, then that of Red Hat.
const FILES: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let (sys, workers, finding) = (subject.sys, &subject.workers, Finding::of(NAME));
    let process = process(sys);
    if let Some(why) = look::why_unseen(sys, process.is_some()) {
        return finding.cannot_tell(why);
    }
    let Some(process) = process else {
        return finding
            .good("it does not run")
            .read("/proc/*/comm", "no irqbalance");
    };
    let (from, banned) = banned(sys, &process);
    let open = workers.without(&banned);
    let finding = finding.read(from, format!("banned cores: {}", or_none(&banned)));
    if open.is_empty() {
        return finding.good("it runs, and leaves these cores alone");
    }
    let file = settings(sys);
    let restart = "systemctl restart irqbalance".to_owned();
    let sentence = format!(
        "it runs (process {process}), and may put interrupts on {}",
        open.in_words()
    );
    let finding = finding.costs("interrupts that were moved away come back within 10 s");
    let written = sys.text(file).and_then(|text| told(&text));
    if written.is_some_and(|written| workers.without(&written).is_empty()) {
        let read_again = Fix::one(restart).persistent();
        return finding
            .bad(format!("{sentence}: it has not read {file}, which bans them"))
            .remedy(Remedy::by_hand(When::Now, read_again));
    }
    let ban = format!("{BANNED}={}", workers.with(&banned));
    let stop = Fix::one("systemctl stop irqbalance")
        .undone_by(["systemctl start irqbalance"])
        .kept_by(["systemctl disable irqbalance"]);
    let has_mask = sys.text(file).is_some_and(|text| has_mask(&text));
    // Beside a mask no list is read.
    let [away, back] = ["s/^BANNED=/#&/", "s/^#BANNED=/BANNED=/"]
        .map(|change| format!("sed -i '{}' {file}", change.replace("BANNED", BANNED_MASK)));
    let beside = |change: String| has_mask.then_some(change);
    let keep = beside(away)
        .into_iter()
        .chain([format!("echo {ban} >> {file}"), restart.clone()]);
    let undo = beside(back)
        .into_iter()
        .chain([format!("sed -i '/^{ban}$/d' {file}"), restart]);
    let keep = Fix::all(keep).persistent().undone_by(undo);
    finding
        .bad(sentence)
        .remedy(Remedy::by_hand(When::Now, stop))
        .remedy(Remedy::by_hand(When::Now, keep))
}

/// Its process, if it runs.
pub(crate) fn process(sys: &Sys) -> Option<String> {
    let comm = |process: &String| sys.text(format!("/proc/{process}/comm")).as_deref() == Some(NAME);
    sys.processes().into_iter().find(comm)
}

/// The file of its settings, where it is or would be.
pub(crate) fn settings(sys: &Sys) -> &'static str {
    let there = FILES.into_iter().find(|file| sys.exists(file));
    there.unwrap_or(FILES[0])
}

/// What it was told to leave alone: in its environment; in its file, which may be newer than the process, only where the
/// environment cannot be read; else isolated and tickless cores (irqbalance(1)).
pub(crate) fn banned(sys: &Sys, process: &str) -> (String, CoreSet) {
    let environment = format!("/proc/{process}/environ");
    let said = |source: &str| Some((source.to_owned(), told(&sys.text(source)?)?));
    let found = match sys.text(&environment) {
        Some(_) => said(&environment),
        None => FILES.into_iter().find_map(said),
    };
    // An empty list is none: then it bans what it bans unasked.
    found.filter(|(_, cores)| !cores.is_empty()).unwrap_or_else(|| {
        let from = "isolated and nohz_full in /sys/devices/system/cpu".to_owned();
        (from, banned_unasked(sys))
    })
}

/// What an environment, or its file, bans: of each name the last line of it, and where there is a mask no list is read
/// (irqbalance: `cputree.c`, `setup_banned_cpus`).
pub(crate) fn told(text: &str) -> Option<CoreSet> {
    let mut lines = text.split(['\0', '\n']).rev().filter_map(assigned);
    let mask = lines.clone().find(|(name, _)| *name == BANNED_MASK);
    mask.or_else(|| lines.next()).map(|(_, cores)| cores)
}

/// What a line of its settings bans, and by which name; `None` where it is about something else.
pub(crate) fn assigned(line: &str) -> Option<(&str, CoreSet)> {
    let (name, value) = line.trim().split_once('=')?;
    let value = value.trim_matches(['"', '\'']);
    let cores = match name {
        BANNED if value.is_empty() => Some(CoreSet::default()),
        BANNED => value.parse().ok(),
        // As if there were none.
        BANNED_MASK if value.is_empty() => None,
        BANNED_MASK => CoreSet::from_mask(value),
        _ => None,
    };
    Some((name, cores?))
}

fn has_mask(text: &str) -> bool {
    text.lines()
        .filter_map(assigned)
        .any(|(name, _)| name == BANNED_MASK)
}

/// What it leaves alone where nobody tells it what to; of cpusets it knows nothing.
fn banned_unasked(sys: &Sys) -> CoreSet {
    cores::isolated_at_boot(sys).with(&cores::tickless(sys))
}

fn or_none(cores: &CoreSet) -> String {
    if cores.is_empty() {
        "none".to_owned()
    } else {
        cores.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use crate::look::tests::write_kthreadd;

    #[test]
    fn it_is_stopped_or_banned() {
        let machine = Machine::with(&[("/proc/9/comm", "irqbalance\n")]);
        let finding = machine.finding(check);
        assert_eq!((finding.verdict, finding.remedies.len()), (Verdict::Bad, 2));
        machine.write(
            "/etc/default/irqbalance",
            "#x\nIRQBALANCE_BANNED_CPULIST=\"2-3\"\n",
        );
        assert_eq!(machine.verdict(check), Verdict::Good);
        machine.write("/proc/9/environ", "A=b\0IRQBALANCE_BANNED_CPUS=4\0");
        assert!(machine.finding(check).says.contains("on core 3"));
        // An empty list is none, whatever the file says since it was started.
        machine.write("/proc/9/environ", "IRQBALANCE_BANNED_CPULIST=\0");
        machine.write(FILES[0], "IRQBALANCE_BANNED_CPULIST='2-3'\n");
        assert_eq!(machine.verdict(check), Verdict::Bad);
        machine.write("/sys/devices/system/cpu/isolated", "2-3");
        assert_eq!(machine.verdict(check), Verdict::Good);
    }

    #[test]
    fn a_file_that_it_has_not_read_bans_nothing() {
        let machine = Machine::with(&[
            ("/proc/9/comm", "irqbalance\n"),
            ("/proc/9/environ", "A=b\0"),
            (FILES[0], "IRQBALANCE_BANNED_CPULIST=2-3\n"),
        ]);
        let finding = machine.finding(check);
        let commands: Vec<_> = finding
            .remedies
            .iter()
            .map(|remedy| &remedy.fix.commands)
            .collect();
        assert_eq!(
            (finding.verdict, commands),
            (
                Verdict::Bad,
                vec![&vec!["systemctl restart irqbalance".to_owned()]]
            )
        );
        assert!(
            finding
                .says
                .ends_with("not read /etc/default/irqbalance, which bans them")
        );
    }

    #[test]
    fn beside_a_mask_no_list_is_read() {
        let machine = Machine::with(&[
            ("/proc/9/comm", "irqbalance\n"),
            (
                FILES[0],
                "IRQBALANCE_BANNED_CPUS=80\nIRQBALANCE_BANNED_CPULIST=2-3\n",
            ),
        ]);
        let finding = machine.finding(check);
        let keep = &finding.remedies[1].fix.commands;
        assert_eq!(
            (finding.verdict, keep[0].as_str()),
            (
                Verdict::Bad,
                "sed -i 's/^IRQBALANCE_BANNED_CPUS=/#&/' /etc/default/irqbalance"
            )
        );
    }

    #[test]
    fn isolated_cores_are_banned_by_themselves() {
        let machine = Machine::with(&[
            ("/proc/9/comm", "irqbalance\n"),
            ("/sys/devices/system/cpu/isolated", "2-3"),
        ]);
        assert_eq!(machine.verdict(check), Verdict::Good);
        machine.write("/sys/devices/system/cpu/isolated", "");
        machine.partition("2-3");
        assert_eq!(
            machine.verdict(check),
            Verdict::Bad,
            "of a cpuset it knows nothing"
        );
    }

    #[test]
    fn absent_is_good_and_an_empty_proc_is_not() {
        let machine = Machine::with(&[("/proc/9/comm", "cron\n")]);
        assert_eq!(machine.verdict(check), Verdict::CannotTell, "in a PID namespace");
        write_kthreadd(&machine);
        assert_eq!(machine.verdict(check), Verdict::Good);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
