//! Interfaces that rules are to be put onto (`--dev`).

use crate::fixture::Fixture;

/// A machine with two interfaces, and one function that a poll mode driver has.
fn machine() -> Fixture {
    let machine = Fixture::new();
    for name in ["eth0", "eth1"] {
        machine.write(&format!("/sys/class/net/{name}/flags"), "0x1003\n");
        machine.write(&format!("/sys/class/net/{name}/type"), "1\n");
    }
    machine.pci("0000:3b:00.0", (0x8086, 0x1572), Some("vfio-pci"), None);
    machine
}

fn said(machine: &Fixture, name: &str) -> String {
    host::device(&machine.sys, name, "--dev ")
        .unwrap_err()
        .to_string()
}

#[test]
fn a_name_that_nobody_has_is_answered_by_those_there_are() {
    let machine = machine();
    let near = said(&machine, "eth2");
    assert!(near.ends_with("fix: write --dev eth0"), "{near}");
    assert!(
        near.contains("0000:3b:00.0 belongs to a poll mode driver"),
        "{near}"
    );
    let alone = host::device(&machine.sys, "eth2", "").unwrap_err().to_string();
    assert!(
        alone.starts_with("eth2: ") && alone.ends_with("fix: write eth0"),
        "{alone}"
    );
    let far = said(&machine, "uplink");
    assert!(far.ends_with("fix: dropless ports"), "{far}");
}

#[test]
fn what_a_poll_mode_driver_has_is_filtered_in_user_space() {
    let said = said(&machine(), "0000:3b:00.0");
    assert!(
        said.contains("dropless forward --rules RULES --port pci:0000:3b:00.0"),
        "{said}"
    );
}

#[test]
fn who_may_not_load_programs_is_told_what_that_takes() {
    let machine = machine();
    assert!(host::device(&machine.sys, "eth0", "--dev ").is_ok());
    machine.process("0000000000000000", "0-7");
    let said = said(&machine, "eth0");
    assert!(said.contains("CAP_NET_ADMIN and CAP_BPF"), "{said}");
}

#[test]
fn a_sys_of_another_network_namespace_is_not_believed() {
    let machine = machine();
    for (name, index) in [("eth0", "2"), ("eth1", "3")] {
        machine.write(&format!("/sys/class/net/{name}/ifindex"), index);
    }
    let table = |names: &[&str]| {
        let lines = names.join(": 0 0\n  ");
        machine.write(
            "/proc/net/dev",
            &format!("Inter-|\n face |bytes\n  {lines}: 0 0\n"),
        );
    };
    table(&["eth0", "eth1"]);
    assert!(host::device(&machine.sys, "eth0", "--dev ").is_ok());
    assert!(host::check_sys(&machine.sys, "interfaces").is_ok());
    // One that is not here, and one that is not shown.
    for names in [&["eth0"][..], &["eth0", "eth1", "far0"]] {
        table(names);
        let wanted =
            "/sys shows another network namespace (nsenter --net leaves it as it was); fix: unshare --mount ";
        let said = said(&machine, "eth0");
        assert!(said.starts_with(&format!("--dev eth0: {wanted}")), "{said}");
        let refused = host::check_sys(&machine.sys, "interfaces").unwrap_err();
        assert!(refused.to_string().contains(wanted), "{refused}");
    }
}
