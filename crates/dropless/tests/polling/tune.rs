//! `dropless tune` on this machine: what is applied is taken back exactly, also where tune was killed on the way.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Lab, Need, require};
use doctor::tune::{Journal, Outcome};
use doctor::{Change, Finding, Remedy, Verdict};
use host::Sys;
use host::cores::CoreSet;

/// Values that can be changed for a moment without harm, each with what it is changed to.
const HARMLESS: [(&str, &str); 5] = [
    ("/proc/sys/vm/stat_interval", "17"),
    ("/proc/irq/default_smp_affinity", "1"),
    ("/proc/sys/vm/dirty_expire_centisecs", "3107"),
    ("/proc/sys/kernel/timer_migration", "0"),
    ("/proc/sys/kernel/watchdog_thresh", "13"),
];
/// The steps after which the child kills itself, and where its journal is.
const KILL_AFTER: &str = "DROPLESS_TEST_KILLED_AFTER";
const JOURNAL: &str = "DROPLESS_TEST_JOURNAL";
const NEEDS: [Need; 3] = [
    Need::Root,
    Need::Processors(2),
    Need::File("/proc/irq/default_smp_affinity"),
];

/// Those of the harmless values that this kernel has, every file that the plan of this machine names, and the affinity of every
/// interrupt: which ones are in a plan goes by what came meanwhile, and a plan watches for a second.
fn values(lab: &Lab) -> BTreeMap<String, String> {
    static PLANNED: OnceLock<Vec<String>> = OnceLock::new();
    let planned = PLANNED.get_or_init(|| {
        let plan = lab.dropless(&["tune", "--cores=1", "--json"]).run().json();
        let steps = plan["steps"].as_array().expect("the plan has steps").clone();
        let paths = steps.iter().filter_map(|step| step["path"].as_str());
        paths.map(str::to_owned).collect()
    });
    let harmless = HARMLESS.iter().map(|(path, _)| (*path).to_owned());
    harmless
        .chain(planned.iter().cloned())
        .chain(affinities())
        .filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?)))
        .collect()
}

/// Which cores each interrupt may come to.
fn affinities() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc/irq").expect("the interrupts").flatten();
    entries.map(|entry| format!("{}/smp_affinity_list", entry.path().display()))
}

/// The same files as they are now.
fn again(before: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let read = |path: &String| Some((path.clone(), fs::read_to_string(path).ok()?));
    before.keys().filter_map(read).collect()
}

/// Values that a test changes, as they were: where it fails before it has taken that back, they are written when this is dropped.
struct Restored(BTreeMap<String, String>);

impl Drop for Restored {
    fn drop(&mut self) {
        let now = again(&self.0);
        let changed = self
            .0
            .iter()
            .filter(|(path, value)| now.get(*path) != Some(value));
        for (path, value) in changed {
            let _ = fs::write(path, value);
        }
    }
}

fn journal(lab: &Lab) -> String {
    lab.path("journal").display().to_string()
}

/// Undoes, and says how that went.
fn undo(lab: &Lab) -> serde_json::Value {
    let run = lab
        .dropless(&["tune", "--undo", "--json", "--journal", &journal(lab)])
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    run.json()
}

/// A plan of these changes, as the doctor would find them, applied by this process.
fn apply(changes: Vec<Change>, journal: &mut Journal, told: &mut dyn FnMut(&Outcome)) {
    let sys = Sys::live();
    let changes = changes.into_iter().map(|change| (change, String::new()));
    let finding = Finding::new("test", Verdict::Bad, "a test changes it");
    let finding = finding.remedy(Remedy::now(changes.collect()));
    let cores: CoreSet = "1".parse().expect("a core");
    let mut plan = doctor::tune::plan(&sys, &cores, &[], &[finding]).expect("a plan");
    plan.steps.retain(|step| step.check == "test");
    doctor::tune::apply(&sys, &plan, journal, &mut |_, outcome| told(outcome))
        .expect("the journal is written");
}

