//! The virtual wire that frames come by, and what sends them: XDP frames that a program redirects onto it, from one core;
//! the thread of the far end's queue takes them on another, and nothing else does.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder, Program, ProgramInput, ProgramMut};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::sys::signal::SigSet;
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockType};
use nix::unistd::{Pid, gettid};

use crate::frames::{FRAMES, Frame};
use crate::support::{Lab, Namespace, until};

/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const LIVE: u32 = 1 << 1;
/// Frames a call, which takes twenty milliseconds besides.
const A_CALL: u32 = 1 << 19;
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
        let mac = self.far.mac("far0");
        let mut bytes = [0; 6];
        for (byte, text) in bytes.iter_mut().zip(mac.split(':')) {
            *byte = u8::from_str_radix(text, 16).unwrap_or(0);
        }
        bytes
    }

    /// Sends these frames to a MAC address for so long, as fast as the generator makes them.
    pub fn flood(&self, frames: &[Frame], to: [u8; 6], lasts: Duration) -> Result<Flood, String> {
        // Counted are all frames, from the first to the last: nothing is read while they go.
        let before = self.now();
        let (offered, took) = send(self, (frames, to), lasts)?;
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
        let ran = std::fs::read_to_string(format!("/proc/{}/schedstat", self.thread)).unwrap_or_default();
        let ran = ran.split_whitespace().next().and_then(|ns| ns.parse().ok());
        let far = statistics(&self.far, "far0");
        let near = statistics(&self.near, "near0");
        let of = |all: &BTreeMap<String, u64>, name: &str| all.get(name).copied().unwrap_or(0);
        [
            of(&near, "tx_queue_0_xdp_xmit_errors"),
            of(&far, "rx_queue_0_xdp_packets"),
            of(&far, "rx_queue_0_xdp_drops"),
            delivered(&self.far),
            ran.unwrap_or(0),
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
    let all = std::fs::read_dir("/proc").ok()?;
    let of = |id: i32| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
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

fn put_frames(object: &Object, frames: &[Frame]) -> Result<(), String> {
    let keys: Vec<u8> = (0..FRAMES as u32).flat_map(u32::to_ne_bytes).collect();
    let heads: Vec<u8> = frames.iter().flat_map(Frame::head).collect();
    let map = object
        .maps()
        .find(|found| found.name() == "heads")
        .ok_or("no map heads")?;
    map.update_batch(&keys, &heads, FRAMES as u32, MapFlags::ANY, MapFlags::ANY)
        .map_err(|error| format!("heads: {error}"))
}

fn with_program<T>(object: &Object, name: &str, act: impl FnOnce(&ProgramMut<'_>) -> T) -> Result<T, String> {
    let found = object.progs_mut().find(|program| program.name() == name);
    let found = found.ok_or_else(|| format!("no program {name}"))?;
    Ok(act(&found))
}

/// Makes frames as fast as it can, before everything else on its core: how many, and how long that took.
fn send(wire: &Wire, (frames, to): (&[Frame], [u8; 6]), lasts: Duration) -> Result<(u64, Duration), String> {
    let object = load(&wire.object)?;
    put_frames(&object, frames)?;
    let data = frames[0].bytes(to);
    let all = |program: &ProgramMut<'_>| {
        let (mut sent, begun) = (0, Instant::now());
        while begun.elapsed() < lasts {
            let input = ProgramInput {
                data_in: Some(&data),
                repeat: A_CALL,
                flags: LIVE,
                ..ProgramInput::default()
            };
            program
                .test_run(input)
                .map_err(|error| format!("no live frames: {error}"))?;
            sent += u64::from(A_CALL);
        }
        Ok((sent, begun.elapsed()))
    };
    within(&wire.near, || {
        pin(Pid::from_raw(0), wire.generator_core)?;
        // Signals that somebody sends this process would end a call.
        SigSet::all()
            .thread_block()
            .map_err(|error| format!("signals: {error}"))?;
        make_urgent(gettid().as_raw())?;
        let index = nix::net::if_::if_nametoindex("near0").map_err(|error| format!("near0: {error}"))?;
        put(&object, "wire", 0, &index.to_ne_bytes())?;
        with_program(&object, "send", all)?
    })
}

/// Tells a sender that it is over, when dropped.
pub struct Ends(pub Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frames a turn of a steady sender, and how often: fewer than the wire's ring takes at once.
const TURN: (usize, Duration) = (100, Duration::from_micros(500));

/// Sends at a steady pace through a socket, before everything else on its core, until it is told: frames sent.
pub fn send_steadily(
    near: &str,
    core: usize,
    (frames, to): (&[Frame], [u8; 6]),
    is_over: &AtomicBool,
) -> Result<u64, String> {
    let failed = |error: nix::Error| format!("a socket for frames: {error}");
    enter(near)?;
    pin(Pid::from_raw(0), core)?;
    make_urgent(gettid().as_raw())?;
    let frames: Vec<_> = frames.iter().map(|frame| frame.bytes(to)).collect();
    let socket =
        socket::socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).map_err(failed)?;
    // As many as wait on the wire, and more: what it has no room for is to be counted there.
    socket::setsockopt(&socket, socket::sockopt::SndBufForce, &(16 << 20)).map_err(failed)?;
    let mut interfaces = nix::ifaddrs::getifaddrs().map_err(failed)?;
    let address = interfaces.find_map(|interface| {
        (interface.interface_name == "near0").then_some(*interface.address?.as_link_addr()?)
    });
    let address = address.ok_or("near0 has no address")?;
    let (mut sent, mut next) = (0_u64, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..TURN.0 {
            let frame = &frames[sent as usize % frames.len()];
            match socket::sendto(socket.as_raw_fd(), frame, &address, MsgFlags::empty()) {
                // What the wire has no room for is counted there.
                Ok(_) | Err(nix::Error::ENOBUFS) => {}
                Err(error) => return Err(failed(error)),
            }
            sent += 1;
        }
        next += TURN.1;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(sent)
}

/// Nanoseconds that the program on the far end takes for a frame: run by the kernel over one frame after the other, less
/// what the same costs with a program that does nothing.
pub fn time(wire: &Wire, frames: &[Frame], core: usize) -> Result<f64, String> {
    let id = wire.program()?;
    let object = load(&wire.object)?;
    put_frames(&object, frames)?;
    let data = frames[0].bytes(wire.mac());
    let asked = Program::fd_from_id(id).map_err(|error| format!("program {id}: {error}"))?;
    let asked = (asked.as_fd().as_raw_fd() as u32).to_ne_bytes();
    // A program that knows frames of several pieces is called only by such, and others only by others.
    let of_frags = put(&object, "asked_frags", 0, &asked).is_ok();
    let (caller, map, idle) = if of_frags {
        ("ask_frags", "asked_frags", "drop_frags")
    } else {
        ("ask", "asked", "drop")
    };
    let idle = with_program(&object, idle, |program| {
        (program.as_fd().as_raw_fd() as u32).to_ne_bytes()
    })?;
    let run = |callee: &[u8]| -> Result<f64, String> {
        put(&object, map, 0, callee)?;
        with_program(&object, caller, |program| {
            let input = ProgramInput {
                data_in: Some(&data),
                repeat: 5 * FRAMES as u32,
                ..ProgramInput::default()
            };
            let output = program.test_run(input);
            output
                .map(|output| output.duration.as_nanos() as f64)
                .map_err(|error| format!("the kernel does not run the program: {error}"))
        })?
    };
    std::thread::scope(|scope| {
        let measure = || {
            pin(Pid::from_raw(0), core)?;
            let mut with = Vec::new();
            let mut without = Vec::new();
            for _ in 0..5 {
                with.push(run(&asked)?);
                without.push(run(&idle)?);
            }
            let least = |all: Vec<f64>| all.into_iter().fold(f64::MAX, f64::min);
            Ok(least(with) - least(without))
        };
        scope
            .spawn(measure)
            .join()
            .map_err(|_| "a thread died".to_owned())?
    })
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
