//! Ambient warnings.

use crate::fixture::Fixture;
use doctor::ambient;

const NODE: &str = "/sys/devices/system/node/node0";

fn codes(machine: &Fixture) -> Vec<&'static str> {
    ambient(&machine.sys).iter().map(|warning| warning.code).collect()
}

#[test]
fn a_good_machine_is_quiet_and_a_bad_one_is_not() {
    let machine = Fixture::new();
    assert_eq!(codes(&machine).len(), 0);
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
