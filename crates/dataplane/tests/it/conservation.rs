//! The real loops over memory links and a virtual clock: what the injector did is found again, to the packet.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]
#![allow(
    clippy::similar_names,
    clippy::too_many_lines,
    reason = "one run, told from beginning to end"
)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::support::{START, now, receive_plan, set_now};
use dataplane::fault::{FaultCounters, FaultSpec, Faults, RateLimit};
use dataplane::memory::{MemoryBuffers, MemoryLink};
use dataplane::receive::{ReceiveCounters, ReceivePlan, ReceiveResult, ReceiveTask};
use dataplane::reflect::{OwnMac, ReflectCounters, ReflectPlan, ReflectTask};
use dataplane::reflector_counters::Answers;
use dataplane::reply::ReplyQueue;
use dataplane::send::{SendCounters, SendPlan, SendResult, SendTask};
use dataplane::slot::Slot;
use dataplane::{Phase, Task};
use measure::{Clock, Entry, IntervalCollector, IntervalRing, Nanos, Pacer, Rate, Ticks};
use proptest::prelude::*;
use wire::{Addresses, Ends, Foreign, Template, TemplateSpec, Verify};

const DRAIN: u64 = 50_000_000;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    packets: u64,
    rate: Option<f64>,
    streams: u16,
    flows: u32,
    burst: usize,
    capacity: usize,
    step_ns: u64,
    v6: bool,
    vlans: usize,
    fault: FaultSpec,
    garbage: bool,
    lag_ns: u64,
    /// The NIC completes the checksums; every second stream then has a tag more.
    offload: bool,
}

struct Outcome {
    sent: SendResult,
    /// What the intervals say of each stream, and what they had no room for.
    sent_rows: Vec<u64>,
    sent_outside: u64,
    received: ReceiveResult,
    send: Arc<SendCounters>,
    receive: Arc<ReceiveCounters>,
    fault: Arc<FaultCounters>,
    reflect: Arc<ReflectCounters>,
}

fn template(case: &Case, stream: u16) -> Template {
    let template = Template::new(&spec(case, stream)).unwrap();
    if case.offload {
        template.with_checksum_offload()
    } else {
        template
    }
}

fn spec(case: &Case, stream: u16) -> TemplateSpec {
    let ip = |last: u8| -> IpAddr {
        if case.v6 {
            format!("2001:2::{last}").parse().unwrap()
        } else {
            [198, 18, 0, last].into()
        }
    };
    let tag = |outer: bool| wire::VlanTag {
        tpid: if outer { 0x88A8 } else { 0x8100 },
        id: 7,
        pcp: 0,
    };
    TemplateSpec {
        vlans: (0..case.vlans + usize::from(case.offload && stream % 2 == 1))
            .take(wire::MAX_VLANS)
            .map(|index| tag(case.vlans == 2 && index == 0))
            .collect(),
        src: SocketAddr::new(ip(1), 49152),
        dst: SocketAddr::new(ip(2), 7),
        run: 9,
        lane: stream,
        flows: case.flows,
        ..TemplateSpec::plain(100 + usize::from(stream) * 13)
    }
}

