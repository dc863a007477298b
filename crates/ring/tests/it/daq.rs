//! The module for libdaq, loaded and driven by libdaq itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::OnceLock;

use crate::support::{Compiler, SUM, Served, contrib, ended, spawn, sum_on};

/// `DAQ_READFILE_EOF`: the capture has ended.
const END: i32 = -42;
const FLOWS: u64 = 100;
const PACKETS: u64 = 4000;

/// Packet `number` of one of the flows, of IPv4 or IPv6, one way or the other.
fn frame(number: u64) -> Vec<u8> {
    let (flow, is_back) = ((number % FLOWS) as u8, number / FLOWS % 2 == 1);
    let is_v6 = flow % 3 == 0;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let ends = [
        (10, 2000 + u16::from(flow)),
        (20 + flow, 53 + u16::from(flow % 2)),
    ];
    let [from, to] = if is_back { [ends[1], ends[0]] } else { ends };
    let payload = number.to_be_bytes();
    if is_v6 {
        frame.extend([0x86, 0xDD, 0x60, 0, 0, 0, 0, 16, 17, 64]);
        frame.extend([from.0; 16]);
        frame.extend([to.0; 16]);
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, from.0]);
        frame.extend([10, 0, 0, to.0]);
    }
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend([0, 16, 0, 0]);
    frame.extend(payload);
    frame
}

/// The driver, and the folder of the module.
struct Built {
    compiler: Compiler,
    drive: PathBuf,
    modules: PathBuf,
}

fn build() -> Option<Built> {
    static BUILT: OnceLock<[PathBuf; 2]> = OnceLock::new();
    let compiler = Compiler::new()?;
    if !Path::new("/usr/include/daq_api.h").is_file() {
        crate::skip::skip("needs libdaq-dev");
        return None;
    }
    let [drive, modules] = BUILT
        .get_or_init(|| {
            let include = format!("-I{}", contrib().join("c").display());
            let source = contrib().join("daq/daq_dropless.c");
            let flags = ["-fPIC", "-shared", &include, "-lsfbpf"];
            let module = compiler.shared("modules/daq_dropless.so", &source, &flags);
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/drive.c");
            let drive = compiler.shared("drive", &source, &["-ldaq"]);
            [drive, module.parent().unwrap().to_owned()]
        })
        .clone();
    Some(Built {
        compiler,
        drive,
        modules,
    })
}

impl Built {
    fn spawn(&self, ring: &Path, arguments: &[&str]) -> Child {
        let mut all = vec![self.modules.as_os_str(), ring.as_os_str()];
        all.extend(arguments.iter().map(OsStr::new));
        spawn(&self.drive, &all)
    }
}

/// What an engine was told at the end.
#[derive(Debug, Default)]
struct Told {
    acquired: Option<i32>,
    /// Received and dropped by the ring, received and filtered by the instance, passed and blocked.
    stats: Vec<u64>,
    error: String,
    complaints: String,
}

/// The packets that an engine was handed, each held against what was written, and what it was told.
fn engine(child: Child) -> (Vec<u64>, Told) {
    let (said, complaints, _) = ended(child);
    let mut packets = Vec::new();
    let mut told = Told {
        complaints,
        ..Told::default()
    };
    for line in said.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "packet" => {
                let number: u64 = rest[2..8].parse().unwrap();
                let frame = frame(number);
                let wanted = format!(
                    "0.{number:06} {len} {len} {sum:016x} 1",
                    len = frame.len(),
                    sum = sum_on(SUM, &frame)
                );
                assert_eq!(rest, wanted, "whole, and where it lies in the ring");
                packets.push(number);
            }
            "stats" => told.stats = rest.split(' ').map(|count| count.parse().unwrap()).collect(),
            "error" => rest.clone_into(&mut told.error),
            _ => told.acquired = rest.parse().ok(),
        }
    }
    (packets, told)
}

fn feed(served: &mut Served) {
    for number in 0..PACKETS {
        served.push(number * 1000, &frame(number));
    }
    served.producer.end();
}

#[test]
fn instances_share_a_ring_by_flows() {
    let Some(built) = build() else { return };
    for count in [1, 2, 4] {
        let mut served = Served::new();
        let instances: Vec<Child> = (1..=count)
            .map(|instance| built.spawn(&served.path(), &[&format!("instance={instance}/{count}")]))
            .collect();
        served.wait_for(count);
        feed(&mut served);
        let mut of_flow: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let mut all = Vec::new();
        for (instance, child) in instances.into_iter().enumerate() {
            let (packets, told) = engine(child);
            let mine = packets.len() as u64;
            assert_eq!(told.acquired, Some(END), "{told:?}");
            assert_eq!(told.stats, [PACKETS, 0, mine, 0, mine, 0], "{told:?}");
            assert!(mine > 0 && packets.is_sorted());
            for number in packets {
                of_flow.entry(number % FLOWS).or_default().insert(instance);
                all.push(number);
            }
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..PACKETS), "each packet once");
        assert!(
            of_flow.values().all(|instances| instances.len() == 1),
            "{of_flow:?}"
        );
        served.serve(|door| door.guests().iter().all(|guest| guest.is_gone));
        let counted = served.door.guests().iter().map(|guest| guest.seat().counts);
        assert!(counted.into_iter().all(|counts| counts == (PACKETS, 0)));
    }
}

