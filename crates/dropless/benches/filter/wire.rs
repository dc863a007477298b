//! The virtual wire that frames come by, and what sends them: XDP frames that a program redirects onto it, from one core;
//! the thread of the far end's queue takes them on another, and nothing else does.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::unistd::{Pid, gettid};
use procfs_core::FromRead as _;
use procfs_core::process::Schedstat;

use generator::send;
pub use generator::{Ends, send_steadily, time};

use crate::frames::Frame;
use crate::support::{Lab, Namespace, until};

mod generator;

/// What the last frames may need.
const SETTLE: Duration = Duration::from_millis(100);

/// What came of a measurement on the wire.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Flood {
    /// Frames that the generator made.
    pub offered: u64,
    /// Such as the wire's ring had no room for.
    pub refused: u64,
    /// Such as the far end's thread took.
    pub handled: u64,
    /// Such as XDP dropped there.
    pub dropped_by_xdp: u64,
    /// Packets that the kernel delivered to somebody.
    pub delivered: u64,
    /// How long.
    pub seconds: f64,
    /// Of which the thread had its core.
    pub busy: f64,
}

impl Flood {
    /// Frames for each second that the filter's thread had its core.
    pub fn per_core(&self) -> f64 {
        self.handled as f64 / self.busy.max(1e-9)
    }

    /// Nanoseconds a frame takes of the core.
    pub fn ns(&self) -> f64 {
        1e9 / self.per_core()
    }

    /// The filter could do no more: frames were refused, and its thread had nothing but work but for the generator's pauses.
    pub fn is_filter_limit(&self) -> bool {
        self.refused * 20 > self.offered && self.busy > 0.7 * self.seconds
    }
}

/// Two namespaces, the wire between them, and the thread at its far end.
pub struct Wire {
    pub near: Namespace,
    pub far: Namespace,
    thread: i32,
    generator_core: usize,
    object: PathBuf,
}

impl Wire {
    /// Lays it: frames are made on one core, and filtered on the other.
    pub fn new(lab: &Lab, generator_core: usize, filter_core: usize) -> Result<Self, String> {
        let (near, far) = (lab.namespace("near"), lab.namespace("far"));
        near.veth("near0", &far, "far0");
        near.without_ipv6("near0");
        far.without_ipv6("far0");
        far.run("ethtool", &["-K", "far0", "gro", "on"]);
        near.up("near0", &[]);
        far.up("far0", &["198.18.0.1/15"]);
        // All frames are for this host, wherever they seem to come from.
        far.ip(&["route", "add", "local", "198.18.0.0/15", "dev", "far0"]);
        for name in ["all", "far0"] {
            far.run(
                "sh",
                &["-c", &format!("echo 0 >/proc/sys/net/ipv4/conf/{name}/rp_filter")],
            );
        }
        far.run("sh", &["-c", "echo 1 >/sys/class/net/far0/threaded"]);
        far.wait_for_link("far0");
        let mut thread = None;
        until(Duration::from_secs(2), || {
            thread = napi_thread();
            thread.is_some()
        });
        let thread = thread.ok_or("the far end's queue has no thread: the kernel knows no threaded NAPI")?;
        pin(Pid::from_raw(thread), filter_core)?;
        make_urgent(thread)?;
        Ok(Self {
            near,
            far,
            thread,
            generator_core,
            object: compile("generate.bpf.c")?,
        })
    }

    /// The far end's MAC address.
    pub fn mac(&self) -> [u8; 6] {
        self.far.mac_bytes("far0")
    }

    /// Sends these frames to a MAC address for so long, as fast as the generator makes them.
    pub fn flood(&self, frames: &[Frame], to: [u8; 6], lasts: Duration) -> Result<Flood, String> {
        self.paced(frames, to, (lasts, Duration::ZERO))
    }

    /// The same, one frame `every` so long.
    pub fn paced(
        &self,
        frames: &[Frame],
        to: [u8; 6],
        (lasts, every): (Duration, Duration),
    ) -> Result<Flood, String> {
        // Counted are all frames, from the first to the last: nothing is read while they go.
        let before = self.now();
        let (offered, took) = send(self, (frames, to), (lasts, every))?;
        std::thread::sleep(SETTLE);
        let after = self.now();
        let since = |at: usize| after[at].saturating_sub(before[at]);
        Ok(Flood {
            offered,
            refused: since(0),
            handled: since(1),
            dropped_by_xdp: since(2),
            delivered: since(3),
            seconds: took.as_secs_f64(),
            busy: since(4) as f64 / 1e9,
        })
    }

    /// All counters.
    fn now(&self) -> [u64; 5] {
        let ran = Schedstat::from_file(format!("/proc/{}/schedstat", self.thread));
        let far = statistics(&self.far, "far0");
        let near = statistics(&self.near, "near0");
        let of = |all: &BTreeMap<String, u64>, name: &str| all.get(name).copied().unwrap_or(0);
        [
            of(&near, "tx_queue_0_xdp_xmit_errors"),
            of(&far, "rx_queue_0_xdp_packets"),
            of(&far, "rx_queue_0_xdp_drops"),
            delivered(&self.far),
            ran.map_or(0, |ran| ran.sum_exec_runtime),
        ]
    }

