//! The rows of the benchmark: a piece of work, what testpmd does beside it, and the ratio to reach.

use crate::rounds::{Bench, Measured};
use crate::support::{Lab, Need};
use crate::{ours, taps, theirs, viewers};

/// How one side is measured once.
pub type Side = fn(&Bench, &Lab) -> Measured;

/// One row.
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// What dropless does.
    pub work: &'static str,
    /// What testpmd does.
    pub beside: &'static str,
    /// The ratio to reach; none where the figure is only reported.
    pub target: Option<f64>,
    /// A packet that is lost fails the row.
    pub lossless: bool,
    /// Frame size with FCS, bytes.
    pub frame_size: u32,
    /// What it takes.
    pub needs: &'static [Need],
    /// dropless.
    pub ours: Side,
    /// testpmd.
    pub theirs: Option<Side>,
}

const TESTPMD: [Need; 2] = [Need::Tool("dpdk-testpmd"), Need::Tool("stdbuf")];
const TWO_CORES: [Need; 3] = [TESTPMD[0], TESTPMD[1], Need::Processors(2)];
const NAMESPACES: [Need; 4] = [TESTPMD[0], TESTPMD[1], Need::Processors(2), Need::Namespaces];

/// What all rows that are not special have in common.
const PLAIN: Row = Row {
    name: "",
    work: "",
    beside: "",
    target: None,
    lossless: false,
    frame_size: 64,
    needs: &TESTPMD,
    ours: ours::send_into_null,
    theirs: None,
};

