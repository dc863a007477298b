//! The forwarding loop over memory links and a virtual clock: every frame is judged once by one whole set, keeps its place in
//! the order, and ends somewhere that counted it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]

use std::sync::Arc;

use dataplane::forward::{
    ForwardCounters, ForwardPlan, ForwardResult, ForwardTask, FromHost, Host, Judge, Lengths, Rewrite,
    RuleCounters, ToHost,
};
use dataplane::io::{Frames as _, Receive as _};
use dataplane::memory::{MemoryBuffers, MemoryFrame, MemoryLink};
use dataplane::slot::{Exchange, Slot};
use dataplane::{Phase, Task};
use measure::{Clock, Ticks};
use proptest::prelude::*;
use rules::limit::Limiter;
use rules::{RuleSet, Spelling, Tables, Totals, Verdict};
use wire::{Template, TemplateSpec};

const HOLD: u64 = 1_000;

/// A probe to this port whose number is at its end.
fn frame(port: u16, number: u32) -> Vec<u8> {
    let template = Template::new(&TemplateSpec {
        dst_ports: port..=port,
        ..TemplateSpec::plain(128)
    });
    let mut bytes = template.unwrap().bytes().to_vec();
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Its port and number again.
fn told(bytes: &[u8]) -> (u16, u32) {
    let number = bytes.last_chunk::<4>().unwrap();
    (
        u16::from_be_bytes([bytes[36], bytes[37]]),
        u32::from_be_bytes(*number),
    )
}

fn set(text: &str) -> RuleSet {
    rules::parse("rules", &|_: &str| Ok(text.to_owned())).unwrap()
}

/// A set on its way to a task, and what it counts there.
struct Given {
    spellings: Vec<Spelling>,
    met: Arc<RuleCounters>,
}

fn judge(text: &str, limiter: &Arc<Limiter>) -> (Judge, Given) {
    let set = set(text);
    let met = RuleCounters::new(set.rules.len());
    let tables = Arc::new(Tables::new(&set).unwrap());
    let judge = Judge::new(tables, Arc::clone(limiter), Arc::clone(&met));
    let spellings = set.spellings();
    (judge, Given { spellings, met })
}

/// A task between two links.
struct Bench {
    from: MemoryLink,
    to: MemoryLink,
    task: Box<dyn Task>,
    counters: Arc<ForwardCounters>,
    totals: Slot<ForwardResult>,
    now: u64,
}

impl Bench {
    fn new(
        capacity: usize,
        (rewrite, takes_chains): (Rewrite, bool),
        rules: Option<(Judge, Arc<Exchange<Judge>>)>,
    ) -> Self {
        Self::with_lengths(capacity, (rewrite, takes_chains), rules, None)
    }

    fn with_lengths(
        capacity: usize,
        (rewrite, takes_chains): (Rewrite, bool),
        rules: Option<(Judge, Arc<Exchange<Judge>>)>,
        lengths: Option<Lengths>,
    ) -> Self {
        let (from, to) = (MemoryLink::new(usize::MAX), MemoryLink::new(capacity));
        let (totals, leave) = Slot::new();
        let counters = Arc::<ForwardCounters>::default();
        let plan = ForwardPlan {
            burst: 32,
            hold_ticks: HOLD,
            takes_chains,
            lengths,
            takes_rest: true,
            rewrite,
            rules,
            flows: None,
            samples: None,
            // A tick is a nanosecond.
            clock: Clock::from_calibration(0, 0, 1e9),
            counters: Arc::clone(&counters),
        };
        Self {
            task: Box::new(ForwardTask::new(from.clone(), to.clone(), plan, leave)),
            from,
            to,
            counters,
            totals,
            now: 1,
        }
    }

    fn poll(&mut self, phase: Phase) {
        self.task.poll(Ticks(self.now), phase);
    }

    /// Takes up to `count` frames from the far end.
    fn take(&self, count: usize) -> Vec<Vec<u8>> {
        let mut link = self.to.clone();
        let mut batch = link.batch();
        link.receive(&mut batch, count);
        (0..batch.len())
            .map(|index| batch.segments(index).flatten().copied().collect())
            .collect()
    }

    /// Ends the task; what it counted adds up with what it holds.
    fn end(self) -> u64 {
        self.task.finish();
        let held = self.totals.get().unwrap().held;
        assert_eq!(self.counters.held(), held);
        held
    }
}

/// What waits at the end came before it: it goes on as far as it can, and the rest of it is held. What comes after is nobody's.
#[test]
fn what_waits_at_the_end_goes_on_or_is_held() {
    for (room, left) in [(usize::MAX, 0), (40, 60)] {
        let mut bench = Bench::new(room, (Rewrite::Nothing, true), None);
        (0..100).for_each(|number| bench.from.inject(&frame(9, number)));
        bench.poll(Phase::Run);
        while bench.task.take_rest(Ticks(bench.now)) > 0 {}
        assert_eq!(bench.counters.is_rest_taken.get(), u64::from(left == 0));
        bench.from.inject(&frame(9, 100));
        bench.poll(Phase::Drain);
        assert_eq!(bench.take(usize::MAX).len(), 100 - left, "{room}");
        let counters = Arc::clone(&bench.counters);
        // Of what is still before it nobody can tell whether it came before.
        let after = usize::from(left > 0);
        assert_eq!(bench.end(), (left + after) as u64);
        assert_eq!(counters.frames.get(), (100 + after) as u64);
    }
}

#[test]
fn addresses_are_as_the_mode_says() {
    let (one, other) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let anew = Rewrite::Addresses {
        destination: [6; 6],
        source: [7; 6],
    };
    for (rewrite, destination, source) in [
        (Rewrite::Nothing, other, one),
        (Rewrite::Swap, one, other),
        (anew, [6; 6], [7; 6]),
    ] {
        let mut bench = Bench::new(64, (rewrite, false), None);
        let sent = frame(7, 1);
        bench.from.inject(&sent);
        bench.from.inject(&sent[..11]);
        bench.poll(Phase::Run);
        let left = bench.take(2);
        assert_eq!((&left[0][..6], &left[0][6..12]), (&destination[..], &source[..]));
        assert_eq!(left[0][12..], sent[12..], "the rest is as it was");
        assert_eq!(left[1], sent[..11], "what has no addresses stays");
        assert_eq!(bench.end(), 0);
    }
}

#[test]
fn chains_go_on_whole_or_are_counted() {
    for takes_chains in [true, false] {
        let mut bench = Bench::new(64, (Rewrite::Swap, takes_chains), None);
        bench.from.inject(&frame(7, 1));
        let long: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
        bench.from.inject_frame(MemoryFrame::new(&long));
        bench.from.inject(&frame(7, 2));
        bench.poll(Phase::Run);
        let left = bench.take(3);
        assert_eq!(bench.counters.oversized.get(), u64::from(!takes_chains));
        assert_eq!(left.len(), 2 + usize::from(takes_chains));
        assert_eq!(told(left.last().unwrap()), (7, 2), "the others keep their order");
        if takes_chains {
            assert_eq!(left[1][12..], long[12..]);
        }
        assert_eq!(bench.counters.bytes.get(), 5000 + 2 * 124);
    }
}

#[test]
fn what_was_cut_or_is_too_long_for_the_other_port_is_counted() {
    let lengths = Some(Lengths {
        cut_at: 1982,
        longest: 1514,
    });
    let mut bench = Bench::with_lengths(64, (Rewrite::Nothing, false), None, lengths);
    let tagged = [0x81, 0];
    for (len, kind) in [(1514, [8, 0]), (1515, [8, 0]), (1518, tagged), (1519, tagged)] {
        let mut long = vec![0; len];
        long[12..14].copy_from_slice(&kind);
        bench.from.inject(&long);
    }
    bench.poll(Phase::Run);
    let left: Vec<usize> = bench.take(4).iter().map(Vec::len).collect();
    assert_eq!((left, bench.counters.oversized.get()), (vec![1514, 1518], 2));

    let lengths = lengths.map(|lengths| Lengths {
        longest: usize::MAX,
        ..lengths
    });
    let mut bench = Bench::with_lengths(64, (Rewrite::Nothing, false), None, lengths);
    for len in [1981, 1982, 1986] {
        bench.from.inject(&vec![0; len]);
    }
    bench.poll(Phase::Run);
    let left: Vec<usize> = bench.take(4).iter().map(Vec::len).collect();
    assert_eq!((left, bench.counters.oversized.get()), (vec![1981], 2));
}

#[test]
fn a_full_queue_is_waited_for_and_then_given_up() {
    let mut bench = Bench::new(2, (Rewrite::Nothing, false), None);
    (0..3).for_each(|number| bench.from.inject(&frame(7, number)));
    bench.poll(Phase::Run);
    (3..9).for_each(|number| bench.from.inject(&frame(7, number)));
    bench.now += HOLD;
    bench.poll(Phase::Run);
    assert_eq!(
        (bench.from.len(), bench.counters.held()),
        (6, 1),
        "nothing more is taken"
    );
    // What moves begins the time anew.
    assert_eq!(bench.take(1).len(), 1);
    bench.poll(Phase::Run);
    assert_eq!(
        (bench.counters.forwarded.get(), bench.counters.tx_full.get()),
        (3, 0)
    );
    bench.now += HOLD;
    bench.poll(Phase::Run);
    assert_eq!(bench.counters.tx_full.get(), 0, "not longer than it may be");
    bench.now += HOLD + 1;
    bench.poll(Phase::Run);
    assert_eq!(bench.counters.tx_full.get(), 6);
    assert_eq!(bench.end(), 0);
}

#[test]
fn at_the_end_what_came_before_it_leaves_and_nothing_more_is_taken() {
    let mut bench = Bench::new(4, (Rewrite::Nothing, false), None);
    (0..10).for_each(|number| bench.from.inject(&frame(7, number)));
    bench.poll(Phase::Run);
    (10..20).for_each(|number| bench.from.inject(&frame(7, number)));
    let mut numbers = Vec::new();
    while bench.counters.is_rest_taken.get() == 0 || bench.counters.held() > 0 {
        bench.poll(Phase::Drain);
        numbers.extend(bench.take(4).iter().map(|bytes| told(bytes).1));
    }
    bench.from.inject(&frame(7, 20));
    bench.poll(Phase::Drain);
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    assert_eq!(bench.from.len(), 1);
    assert_eq!(bench.end(), 0);
}

#[test]
fn a_rate_goes_on_from_set_to_set() {
    let limiter = Arc::new(Limiter::new(64, 1));
    let rate = "rate 1pps per source burst 5 udp\n";
    let (first, given) = judge(&format!("{rate}default allow\n"), &limiter);
    let exchange = Exchange::new();
    let mut bench = Bench::new(
        64,
        (Rewrite::Nothing, false),
        Some((first, Arc::clone(&exchange))),
    );
    (0..3).for_each(|number| bench.from.inject(&frame(7, number)));
    bench.poll(Phase::Run);
    let (second, again) = judge(&format!("deny tcp\n{rate}default allow\n"), &limiter);
    exchange.leave(second);
    bench.task.renew();
    assert!(exchange.take_back().is_some());
    (3..9).for_each(|number| bench.from.inject(&frame(7, number)));
    bench.poll(Phase::Run);
    let passed: Vec<u32> = bench.take(64).iter().map(|bytes| told(bytes).1).collect();
    assert_eq!(passed, [0, 1, 2, 3, 4], "a reload is no amnesty");
    let [before, after] = [given, again].map(|given| given.met.get());
    assert_eq!((before.rules[0].packets, before.default.packets), (0, 3));
    assert_eq!((after.rules[1].packets, after.default.packets), (4, 2));
}

/// A step of a run with rules.
#[derive(Clone, Debug)]
enum Step {
    /// Frames to these ports come.
    Inject(Vec<u16>),
    Poll,
    /// The far end takes frames.
    Take(usize),
    /// So much time goes by.
    Wait(u64),
    /// Another set is left for the task, and it is renewed.
    Swap,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(0_u16..4, 1..80).prop_map(Step::Inject),
        6 => Just(Step::Poll),
        3 => (1_usize..100).prop_map(Step::Take),
        1 => (1_u64..2 * HOLD).prop_map(Step::Wait),
        2 => Just(Step::Swap),
    ]
}

