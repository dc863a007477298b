//! The kernel's command line for chosen cores, each argument explained, and the drop-in that installs it.

use itertools::Itertools as _;

pub use super::argument::Argument;
use super::huge;
use super::journal::Journal;
use super::kernel::Kernel;
use super::operator::{Operator, Outcome};
use crate::{Finding, command_line};
use host::cores::CoreSet;
use host::{Fix, PortUri, Problem, Sys, cpu, facts, pci};

/// Where the arguments are installed.
pub const DROP_IN: &str = "/etc/default/grub.d/99-dropless.cfg";

/// The arguments for `workers`, those that the findings ask for among them.
pub fn arguments(
    sys: &Sys,
    workers: &CoreSet,
    housekeeping: &CoreSet,
    ports: &[PortUri],
    findings: &[Finding],
) -> Vec<Argument> {
    let line = sys.text("/proc/cmdline").unwrap_or_default();
    let mut wanted: Vec<Argument> = Vec::new();
    let mut add = |text: String, why: &str| {
        if !wanted.iter().any(|had| key(&had.text) == key(&text)) {
            wanted.push(argument(sys, &line, text, why));
        }
    };
    add(
        command_line::isolating(sys, workers),
        "keeps the scheduler's tasks off the cores, and the interrupts that follow a queue, which cannot be moved later",
    );
    let tickless = if sys.exists("/sys/devices/system/cpu/nohz_full") {
        "no timer tick on a core while one thread runs there"
    } else {
        "no timer tick on a core while one thread runs there: for a kernel with CONFIG_NO_HZ_FULL, which this one lacks"
    };
    add(command_line::tickless(sys, workers), tickless);
    add(
        command_line::besides(sys, "rcu_nocbs", workers),
        "what the kernel frees late (RCU callbacks) is freed on other cores",
    );
    add(
        command_line::interrupts_on(sys, housekeeping),
        "interrupts start on the other cores, also those of devices that come later",
    );
    if sys.exists("/sys/devices/system/cpu/cpu0/cpuidle") {
        add(
            "processor.max_cstate=1".into(),
            "no deep sleeps, from which a core needs 50 to 200 us to wake",
        );
        if cpu::is_intel(sys) {
            add(
                "intel_idle.max_cstate=0".into(),
                "Intel's own idle driver ignores the limit above: it is switched off",
            );
        }
    }
    for (text, why) in iommu(sys, ports) {
        add(text.into(), why);
    }
    for finding in findings {
        let boot = finding.remedies.iter().flat_map(|remedy| &remedy.boot);
        for text in boot.filter(|text| !key(text).contains("hugepages")) {
            add(text.clone(), &finding.says);
        }
    }
    wanted.extend(huge::arguments(sys, &line));
    wanted
}

/// An argument, beside what this kernel was booted with. What our own drop-in has brought goes with its text.
fn argument(sys: &Sys, line: &str, text: String, why: &str) -> Argument {
    let first_counts = command_line::FIRST_COUNTS.contains(&key(&text));
    let mut there: Vec<&str> = line
        .split_whitespace()
        .filter(|word| key(word) == key(&text))
        .collect();
    if !first_counts {
        there.drain(..there.len().saturating_sub(1));
    }
    let ours = sys.text(DROP_IN).unwrap_or_default();
    let now = (!there.is_empty()).then(|| there.join(" "));
    let is_there = now.as_ref() == Some(&text);
    let replaces = |now: &String| first_counts && !is_there && !is_of(now, &ours);
    Argument {
        replaces: now.as_ref().is_some_and(replaces),
        now,
        text,
        why: why.into(),
    }
}

/// Whether all the words of a command line are in the text of a drop-in.
fn is_of(words: &str, drop_in: &str) -> bool {
    words
        .split(' ')
        .all(|word| drop_in.split([' ', '"']).any(|ours| ours == word))
}

/// What this kernel has of one of these `drop_ins`, which were ours before the present one, is not what others wrote: it may
/// have been written anew since the boot, or undone.
pub fn own(arguments: &mut [Argument], drop_ins: &[String]) {
    for argument in arguments {
        let now = argument.now.as_deref().unwrap_or_default();
        argument.replaces &= !drop_ins.iter().any(|text| is_of(now, text));
    }
}

/// The IOMMU, where a device is to be handed over.
fn iommu(sys: &Sys, ports: &[PortUri]) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    let handed_over = ports.iter().any(|port| port.kind.traits().takes_pci);
    if handed_over && !pci::has_iommu(sys) && !facts::is_virtual(sys) {
        if cpu::is_intel(sys) {
            wanted.push((
                "intel_iommu=on",
                "vfio-pci needs the IOMMU (switch VT-d on in the firmware, too)",
            ));
        }
        wanted.push((
            "iommu=pt",
            "devices that the kernel keeps bypass the IOMMU, at full speed",
        ));
    }
    wanted
}

fn key(argument: &str) -> &str {
    argument.split('=').next().unwrap_or_default()
}

fn in_words(arguments: &[Argument]) -> String {
    arguments.iter().map(|argument| &argument.text).join(" ")
}

/// The drop-in's text: it adds to what is there. All arguments, also those this kernel has: it may have them from here.
pub fn drop_in(arguments: &[Argument]) -> String {
    let words = in_words(arguments);
    format!(
        "# Written by dropless tune --boot --write; dropless tune --undo takes it back.\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {words}\"\n"
    )
}

/// Installs the drop-in, unless a word that others wrote must be replaced; nothing else is touched, and it works when GRUB's configuration has been made anew.
pub fn install(
    kernel: &dyn Kernel,
    journal: &mut Journal,
    arguments: &[Argument],
) -> Result<Outcome, Problem> {
    let sys = kernel.sys();
    if let Some(Argument {
        text, now: Some(now), ..
    }) = arguments.iter().find(|argument| argument.replaces)
    {
        let found = format!(
            "this kernel was booted with {now}, and takes no other {} beside it",
            key(text)
        );
        let advice = format!("write {text} in its place in your boot loader's configuration, and reboot");
        return Err(Problem::new("--write", found, Fix::advice(advice)));
    }
    let directory = "/etc/default/grub.d";
    let reads_it = ["/usr/sbin/update-grub", "/sbin/update-grub", directory];
    if !reads_it.iter().any(|path| sys.exists(path)) {
        let words = in_words(arguments);
        let fix = if sys.exists("/usr/sbin/grubby") {
            Fix::one(format!("grubby --update-kernel=ALL --args='{words}'"))
                .undone_by([format!("grubby --update-kernel=ALL --remove-args='{words}'")])
        } else {
            Fix::advice(format!(
                "add to the command line in your boot loader's configuration: {words}"
            ))
        };
        return Err(Problem::new(
            "--write",
            format!("{directory} does not exist"),
            fix,
        ));
    }
    let mut operator = Operator { kernel, journal };
    if let Err(error) = operator.directory(directory)? {
        return Ok(Outcome::refused(error.to_string()));
    }
    operator.file(DROP_IN, &drop_in(arguments), None)
}
