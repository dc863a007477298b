//! `xdp:`, `packet:` and `tap:` on interfaces of every sort.

use crate::fixture::{Fixture, PMDS, limits};

fn machine() -> Fixture {
    let machine = Fixture::new();
    let device = machine.pci("0000:3b:00.0", (0x8086, 0x10fb), Some("ixgbe"), Some(1));
    machine.interface("eth1", Some(&device));
    machine
}

#[test]
fn an_interface_that_is_up_is_ready() {
    let machine = machine();
    for uri in ["xdp:eth1", "packet:eth1"] {
        let prepared = machine.check(uri).unwrap();
        assert_eq!(
            (prepared.interface.as_deref(), prepared.notes),
            (Some("eth1"), vec![])
        );
    }
}

#[test]
fn a_missing_interface_says_what_there_is() {
    let machine = machine();
    assert_eq!(
        machine.line("xdp:eht1"),
        "xdp:eht1: no interface is called eht1 (there are: eth1); fix: write xdp:eth1"
    );
    assert!(
        machine
            .line("packet:wlan7")
            .ends_with("(there are: eth1); fix: dropless ports")
    );
}

#[test]
fn an_interface_in_another_namespace_is_found_there() {
    let machine = machine();
    machine.dangling_link("/proc/self/ns/net", "net:[1]");
    machine.dangling_link("/proc/40/ns/net", "net:[1]");
    machine.write("/proc/40/net/dev", "Inter-|\n far0: 1 2\n");
    machine.dangling_link("/proc/41/ns/net", "net:[2]");
    machine.write(
        "/proc/41/net/dev",
        "Inter-|\n face |bytes\n    lo: 0 0\n  far0: 1 2\n",
    );
    assert_eq!(
        machine.line("xdp:far0"),
        "xdp:far0: interface far0 is in another network namespace (that of process 41); \
         fix: nsenter --target 41 --net unshare --mount sh -c 'mount -t sysfs none /sys && exec dropless <the same arguments>'"
    );
    // Who entered it without a /sys of its own is there, and does not see it.
    machine.write("/proc/net/dev", "Inter-|\n  far0: 1 2\n");
    assert_eq!(
        machine.line("xdp:far0"),
        "xdp:far0: far0 is here, but /sys shows another network namespace (nsenter --net leaves it as it was); \
         fix: unshare --mount sh -c 'mount -t sysfs none /sys && exec dropless <the same arguments>'"
    );
    // Nor does it see its own where that one has an interface of the same name.
    machine.write("/proc/net/dev", "Inter-|\n  eth1: 1 2\n  far0: 1 2\n");
    let said = machine.line("packet:eth1");
    assert!(
        said.starts_with("packet:eth1: /sys shows another network namespace "),
        "{said}"
    );
}

#[test]
fn down_without_link_and_not_ethernet() {
    let machine = machine();
    let base = "/sys/devices/pci0000:00/0000:3b:00.0/net/eth1";
    machine.write(&format!("{base}/carrier"), "0");
    assert_eq!(machine.notes("packet:eth1"), ["no-link"]);
    machine.write(&format!("{base}/flags"), "0x1002");
    assert_eq!(
        machine.line("packet:eth1"),
        "packet:eth1: interface eth1 is down; fix: ip link set eth1 up"
    );
    machine.write(&format!("{base}/type"), "65534");
    assert!(
        machine
            .line("xdp:eth1")
            .contains("does not carry Ethernet frames")
    );
}

#[test]
fn without_capabilities_root_is_needed() {
    let machine = machine();
    // CAP_NET_RAW alone.
    machine.process("0000000000002000", "0-7");
    machine.check("packet:eth1").unwrap();
    assert_eq!(
        machine.line("xdp:eth1"),
        "xdp:eth1: AF_XDP needs CAP_NET_ADMIN and CAP_BPF, which this process does not have; \
         fix: sudo dropless <the same arguments>"
    );
    machine.process("0000000000000000", "0-7");
    assert!(
        machine
            .line("packet:eth1")
            .contains("AF_PACKET needs CAP_NET_RAW")
    );
    assert!(
        machine
            .line("tap:t0")
            .contains("creating a TAP interface needs CAP_NET_ADMIN")
    );
}

#[test]
fn locked_memory_is_checked_for_those_it_binds() {
    let machine = machine();
    machine.write("/proc/self/limits", &limits("8388608"));
    machine.check("xdp:eth1").unwrap();
    // NET_ADMIN, NET_RAW and SYS_ADMIN, but not IPC_LOCK.
    machine.process("0000000000203000", "0-7");
    let line = machine.line("xdp:eth1");
    assert!(
        line.contains("this process may lock 8192 KiB; fix: sudo prlimit --pid $$ --memlock=unlimited"),
        "{line}"
    );
}

#[test]
fn kernels_and_installations_without_it_say_so() {
    let machine = machine();
    machine.write("/proc/net/protocols", "protocol  size\nPACKET 1600 0\n");
    assert!(
        machine
            .line("xdp:eth1")
            .ends_with("without CONFIG_XDP_SOCKETS; fix: boot a kernel with CONFIG_XDP_SOCKETS")
    );
    let machine = self::machine();
    machine.remove(&format!("{PMDS}/librte_net_af_xdp.so"));
    assert_eq!(
        machine.line("xdp:eth1"),
        "xdp:eth1: DPDK's driver for it (librte_net_af_xdp.so) is not installed; fix: apt-get install -y librte-net-af-xdp23"
    );
}