/// Two sets that agree about ports 0 (passes) and 1 (does not), and not about 2 and 3. Neither leaves any for its default.
const SETS: [&str; 2] = [
    "allow udp dport 0,2\ndeny udp dport 1,3\ndefault allow\n",
    "deny tcp\ndeny udp dport 2\ndeny udp dport 1\nallow udp\ndefault deny\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_frame_is_judged_once_and_ends_somewhere(steps in prop::collection::vec(step(), 1..200), capacity in 1_usize..80) {
        let limiter = Arc::new(Limiter::new(4, 1));
        let exchange = Exchange::new();
        let (first, given) = judge(SETS[0], &limiter);
        let mut all = vec![given];
        let mut bench = Bench::new(capacity, (Rewrite::Nothing, false), Some((first, Arc::clone(&exchange))));
        let (mut sent, mut left): (Vec<u16>, Vec<(u16, u32)>) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Inject(ports) => for port in ports {
                    bench.from.inject(&frame(port, sent.len() as u32));
                    sent.push(port);
                },
                Step::Poll => bench.poll(Phase::Run),
                Step::Take(count) => left.extend(bench.take(count).iter().map(|bytes| told(bytes))),
                Step::Wait(ticks) => bench.now += ticks,
                Step::Swap => {
                    let (next, given) = judge(SETS[all.len() % 2], &limiter);
                    all.push(given);
                    exchange.leave(next);
                    bench.task.renew();
                    prop_assert!(exchange.take_back().is_some());
                }
            }
        }
        let counters = Arc::clone(&bench.counters);
        let (waits, under_way) = (bench.from.len() as u64, bench.to.clone());
        let held = bench.end();
        let frames = counters.frames.get();
        prop_assert_eq!(frames + waits, sent.len() as u64);
        let gone = counters.denied.get() + counters.tx_full.get() + counters.forwarded.get();
        prop_assert_eq!(frames, gone + held);
        prop_assert_eq!(counters.forwarded.get(), (left.len() + under_way.len()) as u64);
        // In the order in which they came, each once, and as it was.
        prop_assert!(left.windows(2).all(|two| two[0].1 < two[1].1));
        prop_assert!(left.iter().all(|(port, number)| sent[*number as usize] == *port && *port != 1));
        let mut totals = Totals::default();
        for given in &all {
            totals.add(&given.spellings, &given.met.get());
        }
        let of = |verdict: Verdict| totals.rules.iter().filter(|(rule, _)| rule.verdict == verdict).map(|(_, met)| met.packets).sum::<u64>();
        prop_assert_eq!(of(Verdict::Deny), counters.denied.get());
        prop_assert_eq!(of(Verdict::Allow), frames - counters.denied.get());
        prop_assert!(totals.rules.keys().all(|rule| !rule.text.starts_with("default")), "judged by parts of two sets");
        // Of what both sets agree about, every frame that was taken went where it must.
        let taken = &sent[..frames as usize];
        let met = |texts: &[&str]| totals.rules.iter().filter(|(rule, _)| texts.contains(&&*rule.text)).map(|(_, met)| met.packets).sum::<u64>();
        let count = |ports: &[u16]| taken.iter().filter(|port| ports.contains(port)).count() as u64;
        prop_assert!(met(&["deny udp dport 1,3", "deny udp dport 1"]) >= count(&[1]));
        prop_assert!(met(&["allow udp dport 0,2", "allow udp"]) >= count(&[0]));
        let bytes: u64 = totals.rules.values().map(|met| met.bytes).sum();
        prop_assert_eq!(bytes, counters.bytes.get());
    }
}

