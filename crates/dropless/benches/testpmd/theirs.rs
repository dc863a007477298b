//! `dpdk-testpmd` as the other side of a round, at its best settings.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::rounds::{Bench, Measured};
use crate::support::wire::Wire;
use crate::support::{Lab, PortStats, Testpmd, TestpmdBuilder as Builder, until};
use crate::worker::Watch;

/// 64 bytes with FCS; the cache that a burst of 64 needs, where the default of 250 halves the rate.
const BEST: [&str; 4] = [
    "--burst=64",
    "--mbcache=512",
    "--txpkts=60",
    "--disable-link-check",
];
/// Until caches are warm and rings are in their steady state.
const WARM: Duration = Duration::from_millis(300);
const LINK: Duration = Duration::from_secs(10);

/// `txonly` into a device that swallows everything.
pub fn txonly_into_null(bench: &Bench, lab: &Lab) -> Measured {
    let mut testpmd = builder(bench, lab, "txonly", &bench.worker())
        .eal("--vdev=net_null0,size=64,copy=0")
        .open();
    testpmd.start();
    let measured = measure(bench, &mut testpmd, &[], Counted::Out);
    testpmd.quit();
    measured
}

/// `5tswap` on a device that always has something: UDP frames, since `tx_first` has left them in the buffers.
pub fn swap_null(bench: &Bench, lab: &Lab) -> Measured {
    swap(bench, lab, "start tx_first 64")
}

/// The same on the frames of zeros that the device makes by itself, of which `5tswap` swaps only the MAC addresses.
pub fn swap_blank(bench: &Bench, lab: &Lab) -> Measured {
    swap(bench, lab, "start")
}

fn swap(bench: &Bench, lab: &Lab, start: &str) -> Measured {
    let mut testpmd = builder(bench, lab, "5tswap", &bench.worker())
        .eal("--vdev=net_null0,size=64,copy=0")
        .open();
    testpmd.start_by(start);
    let measured = measure(bench, &mut testpmd, &[], Counted::Out);
    testpmd.quit();
    measured
}

/// Forwards between two devices that always have something, of 60 bytes as ours.
#[allow(dead_code, reason = "of the benchmark of filtering")]
pub fn null_to_null(bench: &Bench, lab: &Lab, mode: &str) -> Measured {
    let mut testpmd = builder(bench, lab, mode, &bench.worker())
        .eal("--vdev=net_null0,size=60,copy=0")
        .eal("--vdev=net_null1,size=60,copy=0")
        .open();
    testpmd.start();
    let measured = measure(bench, &mut testpmd, &[], Counted::Out);
    testpmd.quit();
    measured
}

/// `macswap` between two ends of memif, which it serves. It is not started yet.
#[allow(dead_code, reason = "of the benchmark of filtering")]
pub fn between_memifs(bench: &Bench, lab: &Lab, sockets: &[PathBuf; 2]) -> Testpmd {
    let mut testpmd = builder(bench, lab, "macswap", &bench.worker());
    for (id, socket) in sockets.iter().enumerate() {
        testpmd = testpmd.eal(format!(
            "--vdev=net_memif{id},socket={},socket-abstract=no,role=server",
            socket.display()
        ));
    }
    testpmd.open()
}

/// `flowgen` over a ring that returns what it gets.
pub fn flowgen_over_ring(bench: &Bench, lab: &Lab) -> Measured {
    long_flowgen_over_ring(bench, lab, 60)
}

/// The same with frames of so many bytes, without FCS.
pub fn long_flowgen_over_ring(bench: &Bench, lab: &Lab, length: u32) -> Measured {
    let mut testpmd = builder(bench, lab, "flowgen", &bench.worker())
        .eal("--vdev=net_ring0")
        .app(format!("--txpkts={length}"))
        .open();
    testpmd.start();
    let measured = measure(bench, &mut testpmd, &[], Counted::Back);
    testpmd.quit();
    measured
}

/// `flowgen` and `macswap` as two processes over memif, without a copy at the sender here, too.
pub fn pair_over_memif(bench: &Bench, lab: &Lab) -> Measured {
    let swap = memif(bench, lab, "macswap", &bench.second(), "server").open();
    let flowgen = memif(bench, lab, "flowgen", &bench.worker(), "client,zero-copy=yes")
        .eal("--single-file-segments")
        .open();
    pair(bench, flowgen, swap)
}

