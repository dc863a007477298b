//! What a stall was: the kernel's events between its ends, and the time that each of them had.

use std::collections::BTreeMap;

use super::event::{Cause, Event, Sender};

/// An interrupt that is older than this when it arrives was another one, ticks of a few ms.
const ON_THE_WAY: u64 = 10_000_000;

/// What the timer of the tick calls (kernel: `kernel/time/tick-sched.c`; the first name until 6.8).
const TICKS: [&str; 2] = ["tick_sched_timer", "tick_nohz_handler"];

/// The timer's interrupt, until it is known for which timer it came.
const TICK: Cause = Cause::Vector("local_timer");

/// An event at its time. All times here are ticks of the one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// When.
    pub at: u64,
    /// What.
    pub event: Event,
}

/// A time in which a polling loop did not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its last stamp before.
    pub from: u64,
    /// Its first stamp after.
    pub to: u64,
}

impl Span {
    /// How long.
    pub fn ticks(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A stall with its causes. Their times add up to the stall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributedStall {
    /// The stall.
    pub stall: Span,
    /// What had the core, and for how long, ticks; the largest first.
    pub parts: Vec<(Cause, u64)>,
}

impl AttributedStall {
    /// The cause with the largest share.
    pub fn cause(&self) -> &Cause {
        self.parts.first().map_or(&Cause::Outside, |(cause, _)| cause)
    }

    /// Takes up to `ticks` of what the kernel did not see as the program's own work.
    pub fn own_work(&mut self, ticks: u64) {
        let Some(outside) = self.parts.iter().position(|(cause, _)| *cause == Cause::Outside) else {
            return;
        };
        let own = self.parts[outside].1.min(ticks);
        self.parts[outside].1 -= own;
        self.parts.push((Cause::OwnWork, own));
        self.parts.retain(|(_, ticks)| *ticks > 0);
        self.parts.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
    }
}

/// An interrupt that another core sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: u64,
    /// To which core; `None` is several, this one probably among them.
    pub to: Option<u32>,
    /// By whom.
    pub sender: Sender,
}

/// What the walk over a core's events is told besides them.
pub struct Around<'a> {
    /// The program's own thread.
    pub own: u32,
    /// The core.
    pub core: u32,
    /// The kernel's name for the function at an address.
    pub function: &'a dyn Fn(u64) -> String,
    /// What the other cores sent, in order.
    pub sent: &'a [Sent],
}

/// Walks over the events of one core, in their order, and names its stalls, in their order.
pub struct Walk<'a> {
    around: Around<'a>,
    /// Who runs below the interrupts; `None` is the program.
    task: Option<Cause>,
    stack: Vec<Cause>,
    /// What ended last: the way out of the kernel is its, too.
    last: Option<Cause>,
    /// Whether the tick was seen in this stall: its interrupt serves other timers, too.
    ticked: bool,
}

impl<'a> Walk<'a> {
    /// Begins while the program runs.
    pub fn new(around: Around<'a>) -> Self {
        Self {
            around,
            task: None,
            stack: Vec::new(),
            last: None,
            ticked: false,
        }
    }

