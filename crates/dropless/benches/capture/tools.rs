//! The highest rate at which a tool captures to a file without losing a frame.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Serialize;

use crate::support::wire::Wire;
use crate::support::{Dropless, Lab, Need, Running, until};

/// Halvings of the range between what was lost and what was not.
const STEPS: u32 = 6;
/// How long a program may take to start, and to end.
const LIMIT: Duration = Duration::from_secs(30);
/// What a tool may need to take what is left in its buffers: tcpdump waits a second for a block of the kernel's to fill.
const SETTLE: Duration = Duration::from_millis(1500);
/// Where a search begins, packets a second.
const LOWEST: f64 = 20e3;

/// What the frames come over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// A virtual wire.
    Veth,
    /// Shared memory between processes.
    Memif,
}

/// A tool that captures to a file.
#[derive(Clone, Copy)]
pub struct Tool {
    /// Its name in the table.
    pub name: &'static str,
    /// Where from.
    pub link: Link,
    /// What it takes.
    pub needs: &'static [Need],
    /// Starts its programs; what is ended first comes last.
    start: fn(&Bed<'_>) -> Vec<Running>,
}

/// All of them, ours first of each link.
pub const TOOLS: [Tool; 7] = [
    Tool {
        name: "dropless capture, xdp:",
        link: Link::Veth,
        needs: &[Need::Namespaces],
        start: |bed| bed.dropless("xdp:far0"),
    },
    Tool {
        name: "dropless capture, packet:",
        link: Link::Veth,
        needs: &[Need::Namespaces],
        start: |bed| bed.dropless("packet:far0"),
    },
    Tool {
        name: "tcpdump (AF_PACKET v3)",
        link: Link::Veth,
        needs: &[Need::Namespaces, Need::Tool("tcpdump")],
        start: |bed| bed.listener("tcpdump -i far0 -n -s 0 -B 65536 -w FILE"),
    },
    Tool {
        name: "netsniff-ng",
        link: Link::Veth,
        needs: &[Need::Namespaces, Need::Tool("netsniff-ng")],
        start: |bed| bed.listener("netsniff-ng -i far0 -s --ring-size 64MiB -o FILE"),
    },
    Tool {
        name: "dpdk-dumpcap on testpmd, AF_XDP",
        link: Link::Veth,
        needs: &[
            Need::Namespaces,
            Need::Hugepages,
            Need::Tool("dpdk-dumpcap"),
            Need::Tool("dpdk-testpmd"),
        ],
        start: |bed| bed.dumpcap("net_af_xdp0,iface=far0"),
    },
    Tool {
        name: "dropless capture, memif:",
        link: Link::Memif,
        needs: &[Need::Processors(2)],
        start: |bed| bed.dropless(&format!("memif:{},server", bed.socket())),
    },
    Tool {
        name: "dpdk-dumpcap on testpmd, memif",
        link: Link::Memif,
        needs: &[
            Need::Hugepages,
            Need::Tool("dpdk-dumpcap"),
            Need::Tool("dpdk-testpmd"),
        ],
        start: |bed| {
            bed.dumpcap(&format!(
                "net_memif0,role=server,socket={},socket-abstract=no",
                bed.socket()
            ))
        },
    },
];

/// Where one trial runs.
struct Bed<'l> {
    lab: &'l Lab,
    wire: Option<Wire>,
    file: PathBuf,
    /// Cores of the sender, and of the tool.
    cores: &'l [String; 2],
}

/// What one trial came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trial {
    /// Packets a second, as they were really sent.
    pub rate: f64,
    /// Packets sent.
    pub sent: u64,
    /// Such as are not in the file.
    pub lost: u64,
}

/// What a tool reaches.
#[derive(Clone, Debug, Serialize)]
pub struct Reached {
    /// The highest rate of a trial without loss.
    pub lossless: Option<f64>,
    /// The sender could do no more: the tool can perhaps.
    pub is_sender: bool,
    /// The trial at full rate.
    pub flood: Trial,
}