#[test]
fn queues_must_exist_and_those_left_over_are_told_of() {
    let machine = machine();
    let base = "/sys/devices/pci0000:00/0000:3b:00.0/net/eth1";
    assert!(
        machine
            .line("xdp:eth1,queues=2")
            .ends_with("eth1 has 1 receive queue(s); fix: ethtool -L eth1 combined 2")
    );
    machine.directory(&format!("{base}/queues/rx-1"));
    machine.check("xdp:eth1,queues=2").unwrap();
    assert!(
        machine
            .line("xdp:eth1,queues=2,start=1")
            .contains("queues up to 2 are asked for")
    );
    assert_eq!(machine.notes("xdp:eth1"), ["queues-left"]);
}

#[test]
fn shared_loops_and_large_frames_are_warned_of() {
    let machine = machine();
    let base = "/sys/devices/pci0000:00/0000:3b:00.0/net/eth1";
    machine.default_route("eth1");
    machine.write(&format!("{base}/mtu"), "9000");
    machine.interface("br0", None);
    machine.link(&format!("{base}/master"), "/sys/devices/virtual/net/br0");
    assert_eq!(
        machine.notes("xdp:eth1"),
        ["carries-traffic", "enslaved", "xdp-mtu"]
    );
    machine.interface("lo", None);
    machine.write("/sys/devices/virtual/net/lo/type", "772");
    assert_eq!(machine.notes("packet:lo"), ["loopback"]);
}

/// XDP takes the packets of the session, too; beside a packet socket it goes on.
#[test]
fn the_interface_of_an_ssh_session_is_not_taken_without_force() {
    let mut machine = machine();
    machine.sys.addresses = vec![("eth1".into(), "192.0.2.9".parse().unwrap())];
    machine.sys.ssh_connection = Some("192.0.2.1 50000 192.0.2.9 22".into());
    assert_eq!(
        machine.line("xdp:eth1"),
        "xdp:eth1: it is eth1, which carries an SSH session of this machine: taking it from the kernel would cut the \
         machine off; fix: choose another port, share it with the kernel as packet:eth1, or add --force"
    );
    assert_eq!(machine.notes("packet:eth1"), ["carries-traffic"]);
    machine.sys.force = true;
    assert_eq!(machine.notes("xdp:eth1"), ["carries-traffic"]);
}

#[test]
fn a_tap_needs_a_free_name_and_the_tun_driver() {
    let machine = machine();
    assert!(
        machine
            .line("tap:eth1")
            .ends_with("exists and is not a TAP interface; fix: choose another name, such as tap:dropless0")
    );
    assert!(
        machine
            .line("tap:t0")
            .contains("/dev/net/tun does not exist; fix: boot a kernel with CONFIG_TUN")
    );
    machine.directory("/sys/module/tun");
    assert!(
        machine
            .line("tap:t0")
            .ends_with("fix: mkdir -p /dev/net && mknod /dev/net/tun c 10 200")
    );
    machine.write("/dev/net/tun", "");
    machine.check("tap:t0").unwrap();
    machine.interface("t0", None);
    machine.write("/sys/devices/virtual/net/t0/tun_flags", "0x1002");
    assert!(
        machine
            .line("tap:t0")
            .contains("another process uses the TAP interface t0")
    );
    machine.write("/sys/devices/virtual/net/t0/carrier", "0");
    machine.check("tap:t0").unwrap();
}

/// A TUN interface, whose packets begin with IP, has the same file in sysfs as a TAP.
#[test]
fn a_tun_interface_is_no_ethernet() {
    let machine = Fixture::new();
    machine.interface("tun0", None);
    machine.write("/sys/devices/virtual/net/tun0/tun_flags", "0x1001");
    machine.write("/sys/devices/virtual/net/tun0/type", "65534");
    for uri in ["packet:tun0", "xdp:tun0"] {
        let line = machine.line(uri);
        assert!(line.contains("does not carry Ethernet frames"), "{line}");
    }
}

#[test]
fn what_was_lost_below_is_the_sum_of_what_the_kernel_counts() {
    let machine = machine();
    let (name, names) = ("eth9", ["rx_missed_errors", "rx_fifo_errors"]);
    let counted = || host::interface::counted(&machine.sys, name, &names);
    machine.write("/sys/class/net/eth9/statistics/rx_missed_errors", "40\n");
    assert_eq!(counted(), None, "one is not there");
    machine.write("/sys/class/net/eth9/statistics/rx_fifo_errors", "2\n");
    assert_eq!(counted(), Some(42));
    let dropped = || host::interface::softnet_dropped(&machine.sys);
    assert_eq!(dropped(), None);
    // A line a core: received, dropped, squeezed, in hexadecimal.
    let cores = "000004d2 0000000a 00000001 00000000\n00000010 000000ff 00000000 00000000\n";
    machine.write("/proc/net/softnet_stat", cores);
    assert_eq!(dropped(), Some(265));
}
