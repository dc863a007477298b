//! A service manager hears what a run does, at a socket such as systemd's: nothing of systemd is needed.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use crate::support::{Dropless, Lab, Need, require, until};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(30);
/// From one sign of life to the next.
const PATIENCE_US: &str = "500000";

/// The socket of a service manager, and what it was told.
struct Manager {
    socket: UnixDatagram,
    path: String,
    told: Vec<String>,
}

impl Manager {
    fn new(lab: &Lab) -> Self {
        let path = lab.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let path = path.to_str().unwrap().to_owned();
        Self {
            socket,
            path,
            told: Vec::new(),
        }
    }

    /// A command that it starts.
    fn starts(&self, command: Dropless) -> Dropless {
        command
            .env("NOTIFY_SOCKET", &self.path)
            .env("WATCHDOG_USEC", PATIENCE_US)
    }

    /// Takes what has come.
    fn listen(&mut self) {
        let mut message = [0; 4096];
        loop {
            match self.socket.recv(&mut message) {
                Ok(len) => {
                    let text = String::from_utf8_lossy(&message[..len]).into_owned();
                    self.told.extend(text.lines().map(ToOwned::to_owned));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn count(&mut self, line: &str) -> usize {
        self.listen();
        self.told.iter().filter(|told| *told == line).count()
    }

    fn hears(&mut self, line: &str, times: usize) {
        assert!(until(LIMIT, || self.count(line) >= times), "{:?}", self.told);
    }

    /// Waits until it is told that something is wrong, and forgets what was before.
    fn hears_of_trouble(&mut self) {
        let is_trouble = |line: &String| line.contains("no packet") || line.contains("no link");
        let heard = until(LIMIT, || {
            self.listen();
            let newest = self.told.iter().rfind(|line| line.starts_with("STATUS="));
            newest.is_some_and(is_trouble)
        });
        assert!(heard, "{:?}", self.told);
        let last = self.told.iter().rposition(is_trouble).unwrap();
        self.told.drain(..=last);
    }
}

#[test]
fn signs_of_life_go_with_the_packets() {
    let Some(lab) = require(&[]) else { return };
    let mut manager = Manager::new(&lab);
    let reflect = ["reflect", "--no-huge", "--no-doctor", "--quiet", "--json"];
    let reflect = [&reflect[..], &["--port", "memif:s.sock,server"]].concat();
    let reflector = manager.starts(lab.dropless(&reflect)).spawn();
    manager.hears("READY=1", 1);
    // Several times what a manager would wait for.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(manager.count("WATCHDOG=1"), 0, "it polls, and nothing moves");

    let send = [
        "send",
        "--no-huge",
        "--no-doctor",
        "--quiet",
        "--json",
        "--port",
        "memif:s.sock",
        "--rate",
        "2kpps",
    ];
    let ready = lab.dropless(&[&send[..], &["--count", "1k"]].concat()).run();
    assert_eq!(ready.number("received"), 1000, "it was ready: {ready}");
    let endless = [&send[..], &["--duration", "120s"]].concat();
    let sender = lab.dropless(&endless).spawn();
    manager.hears("STATUS=packets move", 1);
    let before = manager.count("WATCHDOG=1");
    manager.hears("WATCHDOG=1", before + 3);

    sender.kill();
    manager.hears_of_trouble();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(manager.count("WATCHDOG=1"), 0, "nothing moves any more");
    let sender = lab.dropless(&endless).spawn();
    manager.hears("WATCHDOG=1", 2);

    reflector.signal(Signal::SIGTERM);
    let ended = reflector.wait(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(manager.count("STOPPING=1"), 1, "{:?}", manager.told);
    let stopping = manager.told.iter().position(|line| line == "STOPPING=1").unwrap();
    assert!(
        manager.told[stopping..]
            .iter()
            .all(|line| line != "WATCHDOG=1" && line != "READY=1"),
        "{:?}",
        manager.told
    );
    drop(sender);
}

/// What systemd has to say of the units, with this program in the place of the installed one.
#[test]
fn the_units_are_understood() {
    let Some(lab) = require(&[Need::Tool("systemd-analyze")]) else {
        return;
    };
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    for (name, command) in [
        ("reflect", "reflect"),
        ("forward", "forward"),
        ("filter", "filter run"),
        ("guard", "guard"),
    ] {
        let unit = std::fs::read_to_string(units.join(format!("dropless-{name}@.service"))).unwrap();
        assert!(unit.contains(&format!("ExecStart=/usr/bin/dropless {command} ")));
        let unit = unit.replace("/usr/bin/dropless", env!("CARGO_BIN_EXE_dropless"));
        let name = format!("./dropless-{name}@x.service");
        std::fs::write(lab.path(&name), unit).unwrap();
        let mut verify = std::process::Command::new("systemd-analyze");
        let verified = verify
            .args(["verify", &name])
            .current_dir(lab.directory())
            .output();
        let verified = verified.unwrap();
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && said.is_empty(), "{said}");
    }
}

#[test]
fn what_does_not_start_was_never_ready() {
    let Some(lab) = require(&[]) else { return };
    let mut manager = Manager::new(&lab);
    let refused = ["reflect", "--no-huge", "--port", "packet:nosuch0"];
    let refused = manager.starts(lab.dropless(&refused)).run();
    assert_eq!(refused.code, Some(2), "{refused}");
    assert_eq!((manager.count("READY=1"), manager.count("STOPPING=1")), (0, 1));
}

#[test]
fn a_trial_leaves_it_to_who_started_it() {
    let Some(lab) = require(&[]) else { return };
    let mut manager = Manager::new(&lab);
    let send = [
        "send",
        "--no-huge",
        "--no-doctor",
        "--json",
        "--port",
        "ring",
        "--rate",
        "2kpps",
        "--count",
        "1k",
    ];
    let command = || manager.starts(lab.dropless(&send));
    let parent = std::process::id().to_string();
    let (trial, own) = (command().env("DROPLESS_PARENT", &parent), command());
    assert_eq!(trial.run().number("received"), 1000);
    manager.listen();
    assert_eq!(manager.told, [""; 0]);
    assert_eq!(own.run().number("received"), 1000);
    assert_eq!((manager.count("READY=1"), manager.count("STOPPING=1")), (1, 1));
}
