//! Everything that the kernel told of some cores, from a beginning to an end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use super::attribute::{AttributedStall, Span, Stamped};
use super::cause::{Cause, Sender};
use super::complete::{self, Bracket};
use super::counted::Counted;
use super::event::{CALL_NAMES, Event};
use super::format::plain;
use super::kept::{Kept, Lost};
use super::page;
use super::profilers::Profilers;
use super::symbols::Symbols;
use super::trace::{Subject, Trace, TraceError, own_threads};
use super::walk::{Around, ON_THE_WAY, Scale, Sent, Walk};
use host::cores::{Core, CoreSet};
use host::{Sys, threads};
use measure::{InterruptLine, Note};

/// What other cores sent, kept: a bound on memory.
const SENT_MAX: usize = 4 << 20;
/// Tasks whose names are known: another task may have the number of one that ended, and a day has many.
const NAMES_MAX: usize = 4096;

/// Of the kernel's number for a device the lower ones are its minor number (kernel: `include/linux/kdev_t.h`).
const MINOR_BITS: u32 = 20;

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    work: Trace,
    /// What the other cores send; none on a machine that has no others, or where it cannot be traced.
    sending: Option<Trace>,
    senders: Senders,
    /// What other cores sent and may be forgotten.
    sent: Vec<Sent>,
    /// Those before were asked for.
    sent_until: u64,
    kept: BTreeMap<Core, Kept>,
    known: BTreeMap<Core, Known>,
    cores: CoreSet,
    clock: fn() -> u64,
    sys: Sys,
    began: (Instant, u64),
    record: Record,
}

/// What is known of the stalls of a core.
#[derive(Debug, Default)]
struct Known {
    /// All that began before.
    until: u64,
    /// The latest of them, in order.
    stalls: Vec<Span>,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Record {
    /// The events of each core, in order.
    pub events: BTreeMap<Core, Vec<Stamped>>,
    /// When events of each core were lost, in order.
    pub lost: BTreeMap<Core, Vec<Lost>>,
    /// What other cores sent, in order.
    pub sent: Vec<Sent>,
    /// Records that found no room in the tracer, or here.
    pub missed: u64,
    /// What is not known, and why.
    pub notes: Vec<Note>,
    before: Bracket,
    after: Bracket,
    symbols: Symbols,
    disks: HashMap<u32, String>,
    counted: Counted,
    profilers: Profilers,
    /// Ticks of the clock a second.
    hz: f64,
}

impl Recorder {
    /// Begins to record what runs on `cores`, and what `others` send there. `clock` is the one of the polling loops.
    /// Begin it before they poll: attaching interrupts every core.
    pub fn start(
        sys: &Sys,
        cores: &CoreSet,
        others: &CoreSet,
        clock: fn() -> u64,
    ) -> Result<Self, TraceError> {
        if !threads::sees_all(sys) {
            return Err(TraceError::Namespace);
        }
        let sending = (!others.is_empty()).then(|| Trace::start("senders", others, Subject::Sending));
        let work = Trace::start("work", cores, Subject::Work)?;
        let mut notes = Vec::new();
        let sending = sending.and_then(|sending| {
            let unknown = |error| notes.push(unknown_senders(&error));
            sending.map_err(unknown).ok()
        });
        let symbols = Symbols::read(sys);
        notes.extend(symbols.are_hidden().then(hidden_symbols));
        let mut recorder = Self {
            work,
            sending,
            senders: Senders::new(),
            sent: Vec::new(),
            sent_until: 0,
            kept: cores.iter().map(|core| (core, Kept::default())).collect(),
            known: cores.iter().map(|core| (core, Known::default())).collect(),
            cores: cores.clone(),
            clock,
            sys: Sys::at(&sys.root),
            began: (Instant::now(), clock()),
            record: Record {
                disks: disks(sys),
                profilers: Profilers::new(sys, &symbols),
                symbols,
                before: Bracket::take(sys, clock),
                notes,
                ..Record::default()
            },
        };
        recorder.count(true);
        Ok(recorder)
    }

    /// Reads what the kernel counts beside its events.
    fn count(&mut self, now_or_never: bool) {
        let counted = &mut self.record.counted;
        counted.look(&self.sys, &self.cores, self.clock, now_or_never);
        self.record.profilers.look(&self.sys);
    }