/// Looks for the highest rate without loss at this frame size (with FCS), with or without hugepages for the sender, on these
/// cores of the sender and the tool.
pub fn search(lab: &Lab, tool: &Tool, frames: (usize, bool), cores: &[String; 2]) -> Reached {
    let trial = |rate| trial(lab, tool, frames, rate, cores);
    let flood = trial(None);
    let mut reached = Reached {
        lossless: (flood.lost == 0).then_some(flood.rate),
        is_sender: flood.lost == 0,
        flood,
    };
    let (mut good, mut bad) = (LOWEST, flood.rate);
    for _ in 0..STEPS {
        if reached.is_sender {
            break;
        }
        let rate = (good * bad).sqrt();
        let at = trial(Some(rate));
        if at.lost == 0 {
            good = rate;
            reached.lossless = Some(reached.lossless.unwrap_or(0.0).max(at.rate));
        } else {
            bad = rate;
        }
    }
    reached
}

/// Sends for half a second, and counts what is in the file.
fn trial(
    lab: &Lab,
    tool: &Tool,
    (size, huge): (usize, bool),
    rate: Option<f64>,
    cores: &[String; 2],
) -> Trial {
    let wire = (tool.link == Link::Veth).then(|| Wire::between(lab, 1));
    let bed = Bed {
        lab,
        wire,
        file: lab.path("captured"),
        cores,
    };
    let needs_pages = tool.needs.iter().any(|need| matches!(need, Need::Hugepages));
    let _pages = needs_pages.then(|| Hugetlbfs::mount(lab.path("huge")));
    let mut programs = (tool.start)(&bed);
    let sent = bed.send(size, rate, huge);
    std::thread::sleep(SETTLE);
    while let Some(program) = programs.pop() {
        program.signal(Signal::SIGINT);
        let ended = program.wait(LIMIT);
        // testpmd may crash once dpdk-dumpcap has left it: the file is whole by then.
        let ours = tool.name.starts_with("dropless");
        assert!(!ours || ended.signal.is_none_or(|signal| signal == 2), "{ended}");
    }
    let captured = count(&bed.file);
    let _ = std::fs::remove_file(&bed.file);
    let packets = sent["sent"]
        .as_u64()
        .unwrap_or_else(|| panic!("dropless send: {sent}"));
    Trial {
        rate: sent["rate_tx_pps"].as_f64().expect("a rate"),
        sent: packets,
        lost: packets.saturating_sub(captured),
    }
}

/// The mempool drivers that a program is linked with, for its loader.
fn pool_drivers_of(program: &str) -> String {
    let script = format!("ldd $(command -v {program})");
    let output = Command::new("sh").args(["-c", &script]).output().expect("ldd");
    let text = String::from_utf8_lossy(&output.stdout);
    let drivers = text.lines().filter(|line| line.contains("librte_mempool_"));
    let paths = drivers.filter_map(|line| line.split_whitespace().nth(2));
    paths.collect::<Vec<_>>().join(":")
}

/// Packets in a file.
fn count(file: &Path) -> u64 {
    let output = Command::new("capinfos")
        .args(["-rcMT"])
        .arg(file)
        .output()
        .expect("capinfos");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .last()
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| panic!("capinfos: {output:?}"))
}

/// Hugepages as files, by which DPDK's processes share them; gone when dropped.
struct Hugetlbfs(PathBuf);

impl Hugetlbfs {
    fn mount(path: PathBuf) -> Self {
        let made = std::fs::create_dir_all(&path);
        made.expect("a directory to mount at");
        let mounted = Command::new("mount")
            .args(["-t", "hugetlbfs", "nodev"])
            .arg(&path)
            .status();
        assert!(mounted.expect("mount").success());
        Self(path)
    }
}

impl Drop for Hugetlbfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