fn run(case: &Case) -> Outcome {
    set_now(START - 1000);
    let clock = Clock::from_calibration(0, 0, 1e9);
    let (there, back) = (MemoryLink::new(case.capacity), MemoryLink::new(case.capacity));
    let (send, receive) = (SendCounters::new(), ReceiveCounters::new());
    let (reflect, fault) = (ReflectCounters::new(), Arc::new(FaultCounters::default()));
    let streams = usize::from(case.streams);
    let sent_in = Arc::new(IntervalRing::for_sender(streams, 50_000_000, 64, Nanos(START)).unwrap());
    let received_in = Arc::new(IntervalRing::new(streams, 50_000_000, 64, Nanos(START)).unwrap());
    let replies = Arc::<ReplyQueue>::default();
    let me = Addresses {
        mac: [2, 0, 0, 0, 0, 1],
        ips: vec![[198, 18, 0, 1].into()],
    };
    let rate = case.rate.map_or(Rate::Max, Rate::Pps);
    let ((sent, leave_sent), (received, leave_received)) = (Slot::new(), Slot::new());
    let (reflected, leave_reflected) = Slot::new();
    let mut sender: Box<dyn Task> = Box::new(SendTask::new(
        there.clone(),
        MemoryBuffers,
        SendPlan {
            templates: (0..case.streams).map(|stream| template(case, stream)).collect(),
            schedule: (0..case.streams)
                .map(|stream| Entry {
                    stream,
                    template: u32::from(stream),
                })
                .collect(),
            flows: vec![case.flows; usize::from(case.streams)],
            flow_start: 0,
            flow_step: 1,
            lane_base: 0,
            pacer: Pacer::new(rate, Ticks(START), 1e9).with_limit(case.packets),
            end: Ticks(u64::MAX),
            burst: case.burst,
            backlog: 1024,
            cut: Arc::new(AtomicU64::new(u64::MAX)),
            clock,
            intervals: Arc::clone(&sent_in),
            counters: Arc::clone(&send),
            replies: Arc::clone(&replies),
            checksum_offload: case.offload,
        },
        leave_sent,
    ));
    let faults = Faults::new(
        &case.fault,
        case.seed,
        1e9,
        1 << 16,
        MemoryBuffers,
        Arc::clone(&fault),
    );
    let mut reflector: Box<dyn Task> = Box::new(ReflectTask::new(
        there.clone(),
        back.clone(),
        ReflectPlan {
            own_mac: OwnMac::Any,
            only_ours: false,
            me: Addresses {
                mac: [2, 0, 0, 0, 0, 2],
                ips: vec![[198, 18, 0, 2].into()],
            },
            burst: 32,
            hold_ticks: u64::MAX,
            takes_rest: true,
            counters: Arc::clone(&reflect),
            own_counters: None,
        },
        Some(faults),
        leave_reflected,
    ));
    let mut receiver: Box<dyn Task> = Box::new(ReceiveTask::new(
        back.clone(),
        ReceivePlan {
            first_lane: 0,
            lanes: usize::from(case.streams),
            streams: usize::from(case.streams),
            window: 1 << 16,
            unions: Arc::default(),
            own_macs: Arc::default(),
            ends: (0..case.streams)
                .map(|stream| Ends::of(&spec(case, stream)))
                .collect(),
            latency_bits: 7,
            run: 9,
            start: Nanos(START),
            drain_ns: DRAIN,
            verify: Verify::Payload,
            burst: 32,
            clock,
            tsc: now,
            intervals: received_in,
            counters: Arc::clone(&receive),
            me,
            replies,
            answers: Arc::new(Answers::default()),
            holes_max: 1 << 16,
            senders: Vec::new(),
        },
        leave_received,
    ));
    // Virtual time goes on until everything is out of every hand: a delayed probe is at most DRAIN / 2 under way.
    let mut quiet_until = START + 4 * DRAIN;
    while now().0 < quiet_until {
        set_now(now().0 + case.step_ns);
        let phase_at = |at: u64| if at < START { Phase::Warm } else { Phase::Run };
        let phase = phase_at(now().0);
        // A receiver that was stopped after it had looked at the phase polls with the one before.
        let seen = phase_at(now().0 - case.lag_ns);
        if case.garbage && now().0 % 7 == 0 && send.intended.get() < case.packets {
            back.inject(&case.seed.to_le_bytes().repeat((now().0 % 20) as usize));
        }
        let moved = sender.poll(now(), phase) + reflector.poll(now(), phase) + receiver.poll(now(), seen);
        if moved > 0 || send.intended.get() < case.packets {
            quiet_until = now().0 + 4 * DRAIN;
        }
        if moved == 0 && now().0 > START {
            // Nothing to do: let time pass faster, slower than any backlog bound.
            set_now(
                now().0
                    + if send.intended.get() < case.packets {
                        5_000
                    } else {
                        500_000
                    },
            );
        }
    }
    for task in [sender, receiver, reflector] {
        task.finish();
    }
    assert_eq!(reflected.take().unwrap().held, 0, "the reflector keeps nothing");
    assert!(there.is_empty() && back.is_empty(), "nothing is left on the wire");
    let mut collector = IntervalCollector::new(vec![sent_in], 0);
    let mut sent_rows = vec![0; streams];
    collector.ends_at(Nanos(now().0));
    while let Some(row) = collector.next_remaining() {
        let streams = sent_rows.iter_mut().zip(&row.streams);
        streams.for_each(|(sum, stream)| *sum += stream.sent);
    }
    Outcome {
        sent_rows,
        sent_outside: collector.overrun() + collector.stale(),
        sent: sent.take().unwrap(),
        received: received.take().unwrap(),
        send,
        receive,
        fault,
        reflect,
    }
}

