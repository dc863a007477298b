use super::*;
use proptest::prelude::*;

fn at(at: u64, event: Event) -> Stamped {
    Stamped { at, event }
}

const OWN: u32 = 1;
const CORE: u32 = 1;
const RUNNABLE: u32 = 0;
/// The address of a function that the kernel does not name.
const HIDDEN: u64 = 99;

/// Ways are as long as these short stalls, unless a test is about them.
fn walk(sent: &[Sent]) -> Walk<'_> {
    walk_with(sent, 1_000)
}

fn walk_with(sent: &[Sent], way: u64) -> Walk<'_> {
    Walk::new(Around {
        own: OWN,
        core: CORE,
        function: &|address| (address != HIDDEN).then(|| format!("function_{address}")),
        disk: &|number| format!("disk_{number}"),
        sent,
        scale: Scale { way },
    })
}

fn span(from: u64, to: u64) -> Span {
    Span { from, to, core: CORE }
}

/// The core goes to this task; the program, where it is left, in this state.
fn switch(from: u32, state: u32, to: u32, name: &str) -> Event {
    Event::Switch {
        from,
        state,
        to,
        name: name.into(),
    }
}

fn irq() -> Cause {
    Cause::Irq {
        number: 38,
        name: "eth0".into(),
    }
}

fn softirq(after: Option<Cause>) -> Cause {
    Cause::Softirq {
        vector: 3,
        device: None,
        after: after.map(Box::new),
    }
}

#[test]
fn entry_and_exit_belong_to_the_interrupt() {
    let events = [at(110, Event::Enter(irq())), at(150, Event::Leave)];
    let named = walk(&[]).name(span(100, 160), &events);
    assert_eq!(named.parts, [(irq(), 60)]);
}

#[test]
fn own_work_is_taken_from_what_nothing_explains() {
    let parts_after = |work| {
        let mut named = AttributedStall::whole(span(0, 100), Cause::Outside);
        named.reassign(|_| true, &irq(), 40);
        named.own_work(work);
        named.parts
    };
    let some = [(irq(), 40), (Cause::Outside, 35), (Cause::OwnWork, 25)];
    assert_eq!(parts_after(25), some);
    assert_eq!(parts_after(1000), [(Cause::OwnWork, 60), (irq(), 40)]);
}

#[test]
fn a_softirq_knows_its_parent() {
    let events = [
        at(110, Event::Enter(irq())),
        at(120, Event::Leave),
        at(125, Event::Enter(softirq(None))),
        at(190, Event::Leave),
    ];
    let named = walk(&[]).name(span(100, 200), &events);
    assert_eq!(named.parts, [(softirq(Some(irq())), 75), (irq(), 25)]);
}

#[test]
fn a_softirq_is_the_interfaces_that_it_polls() {
    let polled = |name: &str| Event::Polled(name.into());
    let of = |name: &str| Cause::Softirq {
        vector: 3,
        device: Some(name.into()),
        after: None,
    };
    let events = [
        at(110, Event::Enter(softirq(None))),
        at(120, polled("(no_device)")),
        at(150, polled("eth1")),
        at(190, polled("eth2")),
        at(195, Event::Leave),
    ];
    let named = walk(&[]).name(span(100, 200), &events);
    assert_eq!(
        named.parts,
        [(of("eth2"), 50), (of("eth1"), 30), (softirq(None), 20)]
    );
}

#[test]
fn a_stall_without_events_is_from_outside() {
    let named = walk(&[]).name(span(100, 200), &[]);
    assert_eq!(named.parts, [(Cause::Outside, 100)]);
}

#[test]
fn the_interrupt_that_brings_a_signal_is_the_signals() {
    let events = [
        at(110, Event::Enter(Cause::Vector("reschedule"))),
        at(150, Event::Leave),
        at(160, Event::Enter(Cause::Signal(10))),
    ];
    let named = walk(&[]).name(span(100, 200), &events);
    assert_eq!(named.parts, [(Cause::Signal(10), 100)]);
}

#[test]
fn what_ended_unseen_is_over_when_the_program_polls() {
    let idle = switch(OWN, RUNNABLE, 0, "swapper/1");
    let tick = Cause::Vector("local_timer");
    let events = [
        at(50, idle),
        at(110, Event::Enter(tick.clone())),
        at(150, Event::Leave),
    ];
    let named = walk(&[]).name(span(100, 160), &events);
    assert_eq!(named.parts, [(tick, 60)]);
}

#[test]
fn the_interrupt_of_another_timer_is_no_tick() {
    let events = [
        at(110, Event::Enter(TICK)),
        at(120, Event::Timer(5)),
        at(140, Event::Leave),
        at(150, Event::Leave),
    ];
    let named = walk(&[]).name(span(100, 160), &events);
    assert_eq!(named.parts, [(Cause::Timer("function_5".into()), 60)]);
}

