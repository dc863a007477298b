//! An adversary in memory: real receivers, and between them and a sender whoever loses, copies, damages, delays and
//! forges. Of each run whose numbers are called valid they must be the truth.

use std::cell::Cell;

use dataplane::memory::MemoryLink;
use dataplane::receive::{ReceivePlan, ReceiveTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::{Clock, IntervalRing, Nanos, Ticks, Validity, Verdict};
use proptest::prelude::*;
use wire::{Addresses, BurstStamp, Ends, Template, TemplateSpec, Verify};

use super::*;

thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });

/// The virtual clock: one tick is one nanosecond.
fn now() -> Ticks {
    Ticks(NOW.get())
}

const START: u64 = 1_000_000_000;
const DRAIN: u64 = 50_000_000;
/// From one departure to the next, ns.
const GAP: u64 = 1000;
const RUN: u8 = 9;
const FIRST_LANE: u16 = 65_535;

/// What becomes of one packet: a place on each of these queues, so many gaps later, and perhaps a bit flipped there.
type Fate = Vec<(usize, u64, Option<(prop::sample::Index, u8)>)>;

/// Somebody else's frame, or one that claims to be ours.
#[derive(Clone, Debug)]
enum Stranger {
    Garbage(Vec<u8>),
    NoChecksum,
    OtherRun,
    OtherLane,
    Stale,
    NeverSent,
    /// Two numbers that were sent, the later one stamped before the other. (Whoever knows the run, keeps its order and
    /// stamps like it cannot be told from a copy.)
    Forged(i64),
}

#[derive(Clone, Debug)]
struct Case {
    queues: usize,
    streams: usize,
    window: usize,
    verify: Verify,
    burst: u64,
    packets: Vec<Fate>,
    /// What comes to these queues after so many departures.
    strangers: Vec<(usize, u64, Stranger)>,
    /// A run with our number and lanes that began so many gaps later, and sends as often to the first queue.
    twin: Option<u64>,
    /// What counters say that count strangers' frames, too.
    counters: [u64; 3],
}

fn spec(lane: usize) -> TemplateSpec {
    TemplateSpec {
        run: RUN,
        lane: FIRST_LANE.wrapping_add(lane as u16),
        ..TemplateSpec::plain(90)
    }
}

fn frame(spec: &TemplateSpec, sequence: u64, time: u64) -> Vec<u8> {
    let template = Template::new(spec).expect("a template");
    let mut room = [0; 256];
    template.write(&mut room, &BurstStamp::new(time, 0), sequence, None);
    room[..template.frame_len()].to_vec()
}

impl Case {
    /// When packet `number` of the run leaves: bursts share a stamp.
    fn departure(&self, number: u64) -> u64 {
        START + number / self.burst * self.burst * GAP
    }

    /// Lane and sequence number of packet `number`.
    fn place(&self, number: u64) -> (usize, u64) {
        (number as usize % self.streams, number / self.streams as u64)
    }

    fn stranger(&self, kind: &Stranger, at: u64) -> Vec<Vec<u8>> {
        let (lane, sequence) = self.place(at % self.packets.len() as u64);
        let ours = spec(lane);
        let one = match kind {
            Stranger::Garbage(bytes) => bytes.clone(),
            Stranger::NoChecksum => {
                let other = TemplateSpec {
                    src: ([198, 18, 7, 7], 4789).into(),
                    run: RUN + 1,
                    ..ours
                };
                let mut frame = frame(&other, sequence, START);
                frame[40..42].fill(0);
                frame
            }
            Stranger::OtherRun => frame(&TemplateSpec { run: RUN + 1, ..ours }, sequence, START),
            Stranger::OtherLane => frame(&spec(self.streams + 5), sequence, START),
            Stranger::Stale => frame(&ours, sequence, START - 1),
            Stranger::NeverSent => frame(&ours, sequence + (1 << 30), START + at * GAP),
            Stranger::Forged(by) => {
                let time = self.departure(at).saturating_add_signed(*by).max(START + 1);
                let forged = |number, time| frame(&ours, number, time);
                return vec![forged(sequence, time), forged(sequence + 1, time - 1)];
            }
        };
        vec![one]
    }

