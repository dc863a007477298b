//! What is planned, what is refused, and the kernel's command line.

use std::path::Path;

use doctor::tune::{Action, boot, journal, undo};
use doctor::{Change, Finding, Remedy, Verdict};
use host::PortUri;
use host::cores::CoreSet;

use super::kernel::{GROUP, Machine, NIC};
use super::planned;

#[test]
fn the_interface_that_this_machine_is_reached_by_is_not_taken() {
    let mut machine = Machine::new();
    let device = format!("/sys/devices/pci0000:00/{NIC}");
    machine.files.interface("eth1", Some(&device));
    machine.files.default_route("eth1");
    let refused = planned(&machine).unwrap_err().to_string();
    assert!(
        refused.contains("the default route") && refused.contains("--force"),
        "{refused}"
    );
    machine.files.sys.force = true;
    let plan = planned(&machine).unwrap();
    assert!(
        plan.steps
            .iter()
            .any(|step| matches!(step.action, Action::Bind { .. }))
    );
}

#[test]
fn some_core_must_be_left() {
    let machine = Machine::new();
    let all: CoreSet = "0-7".parse().unwrap();
    let refused = doctor::tune::plan(&machine.files.sys, &all, &[], &[]).unwrap_err();
    assert!(refused.to_string().contains("leave one out"), "{refused}");
}

#[test]
fn everything_else_keeps_off_siblings_and_what_others_set_apart() {
    let machine = Machine::new();
    machine.files.write("/sys/devices/system/cpu/isolated", "6\n");
    machine.files.write(
        "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
        "2,7\n",
    );
    let plan = doctor::tune::plan(&machine.files.sys, &"2".parse().unwrap(), &[], &[]).unwrap();
    assert_eq!(plan.housekeeping.to_string(), "0,1,3-5");
}

#[test]
fn the_command_line_is_explained_and_keeps_what_is_there() {
    let machine = Machine::new();
    machine
        .files
        .write("/proc/cmdline", "quiet rcu_nocbs=2,3 irqaffinity=0-2\n");
    machine.files.write("/sys/devices/system/cpu/nohz_full", "\n");
    let arguments = planned(&machine).unwrap().boot;
    let texts: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "isolcpus=managed_irq,domain,2,3",
            "nohz_full=2,3",
            "rcu_nocbs=2,3",
            "irqaffinity=0,1",
            "tsc=reliable",
            "hugepagesz=2M",
            "hugepages=512"
        ]
    );
    assert!(arguments.iter().all(|argument| !argument.why.is_empty()));
    assert_eq!(arguments[3].now.as_deref(), Some("irqaffinity=0-2"));
    assert!(arguments[2].is_there() && !arguments[0].is_there());
    let text = boot::drop_in(&arguments);
    assert!(
        text.contains("=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus="),
        "{text}"
    );
    machine.files.remove("/usr/sbin/update-grub");
    let refused = boot::install(&machine, &mut machine.journal(), &arguments).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("boot loader's configuration: isolcpus="),
        "{refused}"
    );
}

/// Of two `isolcpus=` or `nohz_full=` the kernel takes the first, and the drop-in comes last.
#[test]
fn a_word_that_others_wrote_is_replaced_by_hand() {
    let machine = Machine::new();
    machine.files.directory("/etc/default/grub.d");
    let write = || {
        let boot = planned(&machine).unwrap().boot;
        boot::install(&machine, &mut machine.journal(), &boot)
    };
    machine
        .files
        .write("/proc/cmdline", "quiet nohz_full=5 isolcpus=2-3\n");
    let refused = write().unwrap_err().to_string();
    assert!(refused.contains("with isolcpus=2-3"), "{refused}");
    machine
        .files
        .write("/proc/cmdline", "nohz_full=5 isolcpus=managed_irq,domain,2-3,6\n");
    let refused = write().unwrap_err().to_string();
    assert!(
        refused.contains("with nohz_full=5") && refused.contains("write nohz_full=2,3,5 in its place"),
        "{refused}"
    );
    let both = "nohz_full=2,3,5 isolcpus=managed_irq,domain,2-3,6";
    machine.files.write("/proc/cmdline", both);
    write().unwrap();
    let ours = "nohz_full=7 isolcpus=managed_irq,domain,7";
    machine.files.write(boot::DROP_IN, &format!("A=\"$A {ours}\"\n"));
    machine.files.write("/proc/cmdline", ours);
    write().unwrap();
}

/// The kernel has the words of the drop-in that it was booted with, whatever has been written, or undone, since.
#[test]
fn words_of_earlier_drop_ins_are_ours_until_the_reboot() {
    let machine = Machine::new();
    let replaced = |cores: &str| {
        let sys = &machine.files.sys;
        let mut plan = doctor::tune::plan(sys, &cores.parse().unwrap(), &[], &[]).unwrap();
        let drop_ins = journal::texts_of(sys, Path::new(journal::DEFAULT), boot::DROP_IN);
        boot::own(&mut plan.boot, &drop_ins);
        let replaced = plan.boot.iter().any(|argument| argument.replaces);
        (replaced, plan.boot)
    };
    let write = |boot: &[boot::Argument]| boot::install(&machine, &mut machine.journal(), boot);
    machine.files.directory("/etc/default/grub.d");
    write(&replaced("2-3").1).unwrap();
    let booted = "nohz_full=2,3 isolcpus=managed_irq,domain,2,3";
    machine.files.write("/proc/cmdline", booted);
    for cores in ["2-5", "2-5", "2-4"] {
        write(&replaced(cores).1).unwrap();
    }
    undo(&machine, machine.journal()).unwrap();
    assert!(!replaced("2-4").0);
    machine
        .files
        .write("/proc/cmdline", &format!("{booted} nohz_full=6"));
    assert!(replaced("2-4").0, "somebody's own, too");
}

