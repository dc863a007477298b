//! What people read of a plan and of what became of it.

use doctor::tune::boot::DROP_IN;
use doctor::tune::{Action, Outcome, Plan, Step, Undone};
use measure::{CoreNoise, NoiseSummary};
use report::Style;

use super::prove::Proof;
use super::{Change, exit_code, show};

fn plan() -> Plan {
    let step = |path: &str| Step {
        check: "irq".into(),
        why: "interrupts arrive on core 1".into(),
        action: Action::Write(doctor::Change::new(path, "0")),
    };
    Plan {
        cores: "1".parse().unwrap(),
        housekeeping: "0".parse().unwrap(),
        steps: vec![
            step("/proc/irq/7/smp_affinity_list"),
            step("/proc/irq/9/smp_affinity_list"),
        ],
        boot: Vec::new(),
        by_hand: Vec::new(),
    }
}

#[test]
fn a_reason_stands_once_above_its_changes() {
    assert_eq!(
        show::plan(&plan(), false, &Style::plain()),
        "core 1 for polling, core 0 for everything else\n\
         \n\
         \x20 irq: interrupts arrive on core 1\n\
         \x20     /proc/irq/7/smp_affinity_list -> 0\n\
         \x20     /proc/irq/9/smp_affinity_list -> 0\n\
         \n\
         While send or reflect runs as root, no core sleeps deeply.\n\
         \n\
         Nothing was changed. With --apply, these 2 changes are made, and --undo takes\n\
         them back.\n"
    );
}

#[test]
fn a_measurement_that_was_interrupted_proves_nothing() {
    let noise = |interrupted| NoiseSummary {
        cores: vec![CoreNoise {
            taken_share: 0.1,
            ..CoreNoise::default()
        }],
        interrupted,
        ..NoiseSummary::default()
    };
    let factor = |interrupted| {
        let proof = serde_json::to_value(Proof::new(noise(false), noise(interrupted))).unwrap();
        proof["factor"].as_f64()
    };
    assert_eq!((factor(false), factor(true)), (Some(1.0), None));
}

#[test]
fn what_was_refused_says_why_and_is_no_success() {
    let outcomes = [
        Outcome::Took {
            old: "0-1".into(),
            now: "0".into(),
        },
        Outcome::Refused {
            why: "managed by the kernel".into(),
        },
    ];
    let (plan, style) = (plan(), Style::plain());
    assert_eq!(
        show::done(&plan.steps[1], &outcomes[1], false, &style),
        "      /proc/irq/9/smp_affinity_list: refused\n        managed by the kernel\n"
    );
    assert!(show::ending(&plan, &outcomes, &style).contains("1 changed and read back, 0 so already"));
    assert_eq!(
        (exit_code(&outcomes), exit_code(&outcomes[..1]), exit_code(&[])),
        (1, 0, 0)
    );
}

#[test]
fn what_a_reboot_reset_is_counted_and_not_listed() {
    let change = |undone| Change {
        path: "/proc/a".into(),
        undone,
    };
    let changes = [
        change(Undone::Rebooted),
        change(Undone::Foreign { now: String::new() }),
    ];
    assert_eq!(
        show::undone(&changes, &Style::plain()),
        "  /proc/a: left alone: somebody else has made it ''\n\
         0 restored, 1 left; 1 more were reset by the reboot since.\n"
    );
}

#[test]
fn what_the_boot_loader_still_has_is_said() {
    let undone = |path: &str, undone| {
        let change = Change {
            path: path.into(),
            undone,
        };
        show::undone(&[change], &Style::plain())
    };
    let restored = || Undone::Restored {
        value: "no file".into(),
    };
    assert!(undone(DROP_IN, restored()).ends_with("after: update-grub && reboot\n"));
    for text in [undone(DROP_IN, Undone::AsItWas), undone("/proc/a", restored())] {
        assert!(!text.contains("update-grub"), "{text}");
    }
}
