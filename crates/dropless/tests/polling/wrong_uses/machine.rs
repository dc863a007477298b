//! What this user, this machine, this link or this DPDK does not allow.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{insist, refused_by, refused_in};
use crate::support::{Finished, Lab, Namespace, Need, require};

/// A copy of the program that any user may run: the build directory may be closed to others.
fn open_to_all(lab: &Lab) -> PathBuf {
    let (program, open) = (lab.path("dropless"), fs::Permissions::from_mode(0o755));
    fs::copy(env!("CARGO_BIN_EXE_dropless"), &program).expect("copying the program");
    fs::set_permissions(lab.directory(), open).expect("opening the directory");
    program
}

/// Runs the program as a user without any rights.
fn refused_as_nobody(arguments: &[&str], words: &[&str]) {
    let Some(lab) = require(&[Need::Root, Need::Tool("setpriv")]) else {
        return;
    };
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(open_to_all(&lab))
        .args(arguments);
    refused_by(command.current_dir(lab.directory()), words);
}

/// A user of its own may have three threads, of which the program takes one and its signals another.
#[test]
fn noise_on_more_cores_than_threads() {
    let Some(lab) = require(&[
        Need::Root,
        Need::Processors(2),
        Need::Tool("setpriv"),
        Need::Tool("prlimit"),
    ]) else {
        return;
    };
    let program = open_to_all(&lab);
    let (runs, writable) = (lab.path("runs"), fs::Permissions::from_mode(0o777));
    fs::create_dir(&runs).expect("a directory");
    fs::set_permissions(&runs, writable).expect("giving it away");
    let mut command = Command::new("timeout");
    command
        .args([
            "-s",
            "KILL",
            "60",
            "setpriv",
            "--reuid",
            "65533",
            "--regid",
            "65533",
            "--clear-groups",
        ])
        .args(["--", "prlimit", "--nproc=3", "--"])
        .arg(program)
        .args(["noise", "--no-trace", "--cores", "0,1", "--duration", "100ms"]);
    refused_by(
        command.current_dir(lab.directory()),
        &["cannot start a thread for core"],
    );
}

#[test]
fn packet_port_without_root() {
    refused_as_nobody(
        &["send", "--port", "packet:lo"],
        &["needs CAP_NET_RAW", "fix: sudo dropless"],
    );
}

#[test]
fn xdp_port_without_root() {
    refused_as_nobody(
        &["send", "--port", "xdp:lo"],
        &["CAP_NET_ADMIN", "fix: sudo dropless"],
    );
}

#[test]
fn tap_port_without_root() {
    refused_as_nobody(
        &["reflect", "--port", "tap:dropless-none"],
        &["needs CAP_NET_ADMIN", "fix: sudo dropless"],
    );
}

#[test]
fn run_directory_that_is_not_ours() {
    let runs = ["send", "--count", "1", "--runs", "/usr/runs"];
    refused_as_nobody(
        &runs,
        &[
            "cannot make a run directory in /usr/runs",
            "fix: name a directory you may write to",
        ],
    );
}

#[test]
fn socket_in_a_directory_that_is_not_ours() {
    let port = ["send", "--port", "memif:/usr/x.sock,server"];
    refused_as_nobody(
        &port,
        &[
            "directory /usr cannot be written",
            "fix: choose a directory of your own",
        ],
    );
}

/// DPDK is asked, and nothing is polled.
fn refused_eal(extra: &str, words: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    refused_in(directory.path(), &["send", "--count", "1", "--eal", extra], words);
}

#[test]
fn unknown_eal_flag() {
    refused_eal(
        "--frobnicate",
        &["--eal '--frobnicate'", "frobnicate'", "fix --eal"],
    );
}

#[test]
fn eal_device_that_does_not_exist() {
    refused_eal(
        "--vdev=net_bogus0",
        &["--eal '--vdev=net_bogus0'", "net_bogus0", "fix --eal"],
    );
}

#[test]
fn eal_help_ends_no_run_as_if_all_were_well() {
    refused_eal(
        "--help",
        &["\"--help\" asks for help", "fix: see `man dpdk-testpmd`"],
    );
}

/// A veth pair of 10 Gbit/s, as the kernel calls it, with nobody at the other end.
fn wire(lab: &Lab) -> (Namespace, Namespace) {
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("near", &far, "far");
    near.up("near", &["10.9.0.1/24"]);
    far.up("far", &[]);
    near.wait_for_link("near");
    (near, far)
}

fn refused_on_the_wire(arguments: &[&str], words: &[&str]) {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    let arguments = [&["send", "--quiet", "--port", "packet:near"], arguments].concat();
    let Finished {
        code, stdout, stderr, ..
    } = lab.dropless(&arguments).within(&near).run();
    insist(code, &stdout, &stderr, words);
}