impl Bed<'_> {
    fn socket(&self) -> String {
        self.lab.path("memif.sock").display().to_string()
    }

    fn within(&self, dropless: Dropless, is_near: bool) -> Dropless {
        match &self.wire {
            Some(wire) if is_near => dropless.within(&wire.near),
            Some(wire) => dropless.within(&wire.far),
            None => dropless,
        }
    }

    fn send(&self, size: usize, rate: Option<f64>, huge: bool) -> serde_json::Value {
        let port = match &self.wire {
            Some(_) => "xdp:near0".to_owned(),
            None => format!("memif:{}", self.socket()),
        };
        let rate = rate.map_or("max".to_owned(), |rate| format!("{rate:.0}pps"));
        let (size, to) = (size.to_string(), self.to());
        let arguments = [
            "send",
            "--json",
            "--quiet",
            "--tx-only",
            "--duration",
            "500ms",
            "--cores",
            &self.cores[0],
            "--port",
            &port,
            "--rate",
            &rate,
            "--size",
            &size,
            "--to-mac",
            &to,
        ];
        let sender = self.within(self.lab.dropless(&arguments), true);
        let sender = if huge { sender } else { sender.arg("--no-huge") };
        sender.run().json()
    }

    /// The MAC address of the far end.
    fn to(&self) -> String {
        let wire = self.wire.as_ref();
        wire.map_or("02:00:00:00:00:02".into(), |wire| wire.far.mac("far0"))
    }

    fn dropless(&self, port: &str) -> Vec<Running> {
        let file = self.file.display().to_string();
        let arguments = [
            "capture",
            "--port",
            port,
            "--to",
            &file,
            "--cores",
            &self.cores[1],
        ];
        let mut running = self.within(self.lab.dropless(&arguments), false).spawn();
        if self.wire.is_some() {
            running.wait_for("capturing from", LIMIT);
        } else {
            // It waits for its peer.
            assert!(until(LIMIT, || Path::new(&self.socket()).exists()), "{running:?}");
        }
        vec![running]
    }

    /// A tool that takes packets from the kernel.
    fn listener(&self, command: &str) -> Vec<Running> {
        let wire = self.wire.as_ref().expect("a wire");
        let command = command.replace("FILE", &self.file.display().to_string());
        let words: Vec<&str> = ["-c", &self.cores[1]]
            .into_iter()
            .chain(command.split_whitespace())
            .collect();
        let running = wire.far.spawn("taskset", &words);
        let listens = || wire.far.run("cat", &["/proc/net/packet"]).lines().count() > 1;
        assert!(until(LIMIT, listens), "{running:?}");
        // Its buffers are mapped after the socket is there.
        std::thread::sleep(Duration::from_millis(200));
        vec![running]
    }

    /// testpmd takes the frames and throws them away; dpdk-dumpcap has it copy them.
    fn dumpcap(&self, device: &str) -> Vec<Running> {
        let prefix = format!("bench-{}", std::process::id());
        let lcores = format!("0@{},1@{}", self.cores[0], self.cores[1]);
        let pages = self.lab.path("huge").display().to_string();
        let testpmd = [
            "dpdk-testpmd",
            "--no-pci",
            "--huge-dir",
            &pages,
            "--file-prefix",
            &prefix,
            "--lcores",
            &lcores,
            "--vdev",
            device,
            "--",
            "--nb-cores=1",
            "--forward-mode=rxonly",
            "--total-num-mbufs=16384",
            "--stats-period=1",
        ];
        let mut running = self.spawn(&testpmd);
        running.wait_for("statistics", LIMIT);
        let file = self.file.display().to_string();
        let port = if self.wire.is_some() {
            "net_af_xdp0"
        } else {
            "net_memif0"
        };
        let dumpcap = [
            "dpdk-dumpcap",
            "--file-prefix",
            &prefix,
            "-i",
            port,
            "-q",
            "-w",
            &file,
        ];
        // Processes of DPDK know a pool's driver by its number, which goes by the order of loading. testpmd is linked
        // with one that dpdk-dumpcap loads later: without this its copies come from a pool of another driver, or none.
        let drivers = pool_drivers_of("dpdk-testpmd");
        let preload = format!("LD_PRELOAD={drivers}");
        let dumpcap: Vec<&str> = ["env", &preload].into_iter().chain(dumpcap).collect();
        let dumpcap = self.spawn(&dumpcap);
        assert!(until(LIMIT, || self.file.exists()), "{dumpcap:?}");
        std::thread::sleep(Duration::from_millis(500));
        vec![running, dumpcap]
    }

    fn spawn(&self, words: &[&str]) -> Running {
        match &self.wire {
            Some(wire) => wire.far.spawn(words[0], &words[1..]),
            None => self.lab.shell(&format!("exec {}", words.join(" "))),
        }
    }
}