/// The host's part: all that is for it goes there, copies of what is for all, and what it says goes out; each frame is at one
/// place, whatever fits.
#[test]
fn the_host_gets_what_is_its_own_and_copies_of_what_is_for_all() {
    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];
    for (room, host_room) in [(1000, 1000), (1000, 3), (5, 1000), (1000, 0)] {
        let links = [usize::MAX, room, host_room, usize::MAX].map(MemoryLink::new);
        let [from, to, towards, comes] = links;
        let (totals, leave) = Slot::new();
        let counters = Arc::<ForwardCounters>::default();
        let plan = ForwardPlan {
            burst: 32,
            hold_ticks: HOLD,
            takes_chains: false,
            lengths: None,
            takes_rest: true,
            rewrite: Rewrite::Nothing,
            rules: None,
            flows: None,
            samples: None,
            clock: Clock::from_calibration(0, 0, 1e9),
            counters: Arc::clone(&counters),
        };
        let clock: (fn() -> Ticks, u64) = (|| Ticks(0), 1_000_000);
        let host = Host {
            to: Some(ToHost::new(towards.clone(), MemoryBuffers, HOST, clock)),
            from: Some(FromHost::new(comes.clone(), clock)),
        };
        let mut task = ForwardTask::beside(from.clone(), to.clone(), host, plan, leave);
        let mut sent = [0_u64; 3];
        for number in 0..200_u8 {
            let kind = usize::from(number % 3);
            let destination = [[2, 0, 0, 0, 0, 1], HOST, [0xFF; 6]][kind];
            let mut frame = [number; 80];
            frame[..6].copy_from_slice(&destination);
            from.inject(&frame);
            sent[kind] += 1;
            if number % 10 == 0 {
                comes.inject(&[7; 70]);
            }
        }
        for now in 1..100_u64 {
            task.poll(Ticks(now * HOLD), Phase::Run);
        }
        Box::new(task).finish();
        let count = |counter: &measure::Counter| counter.get();
        assert_eq!(count(&counters.frames), 200);
        assert_eq!(count(&counters.from_kernel), 20);
        let own = count(&counters.forwarded_own);
        assert!(own <= 20 && own + count(&counters.tx_full) >= 20);
        assert!(own == 20 || count(&counters.tx_full) > 0);
        assert_eq!(count(&counters.to_kernel) + count(&counters.kernel_full), sent[1]);
        assert_eq!(count(&counters.copied) + count(&counters.uncopied), sent[2]);
        assert_eq!(
            count(&counters.forwarded) + count(&counters.tx_full),
            sent[0] + sent[2] + 20
        );
        assert_eq!((counters.held(), totals.get().unwrap().held), (0, 0));
        assert_eq!(
            towards.len() as u64,
            count(&counters.to_kernel) + count(&counters.copied)
        );
        assert_eq!(to.len() as u64, count(&counters.forwarded));
        if host_room == 1000 {
            assert_eq!(
                (count(&counters.to_kernel), count(&counters.copied)),
                (sent[1], sent[2])
            );
        }
        let mut out = towards.clone();
        let mut batch = out.batch();
        while out.receive(&mut batch, 32) > 0 {
            for index in 0..batch.len() {
                let bytes = batch.bytes(index);
                assert!(bytes[..6] == HOST || bytes[..6] == [0xFF; 6]);
                assert!(bytes.len() == 80 && bytes[6..].iter().all(|byte| *byte == bytes[6]));
            }
            batch.clear();
        }
    }
}