#[test]
fn rate_above_the_line_rate() {
    let mac = ["--to-mac", "02:00:00:00:00:09"];
    refused_on_the_wire(
        &[&mac[..], &["--rate", "20Gbps"]].concat(),
        &[
            "asks for 29.76 Mpps",
            "line rate is 14.88 Mpps at 64 bytes",
            "use --rate 100% or less",
        ],
    );
}

#[test]
fn frames_above_the_mtu() {
    let words = [
        "9000 is above",
        "its MTU of 1500",
        "use frames of 1518 bytes or less, or: ip link set near mtu 8982",
    ];
    refused_on_the_wire(&["--size", "9000"], &words);
}

#[test]
fn interface_that_is_down() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    near.ip(&["link", "set", "near", "down"]);
    let Finished {
        code, stdout, stderr, ..
    } = lab.dropless(&["send", "--port", "xdp:near"]).within(&near).run();
    insist(
        code,
        &stdout,
        &stderr,
        &["interface near is down", "fix: ip link set near up"],
    );
}

#[test]
fn interface_of_another_namespace() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, far) = wire(&lab);
    let Finished {
        code, stdout, stderr, ..
    } = lab
        .dropless(&["send", "--port", "packet:far"])
        .within(&near)
        .run();
    let fix = format!("fix: ip netns exec {} dropless", far.name());
    insist(
        code,
        &stdout,
        &stderr,
        &["far is in another network namespace", &fix],
    );
}

#[test]
fn sys_of_another_namespace() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    let path = format!("/run/netns/{}", near.name());
    // Both have a `lo`.
    let send = &["send", "--port", "packet:lo"][..];
    for arguments in [&["filter", "status"][..], &["filter", "stop", "near"], send] {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={path}"))
            .arg(env!("CARGO_BIN_EXE_dropless"));
        let output = command.args(arguments).output().expect("starting it");
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        insist(
            output.status.code(),
            &stdout,
            &stderr,
            &["/sys shows another network namespace", "mount -t sysfs none /sys"],
        );
    }
}

#[test]
fn more_queues_than_the_interface_has() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, _far) = wire(&lab);
    let port = ["send", "--port", "xdp:near,queues=9"];
    let Finished {
        code, stdout, stderr, ..
    } = lab.dropless(&port).within(&near).run();
    insist(
        code,
        &stdout,
        &stderr,
        &["near has 1 receive queue", "fix: ethtool -L near rx 9 tx 9"],
    );
}

#[test]
fn veth_that_af_xdp_cannot_take() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let near = lab.namespace("near");
    let ends = [
        "va0",
        "numrxqueues",
        "1",
        "numtxqueues",
        "1",
        "type",
        "veth",
        "peer",
        "name",
        "vb0",
    ];
    let queues = ["numrxqueues", "4", "numtxqueues", "4"];
    near.ip(&[&["link", "add"], &ends[..], &queues].concat());
    near.up("va0", &[]);
    near.up("vb0", &[]);
    near.wait_for_link("va0");
    let arguments = ["send", "--port", "xdp:va0", "--to-mac", "02:00:00:00:00:09"];
    let Finished {
        code, stdout, stderr, ..
    } = lab.dropless(&arguments).within(&near).run();
    insist(
        code,
        &stdout,
        &stderr,
        &["cannot open port xdp:va0", "must not have more transmit queues"],
    );
}

/// A machine with this PCI function in place of its own, and without free hugepages, seen by the program alone.
fn refused_with_card(driver: &str, words: &[&str]) {
    let Some(lab) = require(&[Need::Root, Need::Tool("unshare")]) else {
        return;
    };
    let device = lab.path("devices/0000:7b:00.0");
    let pages = lab.path("hugepages/hugepages-2048kB");
    for (folder, files) in [
        (
            &device,
            &[("class", "0x020000"), ("vendor", "0x1af4"), ("device", "0x1041")][..],
        ),
        (&pages, &[("nr_hugepages", "0"), ("free_hugepages", "0")]),
    ] {
        fs::create_dir_all(folder).expect("making a directory");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("writing a file");
        }
    }
    let target = Path::new("/sys/bus/pci/drivers").join(driver);
    std::os::unix::fs::symlink(target, device.join("driver")).expect("linking the driver");
    let script = "mount --bind devices /sys/bus/pci/devices
        for place in /sys/kernel/mm/hugepages /sys/devices/system/node/node*/hugepages; do
            [ ! -d $place ] || mount --bind hugepages $place
        done
        exec \"$0\" send --port pci:0000:7b:00.0";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, env!("CARGO_BIN_EXE_dropless")]);
    refused_by(command.current_dir(lab.directory()), words);
}

#[test]
fn card_without_hugepages() {
    let words = [
        "pci:0000:7b:00.0: it needs",
        "free huge pages",
        "0 MiB are free",
        "fix: echo ",
        "/nr_hugepages",
    ];
    refused_with_card("uio_pci_generic", &words);
}

#[test]
fn card_that_the_kernel_drives() {
    refused_with_card(
        "virtio-pci",
        &["it is bound to the kernel's driver virtio-pci", "fix: "],
    );
}
