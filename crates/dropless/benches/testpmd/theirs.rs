//! `dpdk-testpmd` as the other side of a round, at its best settings.

use std::time::{Duration, Instant};

use crate::rounds::{Bench, Measured};
use crate::support::wire::Wire;
use crate::support::{Lab, Testpmd, TestpmdBuilder as Builder, until};
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
    let measured = measure(bench, &mut testpmd, &[], Counted::Out);
    testpmd.quit();
    measured
}

/// `5tswap` on a device that always has something.
pub fn swap_null(bench: &Bench, lab: &Lab) -> Measured {
    let mut testpmd = builder(bench, lab, "5tswap", &bench.worker())
        .eal("--vdev=net_null0,size=64,copy=0")
        .open();
    let measured = measure(bench, &mut testpmd, &[], Counted::Out);
    testpmd.quit();
    measured
}

/// `flowgen` over a ring that returns what it gets.
pub fn flowgen_over_ring(bench: &Bench, lab: &Lab) -> Measured {
    let mut testpmd = builder(bench, lab, "flowgen", &bench.worker())
        .eal("--vdev=net_ring0")
        .open();
    let measured = measure(bench, &mut testpmd, &[], Counted::Back);
    testpmd.quit();
    measured
}

/// `flowgen` and `macswap` as two processes over memif.
pub fn pair_over_memif(bench: &Bench, lab: &Lab) -> Measured {
    let path = lab.path("memif-testpmd.sock");
    let device = |role: &str| {
        format!(
            "--vdev=net_memif0,role={role},socket={},socket-abstract=no",
            path.display()
        )
    };
    let swap = builder(bench, lab, "macswap", &bench.second())
        .eal(device("server"))
        .open();
    let flowgen = builder(bench, lab, "flowgen", &bench.worker())
        .eal(device("client"))
        .open();
    pair(bench, flowgen, swap)
}

/// `flowgen` and `macswap` at the ends of a virtual wire.
pub fn pair_over_xdp(bench: &Bench, lab: &Lab) -> Measured {
    let wire = Wire::between(lab, 1);
    let device = |interface: &str| format!("--vdev=net_af_xdp0,iface={interface}");
    let swap = builder(bench, lab, "macswap", &bench.second())
        .eal(device("far0"))
        .within(&wire.far)
        .open();
    let flowgen = builder(bench, lab, "flowgen", &bench.worker())
        .eal(device("near0"))
        .within(&wire.near)
        .open();
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

/// The rate between two looks at the counters of port 0, in steady state.
fn measure(bench: &Bench, testpmd: &mut Testpmd, others: &[u32], counted: Counted) -> Measured {
    testpmd.start();
    std::thread::sleep(WARM);
    let watch = Watch::begin(&[&[testpmd.process().id()], others].concat());
    // testpmd reads its counters right after the command came: both instants err by the same.
    let (begun, before) = (Instant::now(), testpmd.stats()[&0]);
    std::thread::sleep(bench.seconds());
    let share = watch.share();
    let (ended, after) = (Instant::now(), testpmd.stats()[&0]);
    testpmd.stop();
    let (out, back) = (
        after.tx_packets - before.tx_packets,
        after.rx_packets - before.rx_packets,
    );
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