    /// The program that is on the far end.
    pub fn program(&self) -> Result<u32, String> {
        let shown = self.far.ip(&["-d", "link", "show", "far0"]);
        let mut words = shown.split_whitespace().skip_while(|word| *word != "prog/xdp");
        let id = words.nth(2).and_then(|id| id.parse().ok());
        id.ok_or_else(|| "no XDP program is on the far end".into())
    }
}

/// The thread of a veth's queue, of which there is one at a time: tests and benchmarks take turns.
fn napi_thread() -> Option<i32> {
    let of = |id: i32| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    let all = host::Sys::at("/").processes().into_iter();
    all.filter_map(|id| id.parse().ok())
        .filter(|id| of(*id).starts_with("napi/far0"))
        .max()
}

/// First in, first out: nothing else runs there while it has work.
fn make_urgent(thread: i32) -> Result<(), String> {
    run("chrt", &["-f", "-p", "10", &thread.to_string()])
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

fn pin(thread: Pid, core: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(core)
        .and_then(|()| sched_setaffinity(thread, &set))
        .map_err(|error| format!("core {core}: {error}"))
}

fn enter(namespace: &str) -> Result<(), String> {
    let path = format!("/run/netns/{namespace}");
    let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| format!("{path}: {error}"))
}

/// What ethtool says of an interface.
fn statistics(namespace: &Namespace, interface: &str) -> BTreeMap<String, u64> {
    let shown = namespace.run("ethtool", &["-S", interface]);
    let lines = shown.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter_map(|(name, value)| Some((name.trim().to_owned(), value.trim().parse().ok()?)))
        .collect()
}

/// `InDelivers` of the namespace's IP.
fn delivered(namespace: &Namespace) -> u64 {
    let shown = namespace.run("cat", &["/proc/net/snmp"]);
    let mut lines = shown.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let both = names.split_whitespace().zip(values.split_whitespace());
    both.filter(|(name, _)| *name == "InDelivers")
        .find_map(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

/// Compiles a program of this folder.
pub fn compile(source: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/filter");
    let object = crate::page::target()
        .join("bench")
        .join(source)
        .with_extension("o");
    let made = object.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(|error| format!("{}: {error}", object.display()))?;
    let output = Command::new("clang")
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .arg("-c")
        .arg(folder.join(source))
        .arg("-o")
        .arg(&object)
        .output()
        .map_err(|error| format!("clang: {error}"))?;
    if !output.status.success() {
        return Err(format!("{source}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(object)
}

/// Loads one of them.
pub fn load(object: &Path) -> Result<Object, String> {
    let opened = ObjectBuilder::default().open_file(object);
    opened
        .and_then(libbpf_rs::OpenObject::load)
        .map_err(|error| format!("{}: {error}", object.display()))
}

/// Writes a value of a map.
pub fn put(object: &Object, map: &str, key: u32, value: &[u8]) -> Result<(), String> {
    let found = object.maps().find(|found| found.name() == map);
    let found = found.ok_or_else(|| format!("no map {map}"))?;
    found
        .update(&key.to_ne_bytes(), value, MapFlags::ANY)
        .map_err(|error| format!("{map}: {error}"))
}

/// Looks at what the far end has received, again and again, before anything else.
pub fn look_at(
    namespace: &str,
    core: usize,
    every: Duration,
    is_over: &AtomicBool,
) -> Result<Vec<(Instant, u64)>, String> {
    enter(namespace)?;
    pin(Pid::from_raw(0), core)?;
    make_urgent(gettid().as_raw())?;
    let mut looks = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("far0:"));
        let packets = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        looks.push((Instant::now(), packets.ok_or("far0 has no counters")?));
        std::thread::sleep(every);
    }
    Ok(looks)
}

impl Wire {
    /// Frames that the far end received, and of these dropped in XDP.
    pub fn received_and_dropped(&self) -> (u64, u64) {
        let all = statistics(&self.far, "far0");
        let of = |name: &str| all.get(name).copied().unwrap_or(0);
        (of("rx_queue_0_xdp_packets"), of("rx_queue_0_xdp_drops"))
    }

    /// Frames of a socket that found no room on the wire.
    pub fn refused(&self) -> u64 {
        let text = self
            .near
            .run("cat", &["/sys/class/net/near0/statistics/tx_dropped"]);
        text.trim().parse().unwrap_or(0)
    }
}

/// Runs `act` in a namespace, in a thread of its own.
pub fn within<T: Send>(
    namespace: &Namespace,
    act: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let name = namespace.name().to_owned();
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            enter(&name)?;
            act()
        });
        inside.join().map_err(|_| "a thread died".to_owned())?
    })
}
