//! `tune` on a machine made of files: what is planned, what takes effect, and that undo restores all of it.

mod kernel;
mod plan;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use doctor::tune::journal::{DEFAULT, Kind};
use doctor::tune::{Journal, Outcome, Plan, Undone, apply, boot, undo};
use doctor::{Change, Finding, Remedy, Verdict};
use host::cores::CoreSet;
use host::{PortUri, Problem};
use kernel::{GROUP, Machine, NIC};
use proptest::prelude::*;

const NODE: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";

/// What the doctor would find on [`Machine::new`].
fn findings() -> Vec<Finding> {
    let now = |changes: &[(&str, &str)]| {
        Remedy::now(
            changes
                .iter()
                .map(|(path, value)| (Change::new(*path, *value), String::new()))
                .collect(),
        )
    };
    let irq = |number: u32| {
        let base = format!("/proc/irq/{number}");
        let change = Change::new(format!("{base}/smp_affinity_list"), "0-1,4-7");
        (
            change.effective_in(format!("{base}/effective_affinity_list")),
            "0-7".into(),
        )
    };
    let bad = |check, says: &str| Finding::new(check, Verdict::Bad, says);
    vec![
        bad("irq", "interrupts arrive on cores 2,3").remedy(Remedy::now(vec![irq(7), irq(8), irq(9)])),
        bad("irq", "new interrupts will arrive there")
            .remedy(now(&[("/proc/irq/default_smp_affinity", "f3")])),
        bad("workqueue", "workqueues use the cores")
            .remedy(now(&[("/sys/devices/virtual/workqueue/cpumask", "f3")])),
        bad("watchdog", "the watchdog looks after the cores")
            .remedy(now(&[("/proc/sys/kernel/watchdog", "0")])),
        bad("thp", "huge pages are made behind our back")
            .remedy(now(&[("/sys/kernel/mm/transparent_hugepage/enabled", "never")])),
        bad("hugepages", "too few").remedy(now(&[(NODE, "1024")])),
        bad("tick", "the timer interrupts").remedy(Remedy::boot(["nohz_full=2-3", "tsc=reliable"])),
        Finding::new("good", Verdict::Good, "fine").remedy(now(&[("/proc/sys/kernel/good", "1")])),
    ]
}

fn cores() -> CoreSet {
    "2-3".parse().unwrap()
}

fn planned(machine: &Machine) -> Result<Plan, Problem> {
    let nic: PortUri = format!("pci:{NIC}").parse().unwrap();
    doctor::tune::plan(&machine.files.sys, &cores(), &[nic], &findings())
}

/// The plan, applied, and the drop-in of GRUB installed.
fn tune(machine: &Machine) -> Vec<Outcome> {
    let plan = planned(machine).unwrap();
    let mut journal = machine.journal();
    let mut outcomes = apply(machine, &plan, &mut journal, &mut |_, _| {}).unwrap();
    outcomes.push(boot::install(machine, &mut journal, &plan.boot).unwrap());
    outcomes
}

fn undone(machine: &Machine) -> Vec<(String, Undone)> {
    undo(machine, machine.journal()).unwrap()
}

#[test]
fn every_step_is_read_back_and_one_that_is_refused_stops_no_other() {
    let machine = Machine::new();
    let plan = planned(&machine).unwrap();
    let targets: Vec<String> = plan.steps.iter().map(|step| step.action.target()).collect();
    let outcomes = tune(&machine);
    let of = |target: &str| {
        let index = targets.iter().position(|name| name == target);
        &outcomes[index.unwrap_or_else(|| panic!("{target} is not in {targets:?}"))]
    };
    assert_eq!(
        targets[0], "/etc/default/irqbalance",
        "it would move the interrupts back"
    );
    assert!(matches!(of("/proc/irq/7/smp_affinity_list"), Outcome::Took { now, .. } if now == "0"));
    assert!(matches!(of("/proc/irq/8/smp_affinity_list"), Outcome::NotYet { now, .. } if now == "3"));
    assert!(
        matches!(of("/proc/irq/9/smp_affinity_list"), Outcome::Refused { why } if why.contains("managed_irq"))
    );
    assert!(matches!(of(NODE), Outcome::Refused { why } if why.contains("reads '700'")));
    assert!(matches!(of("cpuset partition"), Outcome::Took { now, .. } if now == "isolated"));
    assert_eq!(
        of(&format!("driver of {NIC}")),
        &Outcome::Took {
            old: "ixgbe".into(),
            now: "vfio-pci".into()
        }
    );
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_refused()).count(), 2);
    assert_eq!(machine.holds(&format!("{GROUP}/cpuset.cpus")), "2,3");
    assert_eq!(host::cores::isolated(&machine.files.sys), cores());
    assert!(
        machine
            .holds("/etc/default/irqbalance")
            .contains("IRQBALANCE_BANNED_CPULIST=\"2,3\"")
    );
}

