//! Files, sockets and interfaces that are missing, taken, foreign or not ours to write.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixListener;
use std::process::Command;

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use tempfile::TempDir;

use super::{refused, refused_by, refused_in};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn missing_interface() {
    refused(
        &["send", "--port", "packet:nosuchif0"],
        &["no interface is called nosuchif0", "fix: "],
    );
}

#[test]
fn interface_almost_right() {
    refused(
        &["send", "--port", "packet:l"],
        &["no interface is called l ", "fix: write packet:lo"],
    );
}

#[test]
fn mac_that_nobody_has() {
    refused(
        &["send", "--port", "mac:02:00:00:de:ad:99"],
        &["no device has the address", "fix: "],
    );
}

#[test]
fn pci_address_without_a_device() {
    refused(
        &["send", "--port", "pci:ffff:ff:1f.7"],
        &["no such PCI device", "choose from: dropless ports"],
    );
}

#[test]
fn dpdk_driver_that_does_not_exist() {
    refused(
        &["send", "--port", "vdev:net_bogus0"],
        &["no installed DPDK driver is called net_bogus", "choose from: "],
    );
}

#[test]
fn tap_name_that_an_interface_has() {
    refused(
        &["send", "--port", "tap:lo"],
        &[
            "an interface called lo exists",
            "choose another name, such as tap:dropless0",
        ],
    );
}

#[test]
fn memif_socket_that_is_served() {
    let directory = directory();
    let path = directory.path().join("m.sock");
    let server = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).expect("a socket");
    bind(server.as_raw_fd(), &UnixAddr::new(&path).expect("an address")).expect("binding it");
    listen(&server, Backlog::new(1).expect("a backlog")).expect("listening");
    let port = format!("memif:{},server", path.display());
    refused(
        &["reflect", "--port", &port],
        &["another process already serves", "choose another path"],
    );
}

#[test]
fn vhost_socket_that_is_served() {
    let directory = directory();
    let path = directory.path().join("v.sock");
    let _server = UnixListener::bind(&path).expect("a server");
    let port = format!("vhost:{}", path.display());
    refused(
        &["reflect", "--port", &port],
        &["another process already serves", "choose another path"],
    );
}

#[test]
fn socket_path_that_is_a_file() {
    let directory = directory();
    let path = directory.path().join("file");
    fs::write(&path, "").expect("writing a file");
    let port = format!("memif:{}", path.display());
    refused(
        &["send", "--port", &port],
        &["exists and is not a socket", "choose another path"],
    );
}

#[test]
fn virtio_user_without_a_server() {
    let port = "virtio-user:/nonexistent.sock";
    refused(
        &["send", "--port", port],
        &[
            "no process serves",
            "fix: start the other end first",
            "reflect --port vhost:",
        ],
    );
}

#[test]
fn socket_in_a_directory_that_does_not_exist() {
    let port = "memif:/nonexistent/x.sock,server";
    refused(
        &["send", "--port", port],
        &[
            "directory /nonexistent does not exist",
            "fix: mkdir -p /nonexistent",
        ],
    );
}

#[test]
fn capture_that_does_not_exist() {
    refused(
        &["send", "--port", "pcap:/nonexistent.pcap"],
        &["cannot be read", "fix: record one"],
    );
}

#[test]
fn capture_that_is_none() {
    let directory = directory();
    fs::write(directory.path().join("x.pcap"), "not a capture at all").expect("writing a file");
    refused_in(
        directory.path(),
        &["send", "--port", "pcap:x.pcap"],
        &["is not a pcap file", "fix: name a pcap"],
    );
}

/// What is read would be emptied before its first packet.
#[test]
fn capture_that_would_be_written_over() {
    let directory = directory();
    let path = |name: &str| directory.path().join(name);
    let bytes = [&[0xd4, 0xc3, 0xb2, 0xa1][..], &[0; 16], &[1, 0, 0, 0], &[0; 16]].concat();
    fs::write(path("x.pcap"), &bytes).expect("writing a file");
    fs::hard_link(path("x.pcap"), path("y.pcap")).expect("a second name");
    let why = "would write over the capture";
    for arguments in [
        &["capture", "--port", "pcap:x.pcap", "--to", "y.pcap"][..],
        &["replay", "x.pcap", "--port", "pcap:-,./y.pcap"],
    ] {
        let words = if arguments[0] == "replay" {
            why
        } else {
            "is a file of port"
        };
        refused_in(directory.path(), arguments, &[words, "write to another"]);
    }
    let mut stdin = Command::new(env!("CARGO_BIN_EXE_dropless"));
    stdin.args(["replay", "-", "--port", "pcap:-,y.pcap"]);
    stdin.stdin(fs::File::open(path("x.pcap")).expect("opening it"));
    refused_by(stdin.current_dir(directory.path()), &[why, "write to another"]);
    let mut stdout = Command::new(env!("CARGO_BIN_EXE_dropless"));
    stdout.args(["capture", "--port", "pcap:x.pcap", "--stdout"]);
    let appended = fs::File::options().append(true).open(path("y.pcap"));
    stdout.stdout(appended.expect("opening it"));
    refused_by(
        stdout.current_dir(directory.path()),
        &["is a file of port", "write to another"],
    );
    assert_eq!(fs::read(path("x.pcap")).expect("reading it"), bytes);
}

#[test]
fn run_directory_below_a_file() {
    let directory = directory();
    fs::write(directory.path().join("runs"), "").expect("writing a file");
    refused_in(
        directory.path(),
        &["send", "--count", "1"],
        &["cannot make a run directory in runs", "a file is in the way"],
    );
}

#[test]
fn run_directory_where_none_can_be() {
    refused(
        &["send", "--count", "1", "--runs", "/proc/runs"],
        &["/proc/runs", "fix: name a directory"],
    );
}

#[test]
fn plan_that_does_not_exist() {
    refused(
        &["send", "--plan", "/nonexistent.json"],
        &["--plan /nonexistent.json", "name the plan.json of a"],
    );
}

#[test]
fn plan_that_is_none() {
    let directory = directory();
    for (text, word) in [
        ("", "not the plan of a send run"),
        ("{}", "not the plan of a send run"),
        (
            "{\"version\": 1, \"command\": \"send\"}",
            "not the plan of a send run",
        ),
        (
            "{\"version\": 1, \"command\": \"reflect\"}",
            "the plan of a reflect run",
        ),
    ] {
        fs::write(directory.path().join("p.json"), text).expect("writing a file");
        refused_in(
            directory.path(),
            &["send", "--plan", "p.json"],
            &[word, "name the plan.json of a"],
        );
    }
}

#[test]
fn plan_of_a_newer_version() {
    let directory = directory();
    fs::write(
        directory.path().join("p.json"),
        "{\"version\": 99, \"command\": \"send\", \"new\": []}",
    )
    .expect("writing");
    refused_in(
        directory.path(),
        &["send", "--plan", "p.json"],
        &["has version 99", "use a newer dropless"],
    );
}