fn harmless() -> Vec<Change> {
    HARMLESS
        .iter()
        .map(|(path, value)| Change::new(*path, *value))
        .collect()
}

#[test]
fn killed_in_the_middle_every_value_comes_back() {
    if let (Ok(after), Ok(path)) = (std::env::var(KILL_AFTER), std::env::var(JOURNAL)) {
        let after: usize = after.parse().expect("a number");
        let mut journal = Journal::open(&Sys::live(), Path::new(&path)).expect("the journal");
        let mut steps = 0;
        apply(harmless(), &mut journal, &mut |_| {
            steps += 1;
            if steps == after {
                let _ = nix::sys::signal::raise(nix::sys::signal::SIGKILL);
            }
        });
        return;
    }
    let Some(lab) = require(&NEEDS) else { return };
    let named = values(&lab);
    for after in 1..=HARMLESS.len() {
        let before = again(&named);
        let _restored = Restored(before.clone());
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "tune::killed_in_the_middle_every_value_comes_back"])
            .env(KILL_AFTER, after.to_string())
            .env(JOURNAL, journal(&lab))
            .output()
            .expect("starting this program again");
        assert!(!output.status.success(), "it was to be killed after {after}");
        assert_ne!(
            again(&before),
            before,
            "nothing was changed before it was killed after {after}"
        );
        let report = undo(&lab);
        assert_eq!(again(&before), before, "killed after {after}: {report}");
    }
}

#[test]
fn a_change_that_was_written_down_and_never_made_is_none() {
    let Some(lab) = require(&NEEDS) else { return };
    let before = values(&lab);
    let mut open = Journal::open(&Sys::live(), &lab.path("journal")).expect("the journal");
    let (path, wanted) = HARMLESS[0];
    let old = before[path].trim();
    open.before(doctor::tune::journal::Kind::Value, path, Some(old), Some(wanted))
        .expect("a line");
    let refused = lab
        .dropless(&["tune", "--undo", "--journal", &journal(&lab)])
        .run();
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("another dropless tune is running"),
        "{refused}"
    );
    drop(open);
    let report = undo(&lab);
    assert_eq!(report["changes"][0]["state"], "as-it-was", "{report}");
    assert_eq!(again(&before), before);
}

#[test]
fn what_somebody_else_has_changed_since_is_left_alone() {
    let Some(lab) = require(&NEEDS) else { return };
    let before = values(&lab);
    let _restored = Restored(before.clone());
    let (path, _) = HARMLESS[0];
    let mut open = Journal::open(&Sys::live(), &lab.path("journal")).expect("the journal");
    apply(harmless(), &mut open, &mut |_| {});
    drop(open);
    fs::write(path, "23").expect("somebody else writes");
    let run = lab
        .dropless(&["tune", "--undo", "--journal", &journal(&lab)])
        .run();
    let now = fs::read_to_string(path).expect("the value");
    fs::write(path, &before[path]).expect("putting it back");
    assert_eq!((run.code, now.trim()), (Some(1), "23"), "{run}");
    assert!(run.stdout.contains("somebody else has made it 23"), "{run}");
    assert_eq!(again(&before), before);
}

#[test]
fn what_this_machine_is_tuned_by_is_taken_back() {
    let Some(lab) = require(&NEEDS) else { return };
    let before = values(&lab);
    let _restored = Restored(before.clone());
    let run = lab
        .dropless(&[
            "tune",
            "--cores=1",
            "--apply",
            "--json",
            "--journal",
            &journal(&lab),
        ])
        .run();
    let report = undo(&lab);
    // What the kernel refuses differs from machine to machine; that it is said, and taken back, does not.
    assert!(matches!(run.code, Some(0 | 1)), "{run}");
    let applied = run.json();
    let (steps, outcomes) = (applied["steps"].as_array(), applied["outcomes"].as_array());
    assert_eq!(steps.map(Vec::len), outcomes.map(Vec::len), "{run}");
    let refused = outcomes.is_some_and(|all| all.iter().any(|one| one["state"] == "refused"));
    assert_eq!(refused, run.code == Some(1), "{run}");
    assert_eq!(again(&before), before, "{report}");
}

