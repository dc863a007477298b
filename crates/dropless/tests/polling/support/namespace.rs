//! Network namespaces and the virtual wires between them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use host::MacAddress;
use nix::sched::{CloneFlags, setns};

use super::proc::is_alive;
use super::process::{Running, command, until};

/// A network namespace of its own name, deleted with all its interfaces when dropped.
pub struct Namespace {
    name: String,
}

impl Namespace {
    pub(super) fn new(name: &str) -> Self {
        ip(&["netns", "add", name]);
        let namespace = Self { name: name.into() };
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ip ARGUMENTS` in this namespace; returns what it printed.
    pub fn ip(&self, arguments: &[&str]) -> String {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    /// The same of many lines: to start a program takes longer than what it does.
    fn batch(&self, lines: &str) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(lines.as_bytes())
            .and_then(|()| file.rewind())
            .expect("its lines");
        output(
            Command::new("ip")
                .args(["-n", &self.name, "-batch", "-"])
                .stdin(file),
        );
    }

    /// Runs a program here to its end; returns what it printed, and fails the test when it fails.
    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = command(program, Some(&self.name));
        output(command.args(arguments))
    }

    /// Starts a program here, such as an echo server. It dies with the thread that calls this.
    pub fn spawn(&self, program: &str, arguments: &[&str]) -> Running {
        let mut command = command(program, Some(&self.name));
        command.args(arguments);
        Running::spawn(command)
    }

    /// Lays a virtual wire between an interface here and one in another namespace. Both are down.
    pub fn veth(&self, interface: &str, other: &Self, other_interface: &str) {
        self.veth_with_queues(interface, other, other_interface, 1);
    }

    /// The same with several receive and transmit queues at each end (`AF_XDP` binds to one queue each).
    pub fn veth_with_queues(&self, interface: &str, other: &Self, other_interface: &str, queues: u32) {
        let queues = queues.to_string();
        let queues = ["numtxqueues", &queues, "numrxqueues", &queues];
        let near = ["link", "add", interface, "netns", &self.name];
        let far = ["peer", "name", other_interface, "netns", &other.name];
        ip(&[&near[..], &queues, &["type", "veth"], &far, &queues].concat());
    }

    /// Gives the interface its addresses (`10.0.0.1/24`, `fd00::1/64`) and sets it up; they serve at once.
    pub fn up(&self, interface: &str, addresses: &[&str]) {
        // Duplicate address detection would keep an IPv6 address from serving for a second.
        self.set_ipv6(interface, "accept_dad", "0");
        let added = addresses.iter().map(|address| {
            let nodad = if address.contains(':') { "nodad" } else { "" };
            format!("address add {address} dev {interface} {nodad}\n")
        });
        let up = format!("link set {interface} up\n");
        self.batch(&added.chain([up]).collect::<String>());
    }

    /// The kernel says nothing of its own by IPv6 on the interface.
    pub fn without_ipv6(&self, interface: &str) {
        self.set_ipv6(interface, "disable_ipv6", "1");
    }

    /// Writes one of the interface's settings of IPv6, where this kernel has any. `/proc/sys/net` is that of whoever looks: a thread
    /// that has come here does it in a hundredth of the time that a shell takes.
    fn set_ipv6(&self, interface: &str, key: &str, value: &str) {
        let key = format!("/proc/sys/net/ipv6/conf/{interface}/{key}");
        self.inside(|| {
            if Path::new(&key).exists() {
                fs::write(&key, value).expect("a setting of IPv6");
            }
        });
    }

    /// Does it in the namespace, by a thread of its own: no other comes along.
    pub fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        let namespace = Path::new("/run/netns").join(&self.name);
        let thread = || {
            let namespace = File::open(namespace).expect("the namespace");
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("going into the namespace");
            what()
        };
        thread::scope(|scope| scope.spawn(thread).join()).expect("the thread inside")
    }

    /// Waits until the interface has its carrier and none of its addresses is still being set up.
    pub fn wait_for_link(&self, interface: &str) {
        let up = until(Duration::from_secs(5), || {
            let shown = self.ip(&["address", "show", interface]);
            shown.contains("state UP") && !shown.contains(" tentative")
        });
        assert!(up, "{interface} in {} never came up", self.name);
    }

    /// Makes the kernel write real checksums: over a virtual wire it leaves them to hardware that is not there.
    pub fn without_offload(&self, interface: &str) {
        self.run("ethtool", &["-K", interface, "tx", "off"]);
    }

    /// The interface's MAC address.
    pub fn mac(&self, interface: &str) -> String {
        let shown = self.ip(&["-o", "link", "show", interface]);
        let mut words = shown.split_whitespace().skip_while(|word| *word != "link/ether");
        words
            .nth(1)
            .unwrap_or_else(|| panic!("no MAC address in {shown:?}"))
            .into()
    }

    /// The same as a frame has it.
    pub fn mac_bytes(&self, interface: &str) -> [u8; 6] {
        let mac: MacAddress = self.mac(interface).parse().expect("a MAC address");
        mac.0
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).output();
    }
}

/// The names of all namespaces of this machine.
pub fn namespaces() -> BTreeSet<String> {
    // The directory comes with the first of them.
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Deletes what tests and comparisons left that were killed: no destructor of theirs ran.
pub(super) fn sweep() {
    for name in namespaces() {
        if process_of(&name).is_some_and(|process| !is_alive(process)) {
            let _ = Command::new("ip").args(["netns", "delete", &name]).output();
        }
    }
}

/// The process that a name of ours has in it: a test's, or a comparison's.
fn process_of(namespace: &str) -> Option<u32> {
    let rest = namespace.strip_prefix("dropless-")?;
    let rest = rest.strip_prefix("compare-").unwrap_or(rest);
    rest.split_once('-')?.0.parse().ok()
}

fn ip(arguments: &[&str]) -> String {
    output(Command::new("ip").args(arguments))
}

/// What the command printed; fails the test when it fails.
fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{stdout}{stderr}",
        output.status
    );
    stdout
}
