//! A rate is one rate over all workers, and over rules that are exchanged meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]

use std::sync::{Arc, Barrier};

use dataplane::forward::{ForwardCounters, ForwardPlan, ForwardTask, Judge, Rewrite, RuleCounters};
use dataplane::memory::MemoryLink;
use dataplane::slot::{Exchange, Slot};
use dataplane::{Phase, Task};
use measure::{Clock, Ticks};
use proptest::prelude::*;
use rules::Tables;
use rules::limit::Limiter;
use wire::Template;

use crate::support::spec;

/// Frames that each worker gets between two exchanges.
const FRAMES: u64 = 200;
const NOW: Ticks = Ticks(1_000_000_000);

fn frame() -> Vec<u8> {
    let template = Template::new(&spec(64, 0));
    template.unwrap().bytes().to_vec()
}

/// One worker: forwards all that it gets, exchanging its rules `swaps` times. How many frames were within the rate, and how many not.
fn worker(burst: u64, swaps: usize, limiter: &Arc<Limiter>, start: &Barrier) -> (u64, u64) {
    let judge = |further: usize| {
        let text = format!(
            "{}rate 1pps per source burst {burst}\n",
            "deny tcp\n".repeat(further)
        );
        let set = rules::parse("rules", &|_: &str| Ok(text.clone())).unwrap();
        let met = RuleCounters::new(set.rules.len());
        Judge::new(Arc::new(Tables::new(&set).unwrap()), Arc::clone(limiter), met)
    };
    let (from, to) = (MemoryLink::new(usize::MAX), MemoryLink::new(usize::MAX));
    let exchange = Exchange::new();
    let counters = Arc::<ForwardCounters>::default();
    let plan = ForwardPlan {
        burst: 32,
        hold_ticks: 1,
        takes_chains: false,
        lengths: None,
        takes_rest: true,
        rewrite: Rewrite::Nothing,
        rules: Some((judge(0), Arc::clone(&exchange))),
        clock: Clock::from_calibration(0, 0, 1e9),
        flows: None,
        samples: None,
        counters: Arc::clone(&counters),
    };
    let (_totals, leave) = Slot::new();
    let mut task = ForwardTask::new(from.clone(), to, plan, leave);
    start.wait();
    for swap in 0..=swaps {
        (0..FRAMES).for_each(|_| from.inject(&frame()));
        while !from.is_empty() {
            task.poll(NOW, Phase::Run);
        }
        exchange.leave(judge(swap + 1));
        task.renew();
        drop(exchange.take_back());
    }
    (counters.forwarded.get(), counters.denied.get())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn as_many_pass_as_come_at_once(workers in 1_usize..5, swaps in 0_usize..4, burst in 1_u64..4000) {
        let (limiter, start) = (Arc::new(Limiter::new(64, 7)), Barrier::new(workers));
        let ends: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let start = || scope.spawn(|| worker(burst, swaps, &limiter, &start));
            let threads: Vec<_> = (0..workers).map(|_| start()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let sent = FRAMES * (swaps as u64 + 1) * workers as u64;
        let passed: u64 = ends.iter().map(|(passed, _)| passed).sum();
        let denied: u64 = ends.iter().map(|(_, denied)| denied).sum();
        prop_assert_eq!(passed + denied, sent);
        // No time goes by: neither more workers nor other rules make it more.
        prop_assert_eq!(passed, sent.min(burst));
    }
}