/// With `kptr_restrict` no timer has a name, the tick as little as others.
#[test]
fn a_timer_without_a_name_in_the_timer_s_interrupt_is_the_tick() {
    let events = [
        at(110, Event::Enter(TICK)),
        at(120, Event::Timer(HIDDEN)),
        at(140, Event::Leave),
        at(150, Event::Leave),
    ];
    let named = walk(&[]).name(span(100, 160), &events);
    assert_eq!(named.parts, [(TICK, 60)]);
}

#[test]
fn another_task_is_named_until_we_are_back() {
    let to = |pid| switch(8 - pid, RUNNABLE, pid, "hog");
    let tick = Cause::Vector("local_timer");
    let events = [
        at(105, Event::Enter(tick.clone())),
        at(109, Event::Leave),
        at(110, to(7)),
        at(300, Event::Enter(tick.clone())),
        at(310, Event::Leave),
        at(400, to(1)),
    ];
    let named = walk(&[]).name(span(100, 405), &events);
    let hog = Cause::Task {
        pid: 7,
        name: "hog".into(),
        work: None,
    };
    assert_eq!(named.parts, [(hog, 285), (tick, 20)]);
}

#[test]
fn an_interrupt_from_another_core_has_a_sender_and_a_function() {
    let sender = |pid: u32| Sender {
        core: 0,
        who: format!("unmapper, {pid}").into(),
    };
    let sent = |at, to, pid| Sent {
        at,
        to,
        sender: sender(pid),
    };
    let sent = [sent(90, None, 5), sent(95, Some(3), 6), sent(130, Some(1), 7)];
    let call = Cause::Call {
        function: "call".into(),
        from: None,
    };
    let events = [
        at(110, Event::Enter(call)),
        at(112, Event::Function(9)),
        at(120, Event::Leave),
    ];
    let named = walk(&sent).name(span(100, 125), &events);
    let call = Cause::Call {
        function: "function_9".into(),
        from: Some(sender(5)),
    };
    assert_eq!(named.parts, [(call, 25)]);
}

/// 40 ms at a nanosecond a tick, of which the kernel saw the last 5 us.
#[test]
fn what_happened_before_a_tick_is_not_the_ticks() {
    let (ms, us) = (1_000_000, 1_000);
    let events = [
        at(40 * ms, Event::Enter(TICK)),
        at(40 * ms + 5 * us, Event::Leave),
    ];
    let mut walk = walk_with(&[], Scale::of(1e9).way);
    let named = walk.name(span(0, 40 * ms + 6 * us), &events);
    assert_eq!(named.cause(), &Cause::Outside);
    assert_eq!(
        named.parts,
        [(Cause::Outside, 40 * ms - 10 * us), (TICK, 16 * us)]
    );
}

#[test]
fn what_happened_after_an_interrupt_is_not_its_own() {
    let events = [at(110, Event::Enter(irq())), at(150, Event::Leave)];
    let named = walk_with(&[], 10).name(span(100, 900), &events);
    assert_eq!(named.parts, [(Cause::Outside, 740), (irq(), 60)]);
}

/// A page fault and a signal have no event at their end.
#[test]
fn what_ends_unseen_lasts_until_the_program_goes_on() {
    for cause in [Cause::PageFault, Cause::Signal(10)] {
        let events = [at(110, Event::Enter(cause.clone()))];
        let named = walk_with(&[], 10).name(span(100, 900), &events);
        assert_eq!(named.parts, [(cause, 800)]);
    }
}

#[test]
fn an_interrupt_that_lasts_too_long_is_doubtful() {
    let events = [at(110, Event::Enter(irq())), at(5_000, Event::Leave)];
    let named = walk_with(&[], 10).name(span(100, 5_000), &events);
    assert_eq!(named.parts, [(irq(), 4_900)]);
    assert_eq!(named.doubtful, [(irq(), 4_890)]);
    let events = [at(100, Event::Enter(softirq(None))), at(15_000, Event::Leave)];
    let named = walk_with(&[], 10).name(span(100, 15_000), &events);
    assert_eq!(named.doubtful, [(softirq(None), 14_900)]);
}

/// What it does is known, and is short; so it is from outside even where the hypervisor does not count steal.
#[test]
fn no_tick_lasts_long() {
    let events = [at(110, Event::Enter(TICK)), at(5_000, Event::Leave)];
    let named = walk_with(&[], 10).name(span(100, 5_005), &events);
    assert_eq!(named.parts, [(Cause::Outside, 4_890), (TICK, 15)]);
    assert_eq!(named.doubtful, []);
}