    /// All frames in the order in which they come: when, to which queue, and what.
    fn arrivals(&self) -> Vec<(u64, usize, Vec<u8>)> {
        let mut arrivals = Vec::new();
        for (number, fate) in (0..).zip(&self.packets) {
            let (lane, sequence) = self.place(number);
            let whole = frame(&spec(lane), sequence, self.departure(number));
            for (queue, later, flip) in fate {
                let mut bytes = whole.clone();
                if let Some((at, bit)) = flip {
                    // Behind the Ethernet header, which no checksum covers.
                    bytes[14 + at.index(whole.len() - 14)] ^= 1 << bit;
                }
                arrivals.push((START + (number + self.burst + later) * GAP, *queue, bytes));
            }
            if let Some(later) = self.twin {
                let time = self.departure(number) + later * GAP + 1;
                arrivals.push((time + self.burst * GAP, 0, frame(&spec(lane), sequence, time)));
            }
        }
        for (queue, at, kind) in &self.strangers {
            let frames = self.stranger(kind, *at).into_iter();
            arrivals.extend(frames.map(|frame| (START + (at + self.burst) * GAP, *queue, frame)));
        }
        arrivals.sort_by_key(|(at, ..)| *at);
        arrivals
    }
}

/// What really happened to the run's packets.
#[derive(Debug, PartialEq)]
struct Truth {
    lost: u64,
    duplicate: u64,
    corrupt: u64,
}

impl Truth {
    fn of(case: &Case) -> Self {
        let sound = |fate: &Fate| {
            let is_late = |later: &u64| later * GAP > DRAIN / 2;
            let sound = fate
                .iter()
                .filter(|(_, later, flip)| flip.is_none() && !is_late(later));
            sound.count() as u64
        };
        let damaged = |fate: &Fate| fate.iter().filter(|(.., flip)| flip.is_some()).count() as u64;
        let all = || case.packets.iter();
        Self {
            lost: all().filter(|fate| sound(fate) == 0).count() as u64,
            duplicate: all().map(|fate| sound(fate).saturating_sub(1)).sum(),
            corrupt: all().map(damaged).sum(),
        }
    }
}

/// What the program says of it, and whether it stands by that.
fn told(case: &Case) -> (Ledger, Verdict) {
    NOW.set(START);
    let sender = dataplane::send::SendCounters::new();
    let unions: Arc<[Arc<LaneUnion>]> = (0..if case.queues > 1 { case.streams } else { 0 })
        .map(|_| Arc::new(LaneUnion::new(case.window)))
        .collect();
    let mut queues = Vec::new();
    for _ in 0..case.queues {
        let (link, counters, (left, leave)) = (MemoryLink::new(1 << 16), ReceiveCounters::new(), Slot::new());
        let ring = IntervalRing::new(case.streams, 50_000_000, 64, Nanos(START)).expect("a ring");
        let plan = ReceivePlan {
            lanes: case.streams,
            streams: case.streams,
            window: case.window,
            unions: Arc::clone(&unions),
            own_macs: Arc::default(),
            latency_bits: 5,
            run: RUN,
            first_lane: FIRST_LANE,
            start: Nanos(START),
            drain_ns: DRAIN,
            verify: case.verify,
            ends: (0..case.streams).map(|lane| Ends::of(&spec(lane))).collect(),
            burst: 32,
            clock: Clock::from_calibration(0, 0, 1e9),
            tsc: now,
            intervals: Arc::new(ring),
            counters: Arc::clone(&counters),
            me: Addresses {
                mac: [2, 0, 0, 0, 0, 1],
                ips: Vec::new(),
            },
            replies: Arc::default(),
            answers: Arc::default(),
            holes_max: 0,
            senders: vec![Arc::clone(&sender)],
        };
        let task: Box<dyn Task> = Box::new(ReceiveTask::new(link.clone(), plan, leave));
        queues.push((link, task, counters, left));
    }
    let packets = case.packets.len() as u64;
    for (at, queue, bytes) in case.arrivals() {
        NOW.set(at);
        let sent = (at - START).div_ceil(GAP).min(packets);
        sender.intended.add(sent - sender.intended.get().min(sent));
        let (link, task, ..) = &mut queues[queue];
        link.inject(&bytes);
        task.poll(now(), Phase::Run);
    }
    let ends: Vec<_> = queues
        .into_iter()
        .map(|(_, task, counters, left)| {
            task.finish();
            (counters, left.take().expect("a result"))
        })
        .collect();
    let accepted =
        (0..case.streams).map(|lane| (case.packets.len() + case.streams - 1 - lane) / case.streams);
    let send = SendResult {
        accepted: accepted.map(|count| count as u64).collect(),
        lane_base: 0,
        flows: vec![1; case.streams],
        unsent: 0,
        bytes: 0,
    };
    let results = Results {
        send: vec![&send],
        receive: ends.iter().map(|(_, result)| result).collect(),
        reflector_held: 0,
        unions: &unions,
    };
    let names = ["rx_missed", "tx_held", "reflector_rx_missed"];
    let ledger = Ledger::balance(LedgerInput {
        intended: packets,
        accepted: packets,
        arrived: results.arrived(ends.iter().map(|(counters, _)| &**counters)),
        places: names.map(str::to_owned).into_iter().zip(case.counters).collect(),
        ..LedgerInput::default()
    });
    let evidence = Evidence {
        ports: 1,
        clock_uncertainty_ppm: 1.0,
        ..Evidence::default()
    };
    let verdict = Verdict::of(&results.evidence(&ledger, evidence));
    (ledger, verdict)
}