#[test]
fn a_plan_changes_nothing() {
    let Some(lab) = require(&NEEDS) else { return };
    let before = values(&lab);
    let run = lab.dropless(&["tune", "--cores=1"]).run();
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("Nothing was changed."), "{run}");
    assert_eq!(again(&before), before);
}

#[test]
fn the_last_core_is_not_given_away() {
    let Some(lab) = require(&NEEDS) else { return };
    let all = fs::read_to_string("/sys/devices/system/cpu/online").expect("the cores");
    let run = lab.dropless(&["tune", "--apply", "--cores", all.trim()]).run();
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("leave one out of --cores"), "{run}");
}

#[test]
fn every_interrupt_is_moved_or_says_why_not_and_comes_back() {
    let Some(lab) = require(&NEEDS) else { return };
    let read = |file: String| Some((file.clone(), fs::read_to_string(file).ok()?));
    let before: BTreeMap<_, _> = affinities().filter_map(read).collect();
    assert!(!before.is_empty(), "a machine without interrupts");
    let _restored = Restored(before.clone());
    let change = |file: &String| {
        let effective = file.replace("smp_affinity_list", "effective_affinity_list");
        Change::new(file, "0").effective_in(effective)
    };
    let mut open = Journal::open(&Sys::live(), &lab.path("journal")).expect("the journal");
    let mut outcomes = Vec::new();
    apply(before.keys().map(change).collect(), &mut open, &mut |outcome| {
        outcomes.push(outcome.clone());
    });
    drop(open);
    let during = again(&before);
    let report = undo(&lab);
    assert_eq!(again(&before), before, "{report}");
    assert_eq!((during.len(), outcomes.len()), (before.len(), before.len()));
    for ((file, now), outcome) in during.iter().zip(outcomes) {
        let moved = !outcome.is_refused();
        assert_eq!(now.trim() == "0", moved, "{file} reads {now}: {outcome:?}");
    }
}

/// A cgroup that goes with the test, where nobody has removed it before.
struct Cgroup(String);

impl Cgroup {
    fn new(path: String) -> Self {
        fs::create_dir(&path).expect("a cgroup");
        Self(path)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// `ip netns exec` mounts /sys anew, without the cgroups below it: what is there is not gone.
#[test]
fn undo_in_a_network_namespace_forgets_no_cgroup() {
    let Some(lab) = require(&[Need::Root, Need::Namespaces]) else {
        return;
    };
    let sys = Sys::live();
    let root = sys
        .mounts("cgroup2")
        .into_iter()
        .next()
        .expect("cgroup v2 is mounted");
    let group = format!("{root}/dropless-test-{}", std::process::id());
    let boot = doctor::tune::journal::boot_id(&sys);
    let line = serde_json::json!({"kind": "directory", "path": group, "old": null, "new": null, "boot": boot, "time": 0});
    fs::write(journal(&lab), format!("{line}\n")).expect("a journal");
    let group = Cgroup::new(group);
    let elsewhere = lab.namespace("elsewhere");
    let hidden = lab
        .dropless(&["tune", "--undo", "--json", "--journal", &journal(&lab)])
        .within(&elsewhere)
        .run();
    let there = undo(&lab);
    let is_gone = !Path::new(&group.0).exists();
    let state = |report: &serde_json::Value| report["changes"][0]["state"].as_str().map(str::to_owned);
    assert_eq!(
        (hidden.code, state(&hidden.json())),
        (Some(1), Some("refused".into())),
        "{hidden}"
    );
    assert_eq!(
        (state(&there), is_gone),
        (Some("restored".into()), true),
        "{there}"
    );
}