/// `hugepages=` without a size, `vm.nr_hugepages` and hugetlbfs count in pages of the default size.
#[test]
fn the_default_size_of_huge_pages_is_left_as_it_is() {
    let machine = Machine::new();
    let pages = |flags: &str, line: &str| {
        machine
            .files
            .write("/proc/cpuinfo", &format!("processor : 0\nflags : fpu {flags}\n"));
        machine.files.write("/proc/cmdline", &format!("{line}\n"));
        let boot = planned(&machine).unwrap().boot;
        let pages = boot
            .into_iter()
            .filter(|argument| argument.text.contains("hugepages"));
        pages
            .map(|argument| format!("{}{}", argument.text, if argument.is_there() { "!" } else { "" }))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for line in ["", "hugepages=512", "default_hugepagesz=2M hugepages=512"] {
        assert_eq!(pages("pdpe1gb", line), "hugepagesz=1G hugepages=1", "{line}");
    }
    for theirs in ["hugepagesz=1G hugepages=8", "default_hugepagesz=1G hugepages=8"] {
        assert_eq!(
            pages("pdpe1gb", theirs),
            "hugepagesz=1G! hugepages=8!",
            "{theirs}"
        );
        assert_eq!(pages("", theirs), "hugepagesz=2M hugepages=512", "{theirs}");
    }
}

#[test]
fn a_partition_is_for_those_who_may_enter_it() {
    let machine = Machine::new();
    let base = "/sys/fs/cgroup/dropless";
    machine.files.process("0", "0,1,4-7");
    machine.files.write(&format!("{base}/cpuset.cpus"), "2-3\n");
    machine
        .files
        .write(&format!("{base}/cpuset.cpus.partition"), "isolated\n");
    let wanted: CoreSet = "3".parse().unwrap();
    let refused = host::cores::check(&machine.files.sys, &wanted)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("partition of dropless tune, and only root"),
        "{refused}"
    );
    machine.files.write(&format!("{GROUP}/cgroup.threads"), "");
    machine.files.write("/sys/fs/cgroup/cgroup.procs", "");
    machine.files.write("/sys/fs/cgroup/cgroup.threads", "");
    host::cores::check(&machine.files.sys, &wanted).unwrap();
    let threads = |path: &str| machine.holds(&format!("{path}/cgroup.threads"));
    let stay = host::partition::enter(&machine.files.sys, &wanted).unwrap();
    assert!(stay.is_some());
    assert_eq!(
        (threads(GROUP), threads("/sys/fs/cgroup")),
        ("0".into(), String::new())
    );
    drop(stay);
    assert_eq!(threads("/sys/fs/cgroup"), "0");
    let others: CoreSet = "0-1".parse().unwrap();
    assert!(
        host::partition::enter(&machine.files.sys, &others)
            .unwrap()
            .is_none()
    );
}

#[test]
fn what_a_port_lacks_besides_its_driver_is_left_to_people() {
    let machine = Machine::new();
    let tap: PortUri = "packet:eth9".parse().unwrap();
    let plan = doctor::tune::plan(&machine.files.sys, &"2".parse().unwrap(), &[tap], &[]).unwrap();
    assert!(
        plan.by_hand.iter().any(|left| left.says.contains("eth9")),
        "{:?}",
        plan.by_hand
    );
}

#[test]
fn of_several_remedies_the_first_is_made_and_no_core_is_switched_off() {
    let machine = Machine::new();
    let now = |path: &str, value: &str| Remedy::now(vec![(Change::new(path, value), "1".into())]);
    let online = "/sys/devices/system/cpu/cpu6/online";
    let findings = [
        Finding::new("two-ways", Verdict::Bad, "bad")
            .remedy(now("/proc/a", "0"))
            .remedy(now("/proc/b", "0")),
        Finding::new("smt", Verdict::Warning, "threads beside the workers'").remedy(now(online, "0")),
    ];
    let plan = doctor::tune::plan(&machine.files.sys, &"2".parse().unwrap(), &[], &findings).unwrap();
    let targets: Vec<String> = plan.steps.iter().map(|step| step.action.target()).collect();
    assert_eq!(
        targets,
        ["/etc/default/irqbalance", "/proc/a", "cpuset partition"]
    );
    assert_eq!(plan.by_hand[0].check, "smt");
    assert_eq!(plan.by_hand[0].fix.commands, [format!("echo 0 > {online}")]);
}

/// For a run the process is in the root of cgroup v2: its memory limit and its quota are those of its own cgroup.
#[test]
fn a_process_goes_back_to_its_cgroup() {
    let machine = Machine::new();
    let home = "/sys/fs/cgroup/user.slice/session";
    machine
        .files
        .write("/proc/self/cgroup", "1:name=systemd:/x\n0::/user.slice/session\n");
    machine.files.write(&format!("{home}/cgroup.procs"), "");
    let stay = host::partition::home(&machine.files.sys);
    assert!(stay.is_some());
    drop(stay);
    assert_eq!(
        machine.holds(&format!("{home}/cgroup.procs")),
        "",
        "it never left"
    );
    let stay = host::partition::home(&machine.files.sys);
    machine.files.write("/proc/self/cgroup", "0::/\n");
    drop(stay);
    assert_eq!(machine.holds(&format!("{home}/cgroup.procs")), "0");
}