fn check(case: &Case) {
    let (ledger, verdict) = told(case);
    let truth = Truth::of(case);
    let codes: Vec<&str> = verdict.reasons.iter().map(measure::Reason::code).collect();
    // What is always told, valid or not: every frame is in one class.
    assert!(!codes.contains(&"unbalanced") || case.is_forged(), "{verdict:?}");
    if verdict.validity == Validity::Valid {
        let arrived = &ledger.arrived;
        let told = Truth {
            lost: ledger.lost(),
            duplicate: arrived.duplicate,
            corrupt: arrived.corrupt,
        };
        // Nobody can tell of these: they count as lost, or as copies.
        let unknown = arrived.too_old;
        assert_eq!(told.corrupt, truth.corrupt, "{ledger:?}");
        assert!(
            (truth.lost..=truth.lost + unknown).contains(&told.lost),
            "{told:?} {truth:?} {ledger:?}"
        );
        assert!(
            (told.duplicate..=told.duplicate + unknown).contains(&truth.duplicate),
            "{told:?} {truth:?} {ledger:?}"
        );
        assert_eq!(ledger.lost_at_total() + ledger.unexplained, told.lost);
    } else {
        // Nothing that is only damaged, lost, copied or a stranger's makes a run invalid.
        let is_blameless = !case.is_forged() && ledger.received > 0 && !codes.contains(&"perhaps_copies");
        assert!(!is_blameless, "{verdict:?}");
    }
}

impl Case {
    fn is_forged(&self) -> bool {
        let forges = |kind: &Stranger| matches!(kind, Stranger::NeverSent | Stranger::Forged(..));
        self.twin.is_some() || self.strangers.iter().any(|(.., kind)| forges(kind))
    }
}

fn fate(queues: usize, disorder: u64) -> impl Strategy<Value = Fate> {
    let flip = prop_oneof![9 => Just(None), 1 => (any::<prop::sample::Index>(), 0u8..8).prop_map(Some)];
    let one = (0..queues, 0..=disorder, flip);
    let late = (0..queues, Just(DRAIN / GAP + 1000), Just(None));
    prop_oneof![
        2 => Just(Vec::new()),
        10 => one.clone().prop_map(|one| vec![one]),
        3 => prop::collection::vec(one, 2..4),
        1 => late.prop_map(|late| vec![late]),
    ]
}

fn stranger() -> impl Strategy<Value = Stranger> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Stranger::Garbage),
        4 => Just(Stranger::NoChecksum),
        4 => Just(Stranger::OtherRun),
        4 => Just(Stranger::OtherLane),
        4 => Just(Stranger::Stale),
        1 => Just(Stranger::NeverSent),
        1 => (-1_000_000i64..1_000_000).prop_map(Stranger::Forged),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (
        1usize..4,
        1usize..4,
        prop::sample::select(vec![64usize, 256, 4096]),
        1u64..40,
    );
    sizes.prop_flat_map(|(queues, streams, window, burst)| {
        // A twin is known by packets near each other in time: of a run that is long and in order enough to have such.
        let alone = (
            prop_oneof![Just(0u64), 0u64..20, 0u64..400],
            1usize..400,
            Just(None),
        );
        let twin = (0u64..20, 200usize..400, (30u64..300).prop_map(Some));
        let packets = prop_oneof![6 => alone.boxed(), 1 => twin.boxed()].prop_flat_map(
            move |(disorder, count, twin)| (prop::collection::vec(fate(queues, disorder), count), Just(twin)),
        );
        let strangers = prop_oneof![
            2 => Just(Vec::new()),
            1 => prop::collection::vec((0..queues, 0u64..400, stranger()), 1..40),
        ];
        let verify = prop::sample::select(vec![Verify::Checksum, Verify::Payload]);
        let counters = [0u64..50, 0..50, 0..50];
        (packets, strangers, verify, counters).prop_map(
            move |((packets, twin), strangers, verify, counters)| Case {
                queues,
                streams,
                window,
                verify,
                burst,
                packets,
                strangers,
                twin,
                counters,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").map_or(4000, |cases| cases.parse().unwrap_or(4000)), ..ProptestConfig::default() })]
    #[test]
    fn what_is_valid_is_true(case in cases()) {
        check(&case);
    }
}
