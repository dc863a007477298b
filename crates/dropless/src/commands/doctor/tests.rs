//! What is shown of made-up findings.

use doctor::{Change, Finding, Remedy, Verdict, When};
use host::Fix;
use report::Style;

use super::Examination;
use super::show::report;
use crate::run::glance::lines;

fn finding(verdict: Verdict) -> Finding {
    let change = Change::new("/proc/irq/38/smp_affinity_list", "0-1");
    Finding::new("irq", verdict, "devices interrupt core 2")
        .read("/proc/interrupts", "38: +6")
        .costs("20 us each")
        .remedy(Remedy::now(vec![(change, "0-3".into())]))
        .remedy(Remedy::boot(["irqaffinity=0-1"]))
}

fn shown(findings: Vec<Finding>, width: usize) -> String {
    let examination = Examination {
        version: 1,
        workers: "2-3".parse().unwrap(),
        housekeeping: "0-1".parse().unwrap(),
        watched_ns: 1,
        findings,
    };
    let style = Style {
        width,
        ..Style::plain()
    };
    report(&examination, &style)
}

#[test]
fn a_finding_has_its_cost_its_fix_and_its_undo() {
    let good = Finding::new("tick", Verdict::Good, "no tick").read("/x", "0");
    let expected = "\
Planned: workers on cores 2,3, everything else on cores 0,1.

bad          irq   devices interrupt core 2
             costs 20 us each
             read  /proc/interrupts: 38: +6
             fix   (works now, until a reboot)
                   echo 0-1 > /proc/irq/38/smp_affinity_list
             undo  echo 0-3 > /proc/irq/38/smp_affinity_list
             fix   (after a reboot)
                   kernel command line: irqaffinity=0-1 (dropless tune --boot)
             undo  take the argument out of the command line again, and reboot

good         tick  no tick

1 bad, 0 warnings, 1 good, 0 cannot tell. Nothing was changed; dropless tune
makes the changes and takes them back.
";
    assert_eq!(shown(vec![good, finding(Verdict::Bad)], 80), expected);
}

#[test]
fn only_commands_are_wider_than_the_terminal() {
    let mut wide = finding(Verdict::Warning);
    wide.says = "one two three four five six seven eight nine ten eleven".into();
    let text = shown(vec![wide], 44);
    let too_wide: Vec<&str> = text
        .lines()
        .filter(|line| line.len() > 44 && !line.contains("echo "))
        .collect();
    assert!(too_wide.is_empty(), "{too_wide:?}");
}

#[test]
fn many_commands_are_cut_and_counted() {
    let changes = (0..20).map(|irq| {
        (
            Change::new(format!("/proc/irq/{irq}/smp_affinity_list"), "0"),
            "0-1".to_owned(),
        )
    });
    let many = Finding::new("irq", Verdict::Bad, "many").remedy(Remedy::now(changes.collect()));
    let text = shown(vec![many.clone()], 80);
    assert_eq!(text.matches("... 14 more of this kind").count(), 2, "{text}");
    let line = lines(&[many], "2").remove(0);
    assert!(line.ends_with("smp_affinity_list, and 19 like it"), "{line}");
}

#[test]
fn a_glance_is_three_lines() {
    assert_eq!(lines(&[], "2"), Vec::<String>::new());
    let said = lines(&vec![finding(Verdict::Bad); 5], "2,3");
    assert_eq!(said.len(), 3);
    let first =
        "doctor: devices interrupt core 2; fix (works now): echo 0-1 > /proc/irq/38/smp_affinity_list";
    assert_eq!(said[0], first);
    assert_eq!(said[2], format!("{first} (2 more: dropless doctor --cores 2,3)"));
    let advised = Finding::new("x", Verdict::Bad, "y").remedy(Remedy::by_hand(When::Host, Fix::advice("z")));
    assert_eq!(
        lines(&[advised], "2"),
        ["doctor: y; fix (on the host of this virtual machine): z"]
    );
}