    /// Names `stall`. `events` are those since the stall before, in order, the first ones possibly before this stall.
    pub fn name(&mut self, stall: Span, events: &[Stamped]) -> AttributedStall {
        let inside = events.partition_point(|event| event.at < stall.from);
        for event in &events[..inside] {
            self.step(event);
        }
        // The program polled when the stall began: whatever came before is over, even if its end was not seen, as with the
        // switch to the program itself before it was recorded.
        self.last = None;
        self.ticked = false;
        self.task = None;
        self.stack.clear();
        let mut times: BTreeMap<Cause, u64> = BTreeMap::new();
        let mut since = stall.from;
        for event in events[inside..].iter().take_while(|event| event.at <= stall.to) {
            if let Event::Polled(_) = event.event {
                // This is told at the end of it.
                self.step(event);
            }
            let before = self.current();
            let ticks = event.at.saturating_sub(since);
            if !matches!(event.event, Event::Polled(_)) {
                self.step(event);
            }
            // The way into the kernel belongs to what it leads to.
            let cause = before.or_else(|| self.current()).unwrap_or(Cause::Outside);
            *times.entry(cause.clone()).or_default() += ticks;
            if let (Event::Function(_), Some(known)) = (&event.event, self.current()) {
                // It had no name until now.
                let so_far = times.remove(&cause).unwrap_or_default();
                *times.entry(known).or_default() += so_far;
            }
            if let (Event::Timer(_), Some(timer @ Cause::Timer(_)), false) =
                (&event.event, self.current(), self.ticked)
            {
                // The interrupt was for this timer from its beginning.
                let so_far = times.remove(&TICK).unwrap_or_default();
                *times.entry(timer).or_default() += so_far;
            }
            since = event.at;
        }
        let rest = stall.to.saturating_sub(since);
        let cause = self.current().unwrap_or(Cause::Outside);
        *times.entry(cause).or_default() += rest;
        // A signal from another core comes with an interrupt, which has no other purpose.
        let signal = times
            .keys()
            .find(|cause| matches!(cause, Cause::Signal(_)))
            .cloned();
        if let Some(signal) = signal {
            let ticks = times.remove(&Cause::Vector("reschedule")).unwrap_or_default();
            *times.entry(signal).or_default() += ticks;
        }
        let mut parts: Vec<_> = times.into_iter().filter(|(_, ticks)| *ticks > 0).collect();
        parts.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        AttributedStall { stall, parts }
    }

    /// What has the core now, or had it last in this stall; `None` if nothing was seen yet.
    fn current(&self) -> Option<Cause> {
        self.stack
            .last()
            .or(self.task.as_ref())
            .or(self.last.as_ref())
            .cloned()
    }

    fn step(&mut self, stamped: &Stamped) {
        match &stamped.event {
            Event::Enter(cause @ (Cause::PageFault | Cause::Nmi | Cause::Signal(_))) => {
                self.last = Some(cause.clone());
            }
            Event::Enter(Cause::Softirq { vector, .. }) => {
                let after = self.stack.last().or(self.last.as_ref());
                let after = after.filter(|cause| !matches!(cause, Cause::Softirq { .. }));
                self.stack.push(Cause::Softirq {
                    vector: *vector,
                    device: None,
                    after: after.cloned().map(Box::new),
                });
            }
            Event::Enter(Cause::Call { function, .. }) => self.stack.push(Cause::Call {
                function: function.clone(),
                from: self.sender(stamped.at),
            }),
            Event::Enter(cause) => self.stack.push(cause.clone()),
            Event::Leave => self.last = self.stack.pop().or(self.last.take()),
            Event::Switch { pid, name } => {
                self.last = self.task.take().or(self.last.take());
                self.task = (*pid != self.around.own).then(|| Cause::Task {
                    pid: *pid,
                    name: name.clone(),
                });
            }
            Event::Function(address) => {
                if let Some(Cause::Call { function, .. }) = self.stack.last_mut() {
                    *function = (self.around.function)(*address);
                }
            }
            // The queue of packets that have no interface of their own is called this.
            Event::Polled(name) if name == "(no_device)" => {}
            Event::Polled(name) => {
                if let Some(Cause::Softirq { device, .. }) = self.stack.last_mut() {
                    *device = Some(name.clone());
                }
            }
            Event::Timer(address) => {
                let function = (self.around.function)(*address);
                self.ticked |= TICKS.contains(&function.as_str());
                let timer = if TICKS.contains(&function.as_str()) {
                    TICK
                } else {
                    Cause::Timer(function)
                };
                if let Some(interrupt) = self.stack.last_mut().filter(|cause| **cause == TICK) {
                    *interrupt = if self.ticked { TICK } else { timer.clone() };
                }
                self.stack.push(timer);
            }
            Event::Send { .. } | Event::Call { .. } | Event::Return { .. } => {}
        }
    }

