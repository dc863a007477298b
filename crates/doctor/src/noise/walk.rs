//! Lays the kernel's events over stalls: interrupts, softirqs and timers are entered and left on a stack, over the task
//! that runs below them, and each stretch of time belongs to what is on top.

use std::collections::{BTreeMap, HashMap};

use super::attribute::{AttributedStall, Span, Stamped};
use super::cause::{Cause, Sender};
use super::event::Event;

/// An interrupt that is older than this when it arrives was another one, ticks of a few ms.
pub const ON_THE_WAY: u64 = 10_000_000;

/// What the timer of the tick calls (kernel: `kernel/time/tick-sched.c`; the first name until 6.8).
const TICKS: [&str; 2] = ["tick_sched_timer", "tick_nohz_handler"];

/// The timer's interrupt, until it is known for which timer it came.
const TICK: Cause = Cause::Vector("local_timer");

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
    /// The kernel's name for the function at an address, where it tells.
    pub function: &'a dyn Fn(u64) -> Option<String>,
    /// The name of a block device, by the kernel's number for it.
    pub disk: &'a dyn Fn(u32) -> String,
    /// What the other cores sent, in order.
    pub sent: &'a [Sent],
    /// How long what the kernel does can take.
    pub scale: Scale,
}

impl Around<'_> {
    /// The function at an address, or the address.
    fn named(&self, address: u64) -> String {
        (self.function)(address).unwrap_or_else(|| format!("{address:#x}"))
    }
}

/// How long what the kernel does can take, ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// The way into the kernel, until its first event, and the way out, after its last one.
    pub way: u64,
}

impl Scale {
    /// By a clock of `hz` ticks a second: 10 us for either way, some times what processors and hypervisors take.
    pub fn of(hz: f64) -> Self {
        Self {
            way: (hz * 10e-6) as u64,
        }
    }

    /// A handler of non-maskable interrupts tells of itself only when it has ended, 100 us.
    fn nmi(self) -> u64 {
        self.way.saturating_mul(10)
    }

    /// No interrupt's handler and no page fault takes this long undisturbed, but for very bad drivers: 1 ms.
    fn handler(self) -> u64 {
        self.way.saturating_mul(100)
    }

    /// Softirqs make way after some ms, and between two events of theirs much sooner: 10 ms.
    fn softirq(self) -> u64 {
        self.way.saturating_mul(1000)
    }
}

/// Walks over the events of one core, in their order, and names its stalls, in their order.
pub struct Walk<'a> {
    around: Around<'a>,
    /// Who runs below the interrupts; `None` is the program.
    task: Option<Cause>,
    /// Why the program does not run, where it is not for another task.
    away: Option<Cause>,
    stack: Vec<Cause>,
    /// What ended last: the way out of the kernel is its, too.
    last: Option<Cause>,
    /// Whether the tick was seen in this stall: its interrupt serves other timers, too.
    ticked: bool,
    /// The work items that tasks have begun, by the task.
    works: HashMap<u32, String>,
    /// Whether the program was on another core when it polled last.
    elsewhere: bool,
}

/// The time of a stall, as it is given to causes.
#[derive(Default)]
struct Times {
    parts: BTreeMap<Cause, u64>,
    doubtful: BTreeMap<Cause, u64>,
}

impl Times {
    fn add(&mut self, cause: Cause, ticks: u64) {
        *self.parts.entry(cause).or_default() += ticks;
    }

    /// What one cause had is another's.
    fn rename(&mut self, from: &Cause, to: &Cause) {
        for times in [&mut self.parts, &mut self.doubtful] {
            if let Some(ticks) = times.remove(from) {
                *times.entry(to.clone()).or_default() += ticks;
            }
        }
    }
}

impl<'a> Walk<'a> {
    /// Begins while the program runs.
    pub fn new(around: Around<'a>) -> Self {
        Self {
            around,
            task: None,
            away: None,
            stack: Vec::new(),
            last: None,
            ticked: false,
            works: HashMap::new(),
            elsewhere: false,
        }
    }

    /// After these events others were lost: what tasks had begun may have ended.
    pub fn lose_after(&mut self, events: &[Stamped]) {
        for event in events {
            self.step(event);
        }
        self.works.clear();
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
        self.away = None;
        self.stack.clear();
        let mut times = Times::default();
        let mut since = stall.from;
        for event in events[inside..].iter().take_while(|event| event.at <= stall.to) {
            self.lay(event, event.at.saturating_sub(since), &mut times);
            since = event.at;
        }
        let rest = stall.to.saturating_sub(since);
        match self.top() {
            Some(cause) => self.credit(cause, rest, &mut times),
            None => self.between(self.last.clone(), None, rest, &mut times),
        }
        // A signal from another core comes with an interrupt, which has no other purpose.
        let mut causes = times.parts.keys();
        if let Some(signal) = causes.find(|cause| matches!(cause, Cause::Signal(_))).cloned() {
            times.rename(&Cause::Vector("reschedule"), &signal);
        }
        // On another core than its own it is another core's events that would tell.
        let was_elsewhere = std::mem::replace(&mut self.elsewhere, stall.core != self.around.core);
        if was_elsewhere || self.elsewhere {
            return AttributedStall::whole(stall, Cause::Moved(stall.core));
        }
        let in_order = |times: BTreeMap<Cause, u64>| {
            let mut parts: Vec<_> = times.into_iter().filter(|(_, ticks)| *ticks > 0).collect();
            parts.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
            parts
        };
        AttributedStall {
            stall,
            parts: in_order(times.parts),
            doubtful: in_order(times.doubtful),
        }
    }