#[test]
fn a_block_is_refused_and_said() {
    let Some(built) = build() else { return };
    let mut served = Served::new();
    let child = built.spawn(&served.path(), &["verdict=1"]);
    served.wait_for(1);
    feed(&mut served);
    let (packets, told) = engine(child);
    assert_eq!(packets.len() as u64, PACKETS, "they are handed out all the same");
    assert_eq!(told.stats, [PACKETS, 0, PACKETS, 0, 0, PACKETS]);
    let why = "a verdict to block was refused: the ring is a copy of what has passed already";
    assert_eq!(told.error, why);
    assert_eq!(told.complaints, format!("daq_dropless: {why}\n"), "once");
}

#[test]
fn a_filter_is_counted() {
    let Some(built) = build() else { return };
    let mut served = Served::new();
    let child = built.spawn(&served.path(), &["filter=udp port 53"]);
    served.wait_for(1);
    feed(&mut served);
    let (packets, told) = engine(child);
    let wanted = (0..PACKETS).filter(|number| number % FLOWS % 2 == 0);
    assert!(packets.iter().copied().eq(wanted), "{told:?}");
    assert_eq!(told.stats, [PACKETS, 0, PACKETS / 2, PACKETS / 2, PACKETS / 2, 0]);
}

#[test]
fn an_engine_that_wants_no_more_is_let_go() {
    let Some(built) = build() else { return };
    let mut served = Served::new();
    let broken = built.spawn(&served.path(), &["count=10"]);
    let waits = built.spawn(&served.path(), &["timeout=100"]);
    served.wait_for(2);
    // Nothing comes: one gives up after its time.
    let (packets, told) = engine(waits);
    assert_eq!((told.acquired, packets.len()), (Some(0), 0), "{told:?}");
    feed(&mut served);
    let (packets, told) = engine(broken);
    assert_eq!(told.acquired, Some(0), "{told:?}");
    assert!(packets.into_iter().eq(0..10));
}

/// One that may lose is never waited for, and counts what it lost.
#[test]
fn a_lossy_engine_counts_what_it_lost() {
    let Some(built) = build() else { return };
    let mut served = Served::new();
    let child = built.spawn(&served.path(), &["lossy", "filter=less 1"]);
    served.wait_for(1);
    let frame = vec![0; 1000];
    for number in 0..PACKETS {
        served.push(number * 1000, &frame);
    }
    served.producer.end();
    let (_, told) = engine(child);
    assert_eq!(told.acquired, Some(END), "{told:?}");
    assert_eq!(told.stats[0] + told.stats[1], PACKETS, "{told:?}");
    assert_eq!(told.stats[3], told.stats[0], "{told:?}");
}

#[test]
fn wrong_uses_are_one_line() {
    let Some(built) = build() else { return };
    let served = Served::new();
    let refused = |ring: &Path, arguments: &[&str], wanted: &str| {
        let (_, told) = engine(built.spawn(ring, arguments));
        assert!(told.acquired.is_some_and(|code| code < 0), "{told:?}");
        assert_eq!(told.error, wanted);
    };
    let ring = served.path();
    refused(
        &ring,
        &["mode=inline"],
        "The dropless DAQ module does not support inline mode!",
    );
    for wrong in [
        "instance=0/2",
        "instance=3/2",
        "instance=1",
        "instance=1/2x",
        "instance",
    ] {
        let value = wrong.split_once('=').map_or("", |(_, value)| value);
        let wanted =
            format!("dropless: instance={value}: use instance=I/N, as instance=1/4 for the first of four");
        refused(&ring, &[wrong], &wanted);
    }
    refused(
        &ring,
        &["flows=3"],
        "dropless: flows: no such variable; there are ring=NAME, instance=I/N and lossy",
    );
    refused(
        &ring,
        &["filter=udp sport"],
        "the filter 'udp sport' cannot be compiled",
    );
    refused(
        Path::new("/nonexistent/ring"),
        &[],
        "no ring at /nonexistent/ring: No such file or directory; is a capture with --ring running?",
    );
}

/// What the project says is typed.
#[test]
fn make_builds_both() {
    let Some(built) = build() else { return };
    let out = format!("OUT={}", built.compiler.dir.path().join("made").display());
    std::fs::create_dir(built.compiler.dir.path().join("made")).unwrap();
    let made = std::process::Command::new("make")
        .args(["-C", &contrib().display().to_string(), &out, "CFLAGS=-O2 -Werror"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
