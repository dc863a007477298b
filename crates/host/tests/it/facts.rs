//! Facts.

use crate::fixture::Fixture;
use host::facts;

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