/// The same with copies at both ends, the sender serving.
pub fn pair_over_copying_memif(bench: &Bench, lab: &Lab) -> Measured {
    let flowgen = memif(bench, lab, "flowgen", &bench.worker(), "server").open();
    let swap = memif(bench, lab, "macswap", &bench.second(), "client").open();
    pair(bench, flowgen, swap)
}

fn memif(bench: &Bench, lab: &Lab, mode: &str, core: &str, role: &str) -> Builder {
    let path = lab.path("memif-testpmd.sock");
    let device = format!(
        "--vdev=net_memif0,socket={},socket-abstract=no,role={role}",
        path.display()
    );
    builder(bench, lab, mode, core).eal(device)
}

/// `flowgen` and `macswap` at the ends of a virtual wire of two queues: a port each, which it forwards between. One queue
/// gives testpmd 0.85 of that.
pub fn pair_over_xdp(bench: &Bench, lab: &Lab) -> Measured {
    let device = |interface: &str, queue: u32| {
        format!("--vdev=net_af_xdp{queue},iface={interface},start_queue={queue}")
    };
    pair_over_veth(bench, lab, 2, device)
}

/// The same with `AF_PACKET` and one queue.
pub fn pair_over_packet(bench: &Bench, lab: &Lab) -> Measured {
    let device = |interface: &str, _: u32| format!("--vdev=net_af_packet0,iface={interface}");
    pair_over_veth(bench, lab, 1, device)
}

fn pair_over_veth(bench: &Bench, lab: &Lab, queues: u32, device: impl Fn(&str, u32) -> String) -> Measured {
    let wire = Wire::between(lab, queues);
    let end = |mode: &str, core: &str, interface: &str| {
        let devices = (0..queues).map(|queue| device(interface, queue));
        devices.fold(builder(bench, lab, mode, core), Builder::eal)
    };
    let swap = end("macswap", &bench.second(), "far0").within(&wire.far).open();
    let flowgen = end("flowgen", &bench.worker(), "near0").within(&wire.near).open();
    pair(bench, flowgen, swap)
}

/// What comes back to the generator.
fn pair(bench: &Bench, mut flowgen: Testpmd, mut swap: Testpmd) -> Measured {
    for end in [&mut flowgen, &mut swap] {
        let up = until(LINK, || {
            end.command("show port info 0").contains("Link status: up")
        });
        assert!(up, "no link: {:?}", end.process());
    }
    swap.start();
    flowgen.start();
    let measured = measure(bench, &mut flowgen, &[swap.process().id()], Counted::Back);
    swap.stop();
    flowgen.quit();
    swap.quit();
    measured
}

fn builder(bench: &Bench, lab: &Lab, mode: &str, core: &str) -> Builder {
    let builder = lab
        .testpmd()
        .worker_on(core)
        .app(format!("--forward-mode={mode}"));
    let builder = if bench.huge() { builder.huge() } else { builder };
    BEST.iter()
        .fold(builder, |builder, argument| builder.app(*argument))
}

/// Which way the rate counts.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    /// What went out, where nothing comes back.
    Out,
    /// What came back.
    Back,
}

/// The rate between two looks at the counters of a running testpmd, in steady state.
fn measure(bench: &Bench, testpmd: &mut Testpmd, others: &[u32], counted: Counted) -> Measured {
    std::thread::sleep(WARM);
    let watch = Watch::begin(&[&[testpmd.process().id()], others].concat());
    // testpmd reads its counters right after the command came: both instants err by the same.
    let (begun, before) = (Instant::now(), moved(testpmd));
    std::thread::sleep(bench.seconds());
    let share = watch.share();
    let (ended, after) = (Instant::now(), moved(testpmd));
    testpmd.stop();
    let (out, back) = (after.0 - before.0, after.1 - before.1);
    let packets = if counted == Counted::Back { back } else { out };
    assert!(packets > 0, "testpmd moved nothing: {:?}", testpmd.process());
    Measured {
        rate_pps: packets as f64 / (ended - begun).as_secs_f64(),
        share,
        sent: (counted == Counted::Back).then_some(out),
        lost: (counted == Counted::Back).then(|| out.saturating_sub(back)),
        ..Measured::default()
    }
}

/// What all ports of a testpmd have sent and received.
fn moved(testpmd: &mut Testpmd) -> (u64, u64) {
    let stats = testpmd.stats();
    let sum = |pick: fn(&PortStats) -> u64| stats.values().map(pick).sum();
    (sum(|port| port.tx_packets), sum(|port| port.rx_packets))
}