    /// Takes over what the tracer has; often enough, or it overflows.
    pub fn collect(&mut self) {
        self.count(false);
        let Record {
            sent: named,
            missed,
            profilers,
            ..
        } = &mut self.record;
        let kept = &mut self.kept;
        self.work.read(|core, decoder, bytes| {
            let kept = kept.entry(core).or_default();
            let (last, mut first) = (kept.last(), None);
            let gone = page::records(bytes, |at, record| {
                let Some(event) = decoder.decode(record) else {
                    return;
                };
                profilers.see(&event);
                first.get_or_insert(at);
                *missed += u64::from(!kept.push(Stamped { at, event }));
            });
            if gone > 0 {
                kept.lose_since(last, first);
            }
            *missed += gone;
        });
        let (senders, sent) = (&mut self.senders, &mut self.sent);
        if let Some(sending) = &mut self.sending {
            sending.read(|core, decoder, bytes| {
                let gone = page::records(bytes, |at, record| {
                    if let Some(event) = decoder.decode(record) {
                        // Beyond that senders have no names.
                        let has_room = named.len() + sent.len() < SENT_MAX;
                        sent.extend(senders.step(at, core, &event).filter(|_| has_room));
                    }
                });
                *missed += gone;
            });
        }
    }

    /// Says that all stalls of `core` that began before `until` are known: `stalls` and those that were told before. Where
    /// this is told of every core, now and then, nothing is kept that names no stall, however long the recording: it is no
    /// proof any more that nothing is missing ([`Record::completeness`]).
    pub fn settle(&mut self, core: Core, until: u64, stalls: impl IntoIterator<Item = Span>) {
        let (Some(known), Some(kept)) = (self.known.get_mut(&core), self.kept.get_mut(&core)) else {
            return;
        };
        known.stalls.extend(stalls);
        known.until = until;
        kept.forget(until, &known.stalls);
        // What was sent some time before a stall names what arrived in it.
        let until = self.known.values().map(|known| known.until).min().unwrap_or(0);
        let due = until.saturating_sub(ON_THE_WAY);
        if due == self.sent_until {
            return;
        }
        self.sent_until = due;
        let known = &self.known;
        let names = |sent: &Sent| {
            let mut to = known
                .iter()
                .filter(|(core, _)| sent.to.is_none_or(|to| to == core.0));
            to.any(|(_, known)| {
                let next = known.stalls.partition_point(|stall| stall.to < sent.at);
                let stall = known.stalls.get(next);
                stall.is_some_and(|stall| stall.from.saturating_sub(ON_THE_WAY) <= sent.at)
            })
        };
        self.sent.retain(|sent| {
            let is_due = sent.at < due;
            if is_due && names(sent) {
                self.record.sent.push(sent.clone());
            }
            !is_due
        });
        for known in self.known.values_mut() {
            let over = known.stalls.partition_point(|stall| stall.to < due);
            known.stalls.drain(..over);
        }
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.kept.values().map(|kept| kept.count() as u64).sum()
    }

    /// Ends the recording.
    pub fn finish(mut self, sys: &Sys) -> Record {
        self.record.after = Bracket::take(sys, self.clock);
        self.work.stop();
        if let Some(sending) = &self.sending {
            sending.stop();
        }
        self.collect();
        self.count(true);
        let (began, since) = self.began;
        self.record.hz = (self.clock)().wrapping_sub(since) as f64 / began.elapsed().as_secs_f64().max(1e-9);
        let mut record = std::mem::take(&mut self.record);
        record.sent.append(&mut self.sent);
        record.sent.sort_by_key(|sent| sent.at);
        for (core, kept) in self.kept {
            let (events, lost) = kept.end();
            record.events.insert(core, events);
            record.lost.insert(core, lost);
        }
        record
    }
}

impl Record {
    /// What was recorded of one core.
    #[cfg(test)]
    pub fn of(core: Core, (events, lost): (Vec<Stamped>, Vec<Lost>)) -> Self {
        Self {
            events: BTreeMap::from([(core, events)]),
            lost: BTreeMap::from([(core, lost)]),
            ..Self::default()
        }
    }

