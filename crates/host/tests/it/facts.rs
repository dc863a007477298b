//! Facts and ambient warnings.

use crate::fixture::{Fixture, NODE};
use host::{ambient, facts};

fn codes(machine: &Fixture) -> Vec<&'static str> {
    ambient(&machine.sys).iter().map(|warning| warning.code).collect()
}

#[test]
fn facts_are_written_as_json() {
    let machine = Fixture::virtual_machine();
    machine.write("/proc/cmdline", "quiet isolcpus=2-3\n");
    machine.write(
        "/etc/os-release",
        "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
    );
    machine.write("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
    machine.write("/sys/devices/system/cpu/isolated", "2-3\n");
    machine.write(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    );
    let facts = serde_json::to_value(facts(&machine.sys, serde_json::json!({"version": "1"}))).unwrap();
    assert_eq!(facts["kernel"], "6.1.0-18-amd64");
    assert_eq!(facts["command_line"], "quiet isolcpus=2-3");
    assert_eq!(facts["distribution"], "Debian GNU/Linux 12 (bookworm)");
    assert_eq!(facts["hypervisor"], "Hyper-V");
    assert_eq!(facts["cores"]["isolated"], "2,3");
    assert_eq!(facts["cores"]["online"], "0-7");
    assert_eq!(facts["hugepages"][0]["free"], 512);
    assert_eq!(facts["build"]["version"], "1");
    assert_eq!(facts["cpu_flags"], serde_json::json!(["avx2", "hypervisor"]));
}

#[test]
fn a_good_machine_is_quiet_and_a_bad_one_is_not() {
    let machine = Fixture::new();
    assert!(codes(&machine).is_empty());
    machine.remove(&format!("{NODE}/hugepages"));
    machine.hugepages(0, 2048, 0, 0);
    let clock = "/sys/devices/system/clocksource/clocksource0";
    machine.write(&format!("{clock}/current_clocksource"), "hpet\n");
    machine.write(&format!("{clock}/available_clocksource"), "tsc hpet acpi_pm\n");
    machine.process("000001ffffffffff", "3");
    machine.write("/proc/self/cgroup", "0::/user.slice/run\n");
    machine.write("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    machine.write("/sys/fs/cgroup/user.slice/run/cpu.max", "max 100000\n");
    machine.write(
        "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
        "powersave\n",
    );
    assert_eq!(
        codes(&machine),
        ["no-hugepages", "clocksource", "one-core", "cpu-quota", "governor"]
    );
    let warnings = ambient(&machine.sys);
    let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        lines[0].contains("fix: echo 128 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].ends_with(&format!("fix: echo tsc > {clock}/current_clocksource")),
        "{}",
        lines[1]
    );
    assert!(
        lines[3].ends_with("fix: echo max > /sys/fs/cgroup/user.slice/cpu.max"),
        "{}",
        lines[3]
    );
    assert!(lines.iter().all(|line| !line.contains('\n')));
}
