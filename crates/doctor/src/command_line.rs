//! The command line that this kernel was booted with, and the words that it should have instead.

use itertools::Itertools as _;

use host::Sys;
use host::cores::{self, CoreSet};

/// Of several such words the kernel takes the first, and warns of the others (kernel/sched/isolation.c,
/// `housekeeping_setup`): they are replaced. Of all other words the last is what counts.
pub const FIRST_COUNTS: [&str; 2] = [ISOLCPUS, NOHZ_FULL];
const ISOLCPUS: &str = "isolcpus";
const NOHZ_FULL: &str = "nohz_full";
/// Since this kernel both have cores of their own, but for what both are about: `isolcpus=nohz` is the tick.
const MASKS_OF_THEIR_OWN: (u32, u32) = (5, 18);

/// The values of an argument of the kernel's command line, which may be given several times.
pub fn values(sys: &Sys, name: &str) -> Option<Vec<String>> {
    let line = sys.text("/proc/cmdline")?;
    let values = line.split_whitespace().filter_map(|word| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        // The kernel reads dashes and underscores alike.
        (key.replace('-', "_") == name.replace('-', "_")).then(|| value.to_owned())
    });
    Some(values.collect())
}

/// The cores in an argument such as `rcu_nocbs=2-3`; words between commas that are no cores (`domain`) are left out.
/// The notation is that of Documentation/admin-guide/kernel-parameters.rst, "cpu lists".
pub fn cores_of(sys: &Sys, name: &str) -> CoreSet {
    let (online, mut cores) = (cores::online(sys), CoreSet::default());
    let last = online.iter().next_back().map_or(0, |core| core.0).to_string();
    for value in values(sys, name).unwrap_or_default() {
        for part in value.split(',') {
            let (range, stride) = part.split_once(':').unwrap_or((part, ""));
            let set = match range {
                "all" => online.clone(),
                range => range.replace('N', &last).parse().unwrap_or_default(),
            };
            cores = cores.with(&every(&set, stride));
        }
    }
    cores
}

/// `used/group` of a list: the first `used` of every `group` cores.
fn every(set: &CoreSet, stride: &str) -> CoreSet {
    let parts = stride.split_once('/');
    let numbers =
        parts.and_then(|(used, group)| Some((used.parse::<usize>().ok()?, group.parse::<usize>().ok()?)));
    match numbers {
        Some((used, group)) if group > 0 => {
            let kept = set.iter().enumerate().filter(|(index, _)| index % group < used);
            kept.map(|(_, core)| core).collect()
        }
        _ => set.clone(),
    }
}

/// What `isolcpus` says besides its cores, where it says so.
const ISOLATED: [&str; 2] = ["managed_irq", "domain"];

/// The word that isolates `cores`, from managed interrupts, too, besides those that are isolated already.
pub fn isolating(sys: &Sys, cores: &CoreSet) -> String {
    word(sys, ISOLCPUS, &ISOLATED, &agreed(sys, cores))
}

/// The word that takes the tick from `cores`, besides those that have none already.
pub fn tickless(sys: &Sys, cores: &CoreSet) -> String {
    word(sys, NOHZ_FULL, &[], &agreed(sys, cores))
}

/// `cores`, and where the kernel takes `isolcpus=` and `nohz_full=` only with the same ones (`housekeeping_setup`), those
/// that either has. Elsewhere nobody's tickless cores are isolated unasked.
fn agreed(sys: &Sys, cores: &CoreSet) -> CoreSet {
    let is_old = sys
        .kernel_version()
        .is_some_and(|version| version < MASKS_OF_THEIR_OWN);
    let of_tick = values(sys, ISOLCPUS)
        .unwrap_or_default()
        .iter()
        .any(|value| value.split(',').any(|part| part == "nohz"));
    if is_old || of_tick {
        cores
            .with(&cores_of(sys, ISOLCPUS))
            .with(&cores_of(sys, NOHZ_FULL))
    } else {
        cores.clone()
    }
}

/// `name=`, a list of cores, with `cores` besides those that it has already: somebody else needs them.
pub fn besides(sys: &Sys, name: &str, cores: &CoreSet) -> String {
    word(sys, name, &[], cores)
}