/// `prev_state` says why the program left, whoever runs meanwhile.
#[test]
fn who_waits_or_is_stopped_is_not_preempted() {
    const SLEEPS: u32 = 1;
    const WAITS_FOR_DISK: u32 = 2;
    const STOPPED: u32 = 4;
    const PREEMPTED: u32 = 0x100;
    for (state, to, cause) in [
        (SLEEPS, 0, Cause::Waiting),
        (WAITS_FOR_DISK, 7, Cause::Waiting),
        (STOPPED, 0, Cause::Stopped),
        (STOPPED, 7, Cause::Stopped),
        (PREEMPTED, 0, Cause::NotRunnable),
        (RUNNABLE, 0, Cause::NotRunnable),
    ] {
        let events = [
            at(110, switch(OWN, state, to, "next")),
            at(200, switch(to, RUNNABLE, 9, "another")),
            at(210, switch(9, SLEEPS, to, "next")),
            at(900, switch(to, RUNNABLE, OWN, "own")),
        ];
        let named = walk(&[]).name(span(100, 905), &events);
        assert_eq!(named.cause(), &cause, "{state:#x} to {to}");
        let preempted = named.time_of(|cause| matches!(cause, Cause::Task { .. }));
        assert_eq!(preempted > 0, cause == Cause::NotRunnable, "{named:?}");
    }
}

/// What another core's events say is nothing about the program.
#[test]
fn a_program_that_was_moved_is_elsewhere_until_it_is_back() {
    let elsewhere = |from, to| Span {
        core: 3,
        ..span(from, to)
    };
    let tick = |from| [at(from + 10, Event::Enter(TICK)), at(from + 15, Event::Leave)];
    let mut walk = walk(&[]);
    let mut name = |stall: Span| walk.name(stall, &tick(stall.from)).parts;
    assert_eq!(name(span(100, 120)), [(TICK, 20)]);
    assert_eq!(name(elsewhere(200, 300)), [(Cause::Moved(3), 100)]);
    assert_eq!(name(elsewhere(400, 410)), [(Cause::Moved(3), 10)]);
    assert_eq!(name(span(500, 540)), [(Cause::Moved(1), 40)]);
    assert_eq!(name(span(600, 620)), [(TICK, 20)]);
}

#[test]
fn a_kworker_is_called_after_its_work() {
    let worker = |work: Option<&str>| Cause::Task {
        pid: 7,
        name: "kworker/1:2".into(),
        work: work.map(str::to_owned),
    };
    let events = [
        at(100, switch(OWN, RUNNABLE, 7, "kworker/1:2")),
        at(110, Event::Work { pid: 7, function: 5 }),
        // The work item waits for something, and goes on later.
        at(300, switch(7, 2, OWN, "own")),
        at(400, switch(OWN, RUNNABLE, 7, "kworker/1:2")),
        at(500, Event::WorkDone { pid: 7 }),
        at(540, switch(7, 2, OWN, "own")),
    ];
    let named = walk(&[]).name(span(100, 540), &events);
    let way_out = 100;
    assert_eq!(
        named.parts,
        [(worker(Some("function_5")), 290 + way_out), (worker(None), 50)]
    );
    let said = worker(Some("function_5")).to_string();
    assert_eq!(said, "preempted by kworker/1:2: function_5");
}

#[test]
fn a_softirq_of_a_disk_names_it() {
    let block = |disk: Option<&str>| Cause::Softirq {
        vector: 4,
        device: disk.map(str::to_owned),
        after: None,
    };
    let events = [
        at(100, Event::Enter(block(None))),
        at(150, Event::Completed(5)),
        at(160, Event::Leave),
    ];
    let named = walk(&[]).name(span(100, 160), &events);
    assert_eq!(named.parts, [(block(Some("disk_5")), 60)]);
}

proptest! {
    /// Whatever the events, the parts add up to the stall.
    #[test]
    fn parts_add_up(
        kinds in prop::collection::vec((0_u64..50, 0_u8..5), 0..60),
        from in 0_u64..500,
        length in 1_u64..2000,
        way in 0_u64..100,
    ) {
        let mut now = 0;
        let events: Vec<_> = kinds
            .into_iter()
            .map(|(step, kind)| {
                now += step;
                at(now, match kind {
                    0 => Event::Enter(irq()),
                    1 => Event::Enter(softirq(None)),
                    2 => Event::Enter(Cause::PageFault),
                    3 => switch((step % 3) as u32, step as u32, (step % 2) as u32 + 1, "x"),
                    _ => Event::Leave,
                })
            })
            .collect();
        let stall = span(from, from + length);
        let named = walk_with(&[], way).name(stall, &events);
        prop_assert_eq!(named.parts.iter().map(|(_, ticks)| ticks).sum::<u64>(), stall.ticks());
    }
}