fn check(case: &Case) {
    let o = run(case);
    let accepted: u64 = o.sent.accepted.iter().sum();
    assert_eq!(
        o.send.intended.get(),
        case.packets,
        "every packet asked for was intended"
    );
    assert_eq!(
        accepted + o.send.abandoned.get() + o.sent.unsent,
        case.packets,
        "intended = accepted + unsent"
    );
    assert_eq!(o.send.accepted.get(), accepted);
    assert_eq!(
        o.sent.bytes,
        o.reflect.bytes.get(),
        "bytes of what was taken, however little of a burst"
    );
    assert_eq!(o.sent_rows.iter().sum::<u64>() + o.sent_outside, accepted);
    if o.sent_outside == 0 {
        assert_eq!(o.sent_rows, o.sent.accepted, "by streams");
    }
    assert_eq!(
        o.send.full_ticks.get() > 0,
        o.send.queue_full.get() > 0,
        "a full queue keeps packets waiting, and nothing else counts as that"
    );
    assert_eq!(o.fault.seen.get(), accepted, "the injector saw every probe");
    let received: u64 = o.received.lanes.iter().map(|lane| lane.received).sum();
    assert_eq!(
        received,
        accepted - o.fault.drop.get() - o.fault.corrupt.get(),
        "received = accepted - dropped - corrupt"
    );
    let duplicate: u64 = o.received.lanes.iter().map(|lane| lane.duplicate).sum();
    assert_eq!(duplicate, o.fault.duplicate.get(), "every duplicate is found");
    let reordered: u64 = o.received.lanes.iter().map(|lane| lane.reordered).sum();
    assert_eq!(reordered, o.fault.reorder.get(), "every overtaken probe is found");
    assert_eq!(
        o.receive.corrupt.get(),
        o.fault.corrupt.get(),
        "every flipped bit is found"
    );
    assert_eq!(
        o.receive.late.get() + o.receive.too_old.get() + o.receive.stale.get(),
        0
    );
    let foreign: u64 = (0..Foreign::COUNT)
        .map(|kind| o.receive.foreign[kind].get())
        .sum();
    assert_eq!(
        o.receive.frames.get(),
        received + duplicate + o.receive.corrupt.get() + foreign,
        "every frame has one class"
    );
    assert_eq!(
        o.reflect.returned.get() + o.fault.drop.get(),
        accepted + o.fault.duplicate.get()
    );
    if !case.garbage {
        assert_eq!(foreign, 0);
    }
    let latency: u64 = o.received.latency.iter().map(measure::Histogram::count).sum();
    assert_eq!(latency, received, "every received probe has a latency");
    for (stream, lane) in o.received.lanes.iter().enumerate() {
        assert!(lane.received <= o.sent.accepted[stream]);
    }
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.001), 0.0..0.2f64]
}