fn word(sys: &Sys, name: &str, flags: &[&str], cores: &CoreSet) -> String {
    let (there, had) = (values(sys, name).unwrap_or_default(), cores_of(sys, name));
    let is_flag =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let theirs: Vec<&str> = there
        .iter()
        .flat_map(|value| value.split(','))
        .filter(is_flag)
        .filter(|part| *part != "all")
        .collect();
    let says_all = cores.without(&had).is_empty() && flags.iter().all(|flag| theirs.contains(flag));
    if let ([only], true) = (&there[..], says_all) {
        return format!("{name}={only}");
    }
    let cores = had.with(cores).to_string();
    let parts = flags.iter().chain(&theirs).copied().chain([cores.as_str()]);
    format!("{name}={}", parts.unique().join(","))
}

/// `irqaffinity=` for interrupts on `housekeeping`, of which those stay out that it leaves out already.
pub fn interrupts_on(sys: &Sys, housekeeping: &CoreSet) -> String {
    const NAME: &str = "irqaffinity";
    let had = cores_of(sys, NAME);
    match values(sys, NAME).unwrap_or_default().last() {
        Some(last) if !had.is_empty() && had.without(housekeeping).is_empty() => format!("{NAME}={last}"),
        _ => format!("{NAME}={}", housekeeping.kept_of(&had)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn the_command_line_is_read_as_the_kernel_does() {
        let line = "quiet isolcpus=managed_irq,domain,2-3 rcu-nocbs=all nohz_full=0-N:1/2 rcu_nocb_poll";
        let machine = Machine::with(&[("/proc/cmdline", line)]);
        let cores = |name| cores_of(&machine.sys, name).to_string();
        assert_eq!(cores("isolcpus"), "2,3");
        assert_eq!(cores("rcu_nocbs"), "0-3");
        assert_eq!(cores("nohz_full"), "0,2");
        assert_eq!(cores("irqaffinity"), "");
        assert_eq!(values(&machine.sys, "rcu_nocb_poll"), Some(vec![String::new()]));
    }

    #[test]
    fn words_keep_what_others_need() {
        let ours: CoreSet = "2-3".parse().unwrap();
        let rest: CoreSet = "0-1,4".parse().unwrap();
        for (line, expected) in [
            (
                "quiet",
                "isolcpus=managed_irq,domain,2,3 nohz_full=2,3 irqaffinity=0,1,4",
            ),
            (
                "isolcpus=1 nohz_full=1 nohz_full=3 irqaffinity=1-2",
                "isolcpus=managed_irq,domain,1-3 nohz_full=1-3 irqaffinity=1",
            ),
            (
                "isolcpus=domain,managed_irq,1-3 nohz_full=all irqaffinity=0",
                "isolcpus=domain,managed_irq,1-3 nohz_full=all irqaffinity=0",
            ),
            (
                "isolcpus=nohz,domain,managed_irq,1-3 nohz_full=1-3",
                "isolcpus=nohz,domain,managed_irq,1-3 nohz_full=1-3 irqaffinity=0,1,4",
            ),
            (
                "isolcpus=nohz,1-3 nohz_full=2 irqaffinity=2-3",
                "isolcpus=managed_irq,domain,nohz,1-3 nohz_full=1-3 irqaffinity=0,1,4",
            ),
        ] {
            let sys = &Machine::with(&[("/proc/cmdline", line)]).sys;
            let words = [
                isolating(sys, &ours),
                tickless(sys, &ours),
                interrupts_on(sys, &rest),
            ];
            assert_eq!(words.join(" "), expected, "{line}");
        }
    }

    /// Up to 5.17 all that they are about has one mask.
    #[test]
    fn an_old_kernel_wants_the_same_cores_in_both_words() {
        let ours: CoreSet = "2-3".parse().unwrap();
        let release = "/proc/sys/kernel/osrelease";
        for (version, expected) in [
            ("5.17.0-rc1", "isolcpus=managed_irq,domain,1-3 nohz_full=1-3"),
            ("5.18.0", "isolcpus=managed_irq,domain,2,3 nohz_full=1-3"),
        ] {
            let machine = Machine::with(&[("/proc/cmdline", "nohz_full=1"), (release, version)]);
            let words = [isolating(&machine.sys, &ours), tickless(&machine.sys, &ours)];
            assert_eq!(words.join(" "), expected, "{version}");
        }
    }
}