#[test]
fn applied_twice_nothing_is_changed_twice() {
    let machine = Machine::new();
    let _ = tune(&machine);
    let after = machine.snapshot();
    let again = tune(&machine);
    assert_eq!(machine.snapshot(), after);
    assert!(
        again
            .iter()
            .all(|outcome| !matches!(outcome, Outcome::Took { .. })),
        "{again:?}"
    );
}

/// Whoever polls on the first cores keeps them, and undo takes both tunes back.
#[test]
fn a_second_tune_adds_its_cores() {
    let machine = Machine::new();
    let before = machine.snapshot();
    tune(&machine);
    let more = |machine: &Machine| {
        let plan = doctor::tune::plan(&machine.files.sys, &"4".parse().unwrap(), &[], &[]).unwrap();
        assert_eq!(plan.housekeeping.to_string(), "0,1,5-7");
        apply(machine, &plan, &mut machine.journal(), &mut |_, _| {}).unwrap()
    };
    let threads = format!("{GROUP}/cgroup.threads");
    machine.files.write(&threads, "77\n");
    let refused = more(&machine);
    assert!(
        matches!(&refused.last().unwrap(), Outcome::Refused { why } if why.contains("end it first")),
        "{refused:?}"
    );
    assert_eq!(machine.holds(&format!("{GROUP}/cpuset.cpus")), "2,3");
    machine.files.remove(&threads);
    more(&machine);
    assert_eq!(machine.holds(&format!("{GROUP}/cpuset.cpus")), "2-4");
    assert!(machine.holds("/etc/default/irqbalance").contains("=\"2-4\""));
    undone(&machine);
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn killed_anywhere_undo_restores_every_byte_even_if_killed_itself() {
    let whole = Machine::new();
    let before = whole.snapshot();
    let _ = tune(&whole);
    let operations = whole.operations.get();
    assert!(operations > 30, "only {operations} operations");
    for killed in 0..=operations {
        let machine = Machine::new();
        let died = machine.killed_after(killed, |machine| drop(tune(machine)));
        assert_eq!(died, killed < operations);
        // Undo dies, too, at a place that differs each time, and begins again.
        machine.killed_after(killed * 7 % 23, |machine| drop(undone(machine)));
        let report = undone(&machine);
        let after = machine.snapshot();
        let differs: Vec<_> = before
            .iter()
            .filter(|(path, text)| after.get(*path) != Some(*text))
            .collect();
        assert!(
            differs.is_empty() && after.len() == before.len(),
            "killed after {killed}: {differs:?} {report:?}"
        );
        let clean = |undone: &Undone| !matches!(undone, Undone::Refused { .. } | Undone::Foreign { .. });
        assert!(
            report.iter().all(|(_, undone)| clean(undone)),
            "killed after {killed}: {report:?}"
        );
    }
    let _ = undone(&whole);
    assert_eq!(whole.snapshot(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_somebody_else_changed_since_is_left_alone(foreign in prop::collection::vec(any::<bool>(), 8)) {
        let machine = Machine::new();
        let files: Vec<String> = (0..8).map(|index| format!("/proc/sys/vm/value{index}")).collect();
        let change = |path: &String| (Change::new(path, "ours"), "old".into());
        for path in &files {
            machine.files.write(path, "old\n");
        }
        let finding = Finding::new("test", Verdict::Bad, "test");
        let finding = finding.remedy(Remedy::now(files.iter().map(change).collect()));
        let plan = doctor::tune::plan(&machine.files.sys, &cores(), &[], &[finding]).unwrap();
        apply(&machine, &plan, &mut machine.journal(), &mut |_, _| {}).unwrap();
        for (path, _) in files.iter().zip(&foreign).filter(|(_, foreign)| **foreign) {
            machine.files.write(path, "theirs\n");
        }
        let report = undone(&machine);
        for (path, foreign) in files.iter().zip(foreign) {
            prop_assert_eq!(machine.holds(path), if foreign { "theirs" } else { "old" });
            let said = report.iter().any(|(name, undone)| name == path && matches!(undone, Undone::Foreign { .. }));
            prop_assert_eq!(said, foreign);
        }
    }
}

#[test]
fn what_somebody_changed_between_two_tunes_is_what_undo_restores() {
    let machine = Machine::new();
    let _ = tune(&machine);
    machine.files.write("/proc/irq/default_smp_affinity", "7f\n");
    let _ = tune(&machine);
    assert_eq!(machine.holds("/proc/irq/default_smp_affinity"), "f3");
    let _ = undone(&machine);
    assert_eq!(machine.holds("/proc/irq/default_smp_affinity"), "7f");
    assert_eq!(machine.holds("/proc/sys/kernel/watchdog"), "1");
}

#[test]
fn after_a_reboot_only_what_outlives_it_is_taken_back() {
    let machine = Machine::new();
    let _ = tune(&machine);
    machine.files.write("/proc/sys/kernel/random/boot_id", "two\n");
    // As booted: by chance what we had set, and it is not ours any more.
    let irq = machine.holds("/proc/irq/default_smp_affinity");
    let report = undone(&machine);
    assert_eq!(machine.holds("/proc/irq/default_smp_affinity"), irq);
    let of = |path: &str| {
        report
            .iter()
            .find(|(name, _)| name == path)
            .map(|(_, undone)| undone)
    };
    assert_eq!(of("/proc/irq/default_smp_affinity"), Some(&Undone::Rebooted));
    assert!(
        matches!(of(boot::DROP_IN), Some(Undone::Restored { .. })),
        "{report:?}"
    );
    assert!(!machine.files.path(boot::DROP_IN).exists());
    assert_eq!(
        machine.holds("/etc/default/irqbalance"),
        "# yours\nIRQBALANCE_ARGS=\"\""
    );
    assert!(undone(&machine).is_empty(), "the journal has ended");
}

#[test]
fn two_tunes_do_not_run_at_once_and_a_torn_line_is_no_change() {
    let machine = Machine::new();
    let journal = machine.journal();
    let path = Path::new(DEFAULT);
    let other = Journal::open(&machine.files.sys, path).unwrap_err();
    assert!(other.to_string().contains("another dropless tune"), "{other}");
    drop(journal);
    machine.files.write(DEFAULT, "{\"kind\":\"val");
    assert_eq!(undone(&machine).len(), 0);
}

#[test]
fn what_is_no_journal_is_refused_and_stays_as_it_is() {
    let machine = Machine::new();
    let path = machine.files.path(DEFAULT);
    machine.files.write(DEFAULT, "");
    machine
        .journal()
        .before(Kind::Value, "/proc/x", Some("1"), Some("0"))
        .unwrap();
    let ours = std::fs::read_to_string(&path).unwrap();
    let lock = machine.files.path(&format!("{DEFAULT}.lock"));
    std::fs::remove_file(&lock).unwrap();
    let others = [
        "{\"data-root\":\"/srv\"}",
        "{\"data-root\":",
        "{\"kind\":\"Pod\",\"path\":",
        "{\"kind\":\"file\",\"path\":\"/srv\"}",
        "{\"kind\":\"file\",\"path\":1",
        "{}",
        "[1",
        "\0\0\0",
        "text",
    ];
    for (other, before) in others
        .iter()
        .flat_map(|other| [(other, ""), (other, ours.as_str())])
    {
        let text = format!("{before}{other}");
        machine.files.write(DEFAULT, &text);
        let opened = Journal::open(&machine.files.sys, Path::new(DEFAULT));
        let error = opened.expect_err(&text).to_string();
        assert!(
            error.contains("not a journal of dropless tune"),
            "{text}: {error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(!lock.exists(), "{text}: a lock was left beside it");
    }
}

/// The disk was full, or the machine died: at any byte, also in the middle of a character.
#[test]
fn a_line_torn_anywhere_is_no_change() {
    let machine = Machine::new();
    let path = machine.files.path(DEFAULT);
    let add = |journal: &mut Journal| journal.before(Kind::File, "/etc/\"ä", Some("ö\n"), None);
    add(&mut machine.journal()).unwrap();
    let line = std::fs::read(&path).unwrap();
    for end in 0..line.len() {
        for before in [&b""[..], &line] {
            std::fs::write(&path, [before, &line[..end]].concat()).unwrap();
            let mut journal = machine.journal();
            assert_eq!(journal.records().len(), usize::from(!before.is_empty()), "{end}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
            add(&mut journal).unwrap();
            // It has another time.
            let length = std::fs::read(&path).unwrap().len();
            assert_eq!(length, before.len() + line.len());
        }
    }
}

/// Whose an empty file is nobody can tell.
#[test]
fn an_empty_file_is_a_journal_and_stays() {
    let machine = Machine::new();
    let path = machine.files.path(DEFAULT);
    machine.files.write(DEFAULT, "");
    assert_eq!(undone(&machine).len(), 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    drop(machine.journal());
}

#[test]
fn a_link_stays_one_and_a_file_its_owners() {
    let machine = Machine::new();
    let sys = &machine.files.sys;
    let (link, target) = (
        machine.files.path(boot::DROP_IN),
        machine.files.path("/srv/grub.cfg"),
    );
    machine.files.write("/srv/grub.cfg", "# yours\n");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink("../../../srv/grub.cfg", &link).unwrap();
    std::fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
    // Only root can give a file away.
    if nix::unistd::geteuid().is_root() {
        chown(&target, Some(12), Some(34)).unwrap();
    }
    let whose = || {
        let file = std::fs::metadata(&target).unwrap();
        (file.uid(), file.gid(), file.mode())
    };
    let before = whose();
    // What another user may have put into the way is not written through.
    machine.files.write("/srv/other", "untouched");
    symlink("other", machine.files.path("/srv/grub.cfg.dropless-new")).unwrap();
    let plan = planned(&machine).unwrap();
    let outcome = boot::install(sys, &mut machine.journal(), &plan.boot).unwrap();
    assert!(matches!(outcome, Outcome::Took { .. }), "{outcome:?}");
    assert!(link.is_symlink());
    assert_eq!(whose(), before);
    assert!(
        machine
            .holds("/srv/grub.cfg")
            .contains("GRUB_CMDLINE_LINUX_DEFAULT")
    );
    // Killed in the middle, what was to take the file's place is left.
    machine.files.write("/srv/grub.cfg.dropless-new", "half");
    undo(sys, machine.journal()).unwrap();
    assert!(link.is_symlink());
    assert_eq!(whose(), before);
    assert_eq!(machine.holds("/srv/grub.cfg"), "# yours");
    assert_eq!(machine.holds("/srv/other"), "untouched");
    assert!(!machine.files.path("/srv/grub.cfg.dropless-new").exists());
}

#[test]
fn a_link_that_leads_nowhere_stays_one() {
    let machine = Machine::new();
    let sys = &machine.files.sys;
    let link = machine.files.path(boot::DROP_IN);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink("nowhere", &link).unwrap();
    let plan = planned(&machine).unwrap();
    let outcome = boot::install(sys, &mut machine.journal(), &plan.boot).unwrap();
    let Outcome::Refused { why } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(why.contains("a link that leads nowhere"), "{why}");
    assert!(link.is_symlink() && !link.exists());
    let report = undo(sys, machine.journal()).unwrap();
    assert_eq!(report, [(boot::DROP_IN.to_owned(), Undone::AsItWas)]);
    assert!(link.is_symlink());
}

#[test]
fn a_driver_that_does_not_take_the_device_leaves_it_with_its_old_one() {
    let machine = Machine::new();
    let plan = planned(&machine).unwrap();
    machine
        .files
        .remove(&format!("/sys/devices/pci0000:00/{NIC}/driver_override"));
    let outcomes = apply(&machine, &plan, &mut machine.journal(), &mut |_, _| {}).unwrap();
    assert!(outcomes.last().unwrap().is_refused());
    assert!(
        undone(&machine)
            .iter()
            .all(|(_, undone)| !matches!(undone, Undone::Refused { .. }))
    );
    let driver = std::fs::read_link(
        machine
            .files
            .path(&format!("/sys/devices/pci0000:00/{NIC}/driver")),
    );
    assert!(driver.unwrap().ends_with("ixgbe"));
}

/// The kernel leaves an interrupt where it is as long as it may: giving it all its cores back does not move it.
#[test]
fn an_interrupt_goes_back_to_the_core_it_was_on() {
    let machine = Machine::new();
    let _ = tune(&machine);
    assert_eq!(machine.holds("/proc/irq/7/effective_affinity_list"), "0");
    let _ = undone(&machine);
    assert_eq!(machine.holds("/proc/irq/7/smp_affinity_list"), "0-7");
    assert_eq!(machine.holds("/proc/irq/7/effective_affinity_list"), "2");
}

/// In a network namespace /sys is mounted anew, and cgroup v2 is not.
#[test]
fn what_is_only_out_of_sight_stays_in_the_journal() {
    let machine = Machine::new();
    let before = machine.snapshot();
    let _ = tune(&machine);
    let mounts = machine.holds("/proc/mounts");
    machine.files.write("/proc/mounts", "");
    let hidden = machine.files.path("/sys/fs/cgroup");
    let aside = machine.files.path("/sys/fs/aside");
    std::fs::rename(&hidden, &aside).unwrap();
    let report = undone(&machine);
    let group = report
        .iter()
        .filter(|(path, _)| path.starts_with("/sys/fs/cgroup"));
    let refused = group
        .filter(|(_, undone)| matches!(undone, Undone::Refused { .. }))
        .count();
    assert!(refused >= 3, "{report:?}");
    std::fs::rename(&aside, &hidden).unwrap();
    machine.files.write("/proc/mounts", &format!("{mounts}\n"));
    let report = undone(&machine);
    assert!(
        report
            .iter()
            .any(|(path, undone)| path == GROUP && matches!(undone, Undone::Restored { .. })),
        "{report:?}"
    );
    assert_eq!(
        machine.snapshot().keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
    assert_eq!(undone(&machine).len(), 0);
}

/// What a journal names is written as root.
#[test]
fn a_journal_that_others_may_have_made_is_refused() {
    let machine = Machine::new();
    drop(machine.journal());
    let path = Path::new(DEFAULT);
    let real = machine.files.path(path.to_str().unwrap());
    let refused = || {
        let opened = Journal::open(&machine.files.sys, path);
        opened.expect_err("it was opened").to_string()
    };
    let other = real.with_extension("other");
    std::fs::rename(&real, &other).unwrap();
    symlink(&other, &real).unwrap();
    assert!(refused().contains("a link"), "{}", refused());
    std::fs::remove_file(&real).unwrap();
    std::fs::hard_link(&other, &real).unwrap();
    assert!(refused().contains("a link"), "{}", refused());
    std::fs::remove_file(&other).unwrap();
    drop(machine.journal());
    // Only root can give a file away.
    if nix::unistd::geteuid().is_root() {
        chown(&real, Some(12), None).unwrap();
        assert!(refused().contains("another user"), "{}", refused());
    }
}