prop_compose! {
    fn cases()(
        seed in any::<u64>(), packets in 1u64..1200, paced in any::<bool>(), rate in 1e5..5e7f64,
        streams in 1u16..5, flows in prop_oneof![Just(1u32), 1u32..5000], burst in 1usize..64,
        capacity in 64usize..2048, step_ns in 200u64..5000, v6 in any::<bool>(), vlans in 0usize..3,
        shares in [share(), share(), share(), share(), share()], delay_ns in 0u64..DRAIN / 2, garbage in any::<bool>(),
        limit in proptest::option::of((1e3f64..1e7, 1u32..500)),
        lag_ns in prop_oneof![Just(0), 0u64..1_000_000], offload in any::<bool>(),
    ) -> Case {
        let [drop, duplicate, reorder, corrupt, delay] = shares;
        let limit = limit.map(|(pps, burst)| RateLimit { pps, burst });
        Case {
            seed, packets, rate: paced.then_some(rate), streams, flows, burst, capacity, step_ns, v6, vlans,
            fault: FaultSpec { limit, drop, duplicate, reorder, corrupt, delay, delay_ns }, garbage, lag_ns, offload,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").map_or(3000, |cases| cases.parse().unwrap()), ..ProptestConfig::default() })]
    #[test]
    fn the_ledger_finds_exactly_what_was_injected(case in cases()) {
        check(&case);
    }
}

/// One stream of one flow, and nothing that goes wrong.
fn plain() -> Case {
    Case {
        seed: 3,
        packets: 500,
        rate: Some(1e6),
        streams: 1,
        flows: 1,
        burst: 8,
        capacity: 512,
        step_ns: 500,
        v6: false,
        vlans: 0,
        fault: FaultSpec::default(),
        garbage: false,
        lag_ns: 0,
        offload: false,
    }
}

/// Whatever order the streams come in, and also where there is one only: each frame by its own headers.
#[test]
fn a_nic_completes_the_checksum_of_every_frame() {
    for (streams, v6) in [(1, false), (1, true), (4, false), (4, true)] {
        let case = Case {
            streams,
            v6,
            offload: true,
            ..plain()
        };
        let o = run(&case);
        assert_eq!((o.receive.corrupt.get(), o.receive.received.get()), (0, 500));
    }
}

#[test]
fn a_late_probe_is_late_not_lost_nor_received() {
    let case = Case {
        fault: FaultSpec {
            delay: 0.1,
            delay_ns: DRAIN + 1_000_000,
            ..FaultSpec::default()
        },
        ..plain()
    };
    let o = run(&case);
    let late: u64 = o.received.lanes.iter().map(|lane| lane.late).sum();
    assert!(late > 0);
    assert_eq!(late, o.fault.delay.get());
    assert_eq!(o.received.lanes[0].received + late, 500);
}

#[test]
fn a_policer_lets_through_its_rate_and_one_burst() {
    let (packets, rate, limit) = (
        20_000,
        1e6,
        RateLimit {
            pps: 250e3,
            burst: 100,
        },
    );
    let case = Case {
        packets,
        rate: Some(rate),
        fault: FaultSpec {
            limit: Some(limit),
            ..FaultSpec::default()
        },
        ..plain()
    };
    let o = run(&case);
    assert_eq!(o.fault.drop.get(), o.fault.limit.get());
    let passed = packets - o.fault.limit.get();
    let wanted = packets as f64 / rate * limit.pps + f64::from(limit.burst);
    // The first and the last poll are not quite the first and the last departure.
    assert!(
        (wanted - 20.0..wanted + 20.0).contains(&(passed as f64)),
        "{passed}"
    );
    assert_eq!(o.received.lanes[0].received, passed);
}

/// What a receiver leaves that got one probe, stamped `stamp_ns` by its sender.
fn received_of(stamp_ns: u64) -> (Arc<ReceiveCounters>, ReceiveResult) {
    set_now(START);
    let wire = MemoryLink::new(64);
    let mut frame = vec![0; 256];
    let template = template(&plain(), 0);
    template.write(&mut frame, &wire::BurstStamp::new(stamp_ns, 0), 0, None);
    wire.inject(&frame[..template.frame_len()]);
    let counters = ReceiveCounters::new();
    let (left, leave) = Slot::new();
    let mut receiver = Box::new(ReceiveTask::new(wire, receive_plan(&counters, DRAIN), leave));
    receiver.poll(now(), Phase::Run);
    receiver.finish();
    (counters, left.take().unwrap())
}

#[test]
fn probes_of_an_earlier_run_are_stale() {
    let (counters, _) = received_of(START - 5_000_000);
    assert_eq!((counters.stale.get(), counters.received.get()), (1, 0));
}

#[test]
fn probes_from_the_future_are_in_no_histogram() {
    let (counters, left) = received_of(START + 5_000_000);
    assert_eq!((counters.received.get(), left.clock_backwards), (1, 1));
    assert_eq!((left.latency[0].count(), left.latency_scheduled.count()), (0, 0));
    let (_, left) = received_of(START);
    assert_eq!((left.latency[0].count(), left.clock_backwards), (1, 0));
}