    /// Names the stalls, in order, that the thread `own` saw on `core`.
    pub fn name(&self, core: Core, own: u32, stalls: &[Span]) -> Vec<AttributedStall> {
        let function = |address| {
            let name = self.symbols.name(address)?;
            Some(self.profilers.owned(address, name.to_owned()))
        };
        let disk = |number: u32| match self.disks.get(&number) {
            Some(name) => name.clone(),
            None => format!("{}:{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1)),
        };
        let mut walk = Walk::new(Around {
            own,
            core: core.0,
            function: &function,
            disk: &disk,
            sent: &self.sent,
            scale: Scale::of(self.hz),
        });
        let mut events = self.events_of(core);
        let mut lost = self.lost.get(&core).map_or(&[][..], Vec::as_slice);
        let named = stalls.iter().map(|stall| {
            let end = events.partition_point(|event| event.at <= stall.to);
            let (now, later) = events.split_at(end);
            events = later;
            let mut now = now;
            for since in lost
                .iter()
                .map(|lost| lost.0)
                .take_while(|since| *since <= stall.to)
            {
                let before;
                (before, now) = now.split_at(now.partition_point(|event| event.at <= since));
                walk.lose_after(before);
            }
            lost = &lost[lost.partition_point(|lost| lost.1 < stall.from)..];
            let is_in = lost.first().is_some_and(|lost| lost.0 <= stall.to);
            let named = walk.name(*stall, now);
            // On which core it was takes no event.
            if is_in && !matches!(named.cause(), Cause::Moved(_)) {
                AttributedStall::whole(*stall, Cause::Unrecorded)
            } else {
                named
            }
        });
        let mut named: Vec<_> = named.collect();
        self.counted.charge(core, &mut named, self.hz);
        named
    }

    /// What the kernel counted on `core`, and whether all of it was recorded.
    pub fn completeness(&self, core: Core) -> Vec<InterruptLine> {
        complete::compare(core, self.events_of(core), &self.before, &self.after)
    }

    fn events_of(&self, core: Core) -> &[Stamped] {
        self.events.get(&core).map_or(&[], Vec::as_slice)
    }
}

/// All else is known.
fn unknown_senders(error: &TraceError) -> Note {
    let text = format!("who sends interrupts from other cores is not known: {error}");
    Note::new("senders_unknown", text)
}

/// `kptr_restrict` hides the addresses of functions, at 1 from those without `CAP_SYSLOG`, at 2 from all.
fn hidden_symbols() -> Note {
    let text = "the kernel hides its functions from this process: timers are taken for the tick, and work and calls have \
        addresses for names; fix: sysctl kernel.kptr_restrict=1, and CAP_SYSLOG in a container";
    Note::new("symbols_hidden", text)
}

/// Who sends, in words.
#[derive(Debug)]
struct Senders {
    names: HashMap<u32, Arc<str>>,
    own_names: HashMap<Option<u64>, Arc<str>>,
    own: Vec<u32>,
    /// The system calls that our own threads are in.
    calls: HashMap<u32, u64>,
}

impl Senders {
    fn new() -> Self {
        Self {
            names: HashMap::new(),
            own_names: HashMap::new(),
            own: own_threads(),
            calls: HashMap::new(),
        }
    }

    fn step(&mut self, at: u64, core: Core, event: &Event) -> Option<Sent> {
        match *event {
            Event::Call { pid, number } => drop(self.calls.insert(pid, number)),
            Event::Return { pid } => drop(self.calls.remove(&pid)),
            Event::Send { to, pid } => {
                let who = if self.own.contains(&pid) {
                    let call = self.calls.get(&pid).copied();
                    self.own_names.entry(call).or_insert_with(|| own_name(call))
                } else {
                    if self.names.len() >= NAMES_MAX {
                        self.names.clear();
                    }
                    self.names
                        .entry(pid)
                        .or_insert_with(|| format!("{}, {pid}", name_of(pid)).into())
                };
                let who = Arc::clone(who);
                let sender = Sender { core: core.0, who };
                return Some(Sent { at, to, sender });
            }
            _ => {}
        }
        None
    }
}

fn own_name(call: Option<u64>) -> Arc<str> {
    match call {
        Some(number) => format!("own process: {}", call_name(number)).into(),
        None => "own process".into(),
    }
}

fn call_name(number: u64) -> String {
    let known = CALL_NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).to_owned())
}

fn name_of(pid: u32) -> String {
    if pid == 0 {
        return "idle".into();
    }
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.map_or_else(|_| "ended".into(), |name| plain(name.trim()))
}

/// The block devices, by the kernel's numbers for them.
fn disks(sys: &Sys) -> HashMap<u32, String> {
    const FOLDER: &str = "/sys/dev/block";
    let disk = |name: String| {
        let (major, minor) = name.split_once(':')?;
        let number = major.parse::<u32>().ok()? << MINOR_BITS | minor.parse::<u32>().ok()?;
        Some((number, sys.link_name(format!("{FOLDER}/{name}"))?))
    };
    sys.names(FOLDER).into_iter().filter_map(disk).collect()
}