    /// Gives the `ticks` before an event to what had them.
    fn lay(&mut self, event: &Stamped, ticks: u64, times: &mut Times) {
        let is_told_at_its_end = matches!(event.event, Event::Polled(_) | Event::Completed(_));
        if is_told_at_its_end {
            self.step(event);
        }
        let (before, last) = (self.top(), self.last.clone());
        if !is_told_at_its_end {
            self.step(event);
        }
        let Some(cause) = before else {
            return self.between(last, self.current(), ticks, times);
        };
        self.credit(cause.clone(), ticks, times);
        if let (Event::Function(_), Some(known)) = (&event.event, self.current()) {
            // It had no name until now.
            times.rename(&cause, &known);
        }
        if let (Event::Timer(_), Some(timer @ Cause::Timer(_)), false) =
            (&event.event, self.current(), self.ticked)
        {
            // The interrupt was for this timer from its beginning.
            times.rename(&TICK, &timer);
        }
    }

    /// A stretch with this on top.
    fn credit(&self, cause: Cause, ticks: u64, times: &mut Times) {
        if cause == TICK && ticks > self.around.scale.handler() {
            // What the tick does is known, and short on any machine.
            times.add(Cause::Outside, ticks);
            return;
        }
        let most = match cause {
            Cause::Irq { .. }
            | Cause::Vector(_)
            | Cause::Call { .. }
            | Cause::Timer(_)
            | Cause::PageFault => self.around.scale.handler(),
            Cause::Softirq { .. } => self.around.scale.softirq(),
            _ => u64::MAX,
        };
        if ticks > most {
            *times.doubtful.entry(cause.clone()).or_default() += ticks;
        }
        times.add(cause, ticks);
    }

    /// A stretch with nothing on top: the way out of what ended last, the way into what comes next, and nothing that the
    /// kernel saw.
    fn between(&self, last: Option<Cause>, next: Option<Cause>, ticks: u64, times: &mut Times) {
        let mut left = ticks;
        for (cause, ends_unseen) in [(last, true), (next, false)] {
            let Some(cause) = cause else { continue };
            let most = match cause {
                Cause::PageFault | Cause::Signal(_) if ends_unseen => u64::MAX,
                Cause::Nmi => self.around.scale.nmi(),
                _ => self.around.scale.way,
            };
            let part = left.min(most);
            self.credit(cause, part, times);
            left -= part;
        }
        times.add(Cause::Outside, left);
    }

    /// What has the core now, beside the program.
    fn top(&self) -> Option<Cause> {
        self.stack.last().or(self.task.as_ref()).cloned()
    }

    /// What has the core now, or had it last in this stall; `None` if nothing was seen yet.
    fn current(&self) -> Option<Cause> {
        self.top().or_else(|| self.last.clone())
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
            Event::Switch {
                from,
                state,
                to,
                name,
            } => self.switch(*from, *state, *to, name),
            Event::Function(address) => {
                if let Some(Cause::Call { function, .. }) = self.stack.last_mut() {
                    *function = self.around.named(*address);
                }
            }
            // The queue of packets that have no interface of their own is called this.
            Event::Polled(name) if name == "(no_device)" => {}
            Event::Polled(name) => self.serves(name.clone()),
            Event::Completed(disk) => self.serves((self.around.disk)(*disk)),
            Event::Timer(address) => {
                let function = (self.around.function)(*address);
                let is_tick = function.as_deref().map(|function| TICKS.contains(&function));
                self.ticked |= is_tick == Some(true);
                let in_interrupt = self.stack.last() == Some(&TICK);
                let timer = match is_tick {
                    Some(true) => TICK,
                    // Without a name it is more likely the tick than anything else.
                    None if in_interrupt => TICK,
                    _ => Cause::Timer(self.around.named(*address)),
                };
                if let Some(interrupt) = self.stack.last_mut().filter(|cause| **cause == TICK) {
                    *interrupt = if self.ticked { TICK } else { timer.clone() };
                }
                self.stack.push(timer);
            }
            Event::Work { pid, function } => {
                self.works.insert(*pid, self.around.named(*function));
                self.rename_task(*pid);
            }
            Event::WorkDone { pid } => {
                self.works.remove(pid);
                self.rename_task(*pid);
            }
            Event::Send { .. } | Event::Call { .. } | Event::Return { .. } => {}
        }
    }

    /// The core goes from one task to another. Idle is no thief: nobody runs because the program may not.
    fn switch(&mut self, from: u32, state: u32, to: u32, name: &str) {
        if from == self.around.own {
            self.away = Cause::away_in(state);
        }
        self.last = self.task.take().or(self.last.take());
        self.task = match (to, &self.away) {
            (to, _) if to == self.around.own => {
                self.away = None;
                None
            }
            (_, Some(away)) => Some(away.clone()),
            (0, None) => Some(Cause::NotRunnable),
            (pid, None) => Some(Cause::Task {
                pid,
                name: name.to_owned(),
                work: self.works.get(&pid).cloned(),
            }),
        };
    }

    /// The softirq under way is for this device.
    fn serves(&mut self, name: String) {
        if let Some(Cause::Softirq { device, .. }) = self.stack.last_mut() {
            *device = Some(name);
        }
    }

    /// The task that runs has begun a work item, or has ended it.
    fn rename_task(&mut self, of: u32) {
        if let Some(Cause::Task { pid, work, .. }) = self.task.as_mut() {
            if *pid == of {
                *work = self.works.get(&of).cloned();
            }
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
mod tests;