    /// Who sent the interrupt that arrives now: the last one to have sent any here.
    fn sender(&self, now: u64) -> Option<Sender> {
        let before = self.around.sent.partition_point(|sent| sent.at <= now);
        self.around.sent[..before]
            .iter()
            .rev()
            .take_while(|sent| now - sent.at < ON_THE_WAY)
            .find(|sent| sent.to.is_none_or(|to| to == self.around.core))
            .map(|sent| sent.sender.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(at: u64, event: Event) -> Stamped {
        Stamped { at, event }
    }

    fn walk(sent: &[Sent]) -> Walk<'_> {
        Walk::new(Around {
            own: 1,
            core: 1,
            function: &|address| format!("function_{address}"),
            sent,
        })
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
        let named = walk(&[]).name(Span { from: 100, to: 160 }, &events);
        assert_eq!(named.parts, [(irq(), 60)]);
    }

    #[test]
    fn own_work_is_taken_from_what_nothing_explains() {
        let parts_after = |work| {
            let mut named = AttributedStall {
                stall: Span { from: 0, to: 100 },
                parts: vec![(Cause::Outside, 60), (irq(), 40)],
            };
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
        let named = walk(&[]).name(Span { from: 100, to: 200 }, &events);
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
        let named = walk(&[]).name(Span { from: 100, to: 200 }, &events);
        assert_eq!(
            named.parts,
            [(of("eth2"), 50), (of("eth1"), 30), (softirq(None), 20)]
        );
    }

    #[test]
    fn a_stall_without_events_is_from_outside() {
        let named = walk(&[]).name(Span { from: 100, to: 200 }, &[]);
        assert_eq!(named.parts, [(Cause::Outside, 100)]);
    }

    #[test]
    fn the_interrupt_that_brings_a_signal_is_the_signals() {
        let events = [
            at(110, Event::Enter(Cause::Vector("reschedule"))),
            at(150, Event::Leave),
            at(160, Event::Enter(Cause::Signal(10))),
        ];
        let named = walk(&[]).name(Span { from: 100, to: 200 }, &events);
        assert_eq!(named.parts, [(Cause::Signal(10), 100)]);
    }

    #[test]
    fn what_ended_unseen_is_over_when_the_program_polls() {
        let idle = Event::Switch {
            pid: 0,
            name: "swapper/1".into(),
        };
        let tick = Cause::Vector("local_timer");
        let events = [
            at(50, idle),
            at(110, Event::Enter(tick.clone())),
            at(150, Event::Leave),
        ];
        let named = walk(&[]).name(Span { from: 100, to: 160 }, &events);
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
        let named = walk(&[]).name(Span { from: 100, to: 160 }, &events);
        assert_eq!(named.parts, [(Cause::Timer("function_5".into()), 60)]);
    }

    #[test]
    fn another_task_is_named_until_we_are_back() {
        let to = |pid| Event::Switch {
            pid,
            name: "hog".into(),
        };
        let tick = Cause::Vector("local_timer");
        let events = [
            at(105, Event::Enter(tick.clone())),
            at(109, Event::Leave),
            at(110, to(7)),
            at(300, Event::Enter(tick.clone())),
            at(310, Event::Leave),
            at(400, to(1)),
        ];
        let named = walk(&[]).name(Span { from: 100, to: 405 }, &events);
        let hog = Cause::Task {
            pid: 7,
            name: "hog".into(),
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
        let named = walk(&sent).name(Span { from: 100, to: 125 }, &events);
        let call = Cause::Call {
            function: "function_9".into(),
            from: Some(sender(5)),
        };
        assert_eq!(named.parts, [(call, 25)]);
    }

    proptest! {
        /// Whatever the events, the parts add up to the stall.
        #[test]
        fn parts_add_up(
            kinds in prop::collection::vec((0_u64..50, 0_u8..5), 0..60),
            from in 0_u64..500,
            length in 1_u64..2000,
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
                        3 => Event::Switch { pid: (step % 2) as u32 + 1, name: "x".into() },
                        _ => Event::Leave,
                    })
                })
                .collect();
            let stall = Span { from, to: from + length };
            let named = walk(&[]).name(stall, &events);
            prop_assert_eq!(named.parts.iter().map(|(_, ticks)| ticks).sum::<u64>(), stall.ticks());
        }
    }
}
