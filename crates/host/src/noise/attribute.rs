//! What a gap was: the kernel's events between its ends, and the time that each of them had.

use std::collections::BTreeMap;

use super::event::{Cause, Event};

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
pub struct Gap {
    /// Its last stamp before.
    pub from: u64,
    /// Its first stamp after.
    pub to: u64,
}

impl Gap {
    /// How long.
    pub fn ticks(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// A gap with its causes. Their times add up to the gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The gap.
    pub gap: Gap,
    /// What had the core, and for how long, ticks; the largest first.
    pub parts: Vec<(Cause, u64)>,
}

impl Named {
    /// The cause with the largest share.
    pub fn cause(&self) -> &Cause {
        self.parts.first().map_or(&Cause::Outside, |(cause, _)| cause)
    }
}

/// Walks over the events of one core, in their order, and names its gaps, in their order.
#[derive(Debug)]
pub struct Walk {
    /// The program's own thread.
    own: u32,
    /// Who runs below the interrupts; `None` is the program.
    task: Option<Cause>,
    stack: Vec<Cause>,
    /// What ended last: the way out of the kernel is its, too.
    last: Option<Cause>,
}

impl Walk {
    /// Begins while the thread `own` runs.
    pub fn new(own: u32) -> Self {
        Self {
            own,
            task: None,
            stack: Vec::new(),
            last: None,
        }
    }

    /// Names `gap`. `events` are those since the gap before, in order, the first ones possibly before this gap.
    pub fn name(&mut self, gap: Gap, events: &[Stamped]) -> Named {
        let inside = events.partition_point(|event| event.at < gap.from);
        for event in &events[..inside] {
            self.step(&event.event);
        }
        // What is in force when the gap begins was entered between two polls, or is nothing.
        self.last = None;
        let mut times: BTreeMap<Cause, u64> = BTreeMap::new();
        let mut since = gap.from;
        for event in events[inside..].iter().take_while(|event| event.at <= gap.to) {
            let before = self.current();
            let ticks = event.at.saturating_sub(since);
            self.step(&event.event);
            // The way into the kernel belongs to what it leads to.
            let cause = before.or_else(|| self.current()).unwrap_or(Cause::Outside);
            *times.entry(cause).or_default() += ticks;
            since = event.at;
        }
        let rest = gap.to.saturating_sub(since);
        let cause = self.current().unwrap_or(Cause::Outside);
        *times.entry(cause).or_default() += rest;
        let mut parts: Vec<_> = times.into_iter().filter(|(_, ticks)| *ticks > 0).collect();
        parts.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        Named { gap, parts }
    }

    /// What has the core now, or had it last in this gap; `None` if nothing was seen yet.
    fn current(&self) -> Option<Cause> {
        self.stack
            .last()
            .or(self.task.as_ref())
            .or(self.last.as_ref())
            .cloned()
    }

    fn step(&mut self, event: &Event) {
        match event {
            Event::Enter(cause @ (Cause::PageFault | Cause::Nmi)) => self.last = Some(cause.clone()),
            Event::Enter(Cause::Softirq { vector, .. }) => {
                let after = self.stack.last().or(self.last.as_ref());
                let after = after.filter(|cause| !matches!(cause, Cause::Softirq { .. }));
                self.stack.push(Cause::Softirq {
                    vector: *vector,
                    after: after.cloned().map(Box::new),
                });
            }
            Event::Enter(cause) => self.stack.push(cause.clone()),
            Event::Leave => self.last = self.stack.pop().or(self.last.take()),
            Event::Switch { pid, name } => {
                self.last = self.task.take().or(self.last.take());
                self.task = (*pid != self.own).then(|| Cause::Task {
                    pid: *pid,
                    name: name.clone(),
                });
            }
            Event::Function(_) | Event::Send { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(at: u64, event: Event) -> Stamped {
        Stamped { at, event }
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
            after: after.map(Box::new),
        }
    }

    #[test]
    fn entry_and_exit_belong_to_the_interrupt() {
        let events = [at(110, Event::Enter(irq())), at(150, Event::Leave)];
        let named = Walk::new(1).name(Gap { from: 100, to: 160 }, &events);
        assert_eq!(named.parts, [(irq(), 60)]);
    }

    #[test]
    fn a_softirq_knows_its_parent() {
        let events = [
            at(110, Event::Enter(irq())),
            at(120, Event::Leave),
            at(125, Event::Enter(softirq(None))),
            at(190, Event::Leave),
        ];
        let named = Walk::new(1).name(Gap { from: 100, to: 200 }, &events);
        assert_eq!(named.parts, [(softirq(Some(irq())), 75), (irq(), 25)]);
    }

    #[test]
    fn a_gap_without_events_is_from_outside() {
        let named = Walk::new(1).name(Gap { from: 100, to: 200 }, &[]);
        assert_eq!(named.parts, [(Cause::Outside, 100)]);
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
        let named = Walk::new(1).name(Gap { from: 100, to: 405 }, &events);
        let hog = Cause::Task {
            pid: 7,
            name: "hog".into(),
        };
        assert_eq!(named.parts, [(hog, 285), (tick, 20)]);
    }

    proptest! {
        /// Whatever the events, the parts add up to the gap.
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
            let gap = Gap { from, to: from + length };
            let named = Walk::new(1).name(gap, &events);
            prop_assert_eq!(named.parts.iter().map(|(_, ticks)| ticks).sum::<u64>(), gap.ticks());
        }
    }
}
