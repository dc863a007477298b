//! `dpdk-testpmd`, driven through its prompt: the judge that we did not write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Namespace;
use super::process::{Finished, Running, command, until};

const PROMPT: &str = "testpmd> ";
const LIMIT: Duration = Duration::from_secs(30);

/// A `dpdk-testpmd` command line, not started yet.
pub struct Builder {
    directory: PathBuf,
    prefix: String,
    eal: Vec<String>,
    app: Vec<String>,
    within: Option<String>,
    huge: bool,
    worker: Option<String>,
}

impl Builder {
    pub(super) fn new(directory: &Path, prefix: &str) -> Self {
        Self {
            directory: directory.to_path_buf(),
            prefix: prefix.into(),
            eal: Vec::new(),
            app: Vec::new(),
            within: None,
            huge: false,
            worker: None,
        }
    }

    /// Packets on hugepages, for a fair comparison with a program that has them.
    #[must_use]
    pub fn huge(mut self) -> Self {
        self.huge = true;
        self
    }

    /// Pins the forwarding thread to a core.
    #[must_use]
    pub fn worker_on(mut self, core: &str) -> Self {
        self.worker = Some(core.into());
        self
    }

    /// Adds an EAL argument, such as `--vdev=net_ring0`.
    #[must_use]
    pub fn eal(mut self, argument: impl Into<String>) -> Self {
        self.eal.push(argument.into());
        self
    }

    /// Adds an argument of testpmd itself, such as `--forward-mode=macswap`.
    #[must_use]
    pub fn app(mut self, argument: impl Into<String>) -> Self {
        self.app.push(argument.into());
        self
    }

    /// Runs it in a network namespace.
    #[must_use]
    pub fn within(mut self, namespace: &Namespace) -> Self {
        self.within = Some(namespace.name().into());
        self
    }

    /// Starts it without PCI devices, and without hugepages unless asked, and waits for its first prompt. Nothing is forwarded yet.
    pub fn open(&self) -> Testpmd {
        // Through a pipe its output would come in blocks of 4 KiB.
        let mut command = command("stdbuf", self.within.as_deref());
        command.args(["-o0", "dpdk-testpmd", "--no-pci", "--no-telemetry"]);
        let memory: &[&str] = if self.huge {
            &["--in-memory", "--single-file-segments"]
        } else {
            &["--no-huge", "-m", "256"]
        };
        command.args(memory);
        command
            .args([
                "--file-prefix",
                &self.prefix,
                "--lcores",
                &cores(self.worker.as_deref()),
            ])
            .args(&self.eal);
        command
            .args(["--", "-i", "--nb-cores=1", "--total-num-mbufs=16384"])
            .args(&self.app);
        command.current_dir(&self.directory);
        let mut testpmd = Testpmd {
            process: Running::spawn(command),
            _folder: Folder(Path::new("/var/run/dpdk").join(&self.prefix)),
        };
        testpmd.wait_for_prompt(0);
        testpmd
    }
}

/// The prompt's logical core may run on any processor, and so may the worker's unless it is pinned: the scheduler keeps
/// them off the core that a test measures.
fn cores(worker: Option<&str>) -> String {
    let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    let any = format!("(0-{last})");
    format!("0@{any},1@{}", worker.unwrap_or(&any))
}

/// A running `dpdk-testpmd` that waits at its prompt.
pub struct Testpmd {
    process: Running,
    // Fields drop in order: it is gone by then.
    _folder: Folder,
}

/// What DPDK leaves of a process, taken away when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What `show port stats` counts for one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    pub rx_packets: u64,
    pub rx_missed: u64,
    pub rx_bytes: u64,
    pub rx_errors: u64,
    pub rx_nombuf: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub tx_bytes: u64,
}

impl Testpmd {
    /// Types a command, waits for the next prompt and returns what was printed between.
    pub fn command(&mut self, line: &str) -> String {
        let before = self.process.stdout().len();
        self.process.write(&format!("{line}\n"));
        self.wait_for_prompt(before)
    }

    /// Begins to forward (`start`).
    pub fn start(&mut self) {
        self.start_by("start");
    }

    /// Begins to forward by this command.
    pub fn start_by(&mut self, command: &str) {
        let said = self.command(command);
        assert!(
            said.contains("packet forwarding"),
            "testpmd did not start: {said}"
        );
    }

    /// Ends to forward (`stop`); returns its own report, with what it dropped.
    pub fn stop(&mut self) -> String {
        let said = self.command("stop");
        assert!(said.contains("Done"), "testpmd did not stop: {said}");
        said
    }

    /// The counters of every port (`show port stats all`).
    pub fn stats(&mut self) -> BTreeMap<u16, PortStats> {
        let said = self.command("show port stats all");
        let stats = parse_stats(&said);
        assert!(!stats.is_empty(), "no port in {said}");
        stats
    }

    /// Ends it in order and checks that it ended well.
    pub fn quit(mut self) -> Finished {
        self.process.write("quit\n");
        let finished = self.process.wait(LIMIT);
        assert_eq!(finished.code, Some(0), "{finished}");
        finished
    }

    /// The process itself, to look at or to kill.
    pub fn process(&mut self) -> &mut Running {
        &mut self.process
    }

    /// Waits for a prompt after the first `from` bytes of output; returns what came after them.
    fn wait_for_prompt(&mut self, from: usize) -> String {
        let mut said = String::new();
        let found = until(LIMIT, || {
            said = self.process.stdout()[from..].to_string();
            said.contains(PROMPT) || !self.process.is_alive()
        });
        assert!(
            found && said.contains(PROMPT),
            "no prompt from {:?}",
            self.process
        );
        said
    }
}

/// Reads the blocks "NIC statistics for port N" with their "NAME: value" pairs.
pub fn parse_stats(text: &str) -> BTreeMap<u16, PortStats> {
    let mut ports = BTreeMap::new();
    let mut port = None;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("NIC statistics for port ") {
            port = rest
                .split_whitespace()
                .next()
                .and_then(|number| number.parse().ok());
            continue;
        }
        let Some(port) = port else { continue };
        let stats: &mut PortStats = ports.entry(port).or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            if let (Some(name), Ok(value)) = (pair[0].strip_suffix(':'), pair[1].parse()) {
                stats.set(name, value);
            }
        }
    }
    ports
}

impl PortStats {
    fn set(&mut self, name: &str, value: u64) {
        let field = match name {
            "RX-packets" => &mut self.rx_packets,
            "RX-missed" => &mut self.rx_missed,
            "RX-bytes" => &mut self.rx_bytes,
            "RX-errors" => &mut self.rx_errors,
            "RX-nombuf" => &mut self.rx_nombuf,
            "TX-packets" => &mut self.tx_packets,
            "TX-errors" => &mut self.tx_errors,
            "TX-bytes" => &mut self.tx_bytes,
            _ => return,
        };
        *field = value;
    }
}