/// All rows, in their order.
pub const ROWS: [Row; 19] = [
    Row {
        name: "null",
        work: "send into null",
        beside: "txonly into null",
        target: Some(1.2),
        theirs: Some(theirs::txonly_into_null),
        ..PLAIN
    },
    Row {
        name: "ring",
        work: "send and verify on one core over ring",
        beside: "flowgen over ring",
        target: Some(1.2),
        lossless: true,
        ours: ours::send_over_ring,
        theirs: Some(theirs::flowgen_over_ring),
        ..PLAIN
    },
    Row {
        name: "ring-two-cores",
        work: "send on one core, verify on another, over ring",
        beside: "flowgen over ring on one core",
        target: Some(0.7),
        lossless: true,
        needs: &TWO_CORES,
        ours: ours::send_over_ring_on_two_cores,
        theirs: Some(theirs::flowgen_over_ring),
        ..PLAIN
    },
    Row {
        name: "reflect",
        work: "reflect null to null",
        beside: "5tswap null to null, of UDP frames, too",
        target: Some(1.0),
        ours: ours::reflect_null,
        theirs: Some(theirs::swap_null),
        ..PLAIN
    },
    Row {
        name: "reflect-blank",
        work: "reflect null to null",
        beside: "5tswap null to null, of zeros: MAC addresses only",
        ours: ours::reflect_null,
        theirs: Some(theirs::swap_blank),
        ..PLAIN
    },
    Row {
        name: "memif",
        work: "send and reflect, two processes over memif, no loss",
        beside: "flowgen and macswap over memif, both senders without a copy",
        target: Some(1.2),
        lossless: true,
        needs: &TWO_CORES,
        ours: ours::pair_over_memif,
        theirs: Some(theirs::pair_over_memif),
        ..PLAIN
    },
    Row {
        name: "memif-copy",
        work: "send and reflect, two processes over memif, no loss",
        beside: "flowgen and macswap over memif, copied at both ends",
        lossless: true,
        needs: &TWO_CORES,
        ours: ours::pair_over_copying_memif,
        theirs: Some(theirs::pair_over_copying_memif),
        ..PLAIN
    },
    Row {
        name: "xdp",
        work: "send and reflect over veth with AF_XDP, two queues",
        beside: "flowgen and macswap over veth with AF_XDP, two queues",
        target: Some(1.5),
        needs: &NAMESPACES,
        ours: ours::pair_over_xdp,
        theirs: Some(theirs::pair_over_xdp),
        ..PLAIN
    },
    Row {
        name: "packet",
        work: "send and reflect over veth with AF_PACKET",
        beside: "flowgen and macswap over veth with AF_PACKET, to MAC addresses that the kernels throw away; ours are to theirs",
        target: Some(1.2),
        needs: &NAMESPACES,
        ours: ours::pair_over_packet,
        theirs: Some(theirs::pair_over_packet),
        ..PLAIN
    },
    Row {
        name: "explain",
        work: "send and verify on one core over ring, with --explain",
        beside: "the same, by dropless without --explain",
        target: Some(0.98),
        lossless: true,
        ours: ours::send_over_ring_explained,
        theirs: Some(ours::send_over_ring),
        ..PLAIN
    },
    Row {
        name: "watched",
        work: "send and verify on one core over ring, in `dropless top` and scraped each second",
        beside: "the same, by dropless, and nobody looks",
        lossless: true,
        needs: &[],
        ours: viewers::send_over_ring,
        theirs: Some(ours::send_over_ring),
        ..PLAIN
    },
    Row {
        name: "watched-null",
        work: "send into null, in `dropless top` and scraped each second",
        beside: "the same, by dropless, and nobody looks",
        needs: &[],
        ours: viewers::send_into_null,
        theirs: Some(ours::send_into_null),
        ..PLAIN
    },
    Row {
        name: "tap",
        work: "send and verify on one core over ring, and `capture --attach` looks into it",
        beside: "the same, by dropless, and nobody looks",
        target: Some(0.97),
        lossless: true,
        needs: &TWO_CORES,
        ours: taps::keeps_up,
        theirs: Some(ours::send_over_ring),
        ..PLAIN
    },
    Row {
        name: "tap-stopped",
        work: "the same, and what looks is stopped (SIGSTOP)",
        beside: "the same, by dropless, and nobody looks",
        target: Some(0.97),
        lossless: true,
        needs: &TWO_CORES,
        ours: taps::is_stopped,
        theirs: Some(ours::send_over_ring),
        ..PLAIN
    },
    Row {
        name: "payload",
        work: "send and verify every payload byte of 1518 on one core over ring",
        beside: "-",
        lossless: true,
        frame_size: 1518,
        ours: |bench, lab| ours::send_long(bench, lab, "1518", "payload", &bench.worker()),
        ..PLAIN
    },
    Row {
        name: "payload-512-apart",
        work: "send on one core, verify every payload byte of 512 on another, over ring",
        beside: "the same, by dropless on one core",
        target: Some(0.5),
        lossless: true,
        frame_size: 512,
        needs: &[Need::Processors(2)],
        ours: |bench, lab| ours::send_long(bench, lab, "512", "payload", &ours::both(bench)),
        theirs: Some(|bench, lab| ours::send_long(bench, lab, "512", "payload", &bench.worker())),
    },
    Row {
        name: "payload-1518-apart",
        work: "send on one core, verify every payload byte of 1518 on another, over ring",
        beside: "the same, by dropless on one core",
        target: Some(0.5),
        lossless: true,
        frame_size: 1518,
        needs: &[Need::Processors(2)],
        ours: |bench, lab| ours::send_long(bench, lab, "1518", "payload", &ours::both(bench)),
        theirs: Some(|bench, lab| ours::send_long(bench, lab, "1518", "payload", &bench.worker())),
    },
    Row {
        name: "checksum-512",
        work: "send, and verify the checksum of all 512 bytes, on one core over ring",
        beside: "flowgen over ring, which touches no payload",
        target: Some(0.8),
        lossless: true,
        frame_size: 512,
        ours: |bench, lab| ours::send_long(bench, lab, "512", "checksum", &bench.worker()),
        theirs: Some(|bench, lab| theirs::long_flowgen_over_ring(bench, lab, 508)),
        ..PLAIN
    },
    Row {
        name: "checksum-1518",
        work: "send, and verify the checksum of all 1518 bytes, on one core over ring",
        beside: "flowgen over ring, which touches no payload",
        target: Some(0.8),
        lossless: true,
        frame_size: 1518,
        ours: |bench, lab| ours::send_long(bench, lab, "1518", "checksum", &bench.worker()),
        theirs: Some(|bench, lab| theirs::long_flowgen_over_ring(bench, lab, 1514)),
        ..PLAIN
    },
];
