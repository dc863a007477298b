//! Everything that the kernel told of some cores, from a beginning to an end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use super::attribute::{AttributedStall, Span, Stamped};
use super::cause::Sender;
use super::complete::{self, Bracket};
use super::counted::Counted;
use super::event::{CALL_NAMES, Event};
use super::page;
use super::profilers::Profilers;
use super::symbols::Symbols;
use super::trace::{Subject, Trace, TraceError, own_threads};
use super::walk::{Around, Scale, Sent, Walk};
use host::Sys;
use host::cores::{Core, CoreSet};
use measure::InterruptLine;

/// Buffer of the tracer for one core, KiB: some 300,000 events.
const BUFFER_KIB: u32 = 16 << 10;
/// Events kept of one core: minutes under heavy load, and a bound on memory.
const EVENTS_MAX: usize = 4 << 20;

/// Of the kernel's number for a device the lower ones are its minor number (kernel: `include/linux/kdev_t.h`).
const MINOR_BITS: u32 = 20;

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    work: Trace,
    /// What the other cores send; none on a machine that has no others.
    sending: Option<Trace>,
    senders: Senders,
    cores: CoreSet,
    clock: fn() -> u64,
    sys: Sys,
    began: (Instant, u64),
    record: Record,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Record {
    /// The events of each core, in order.
    pub events: BTreeMap<Core, Vec<Stamped>>,
    /// What other cores sent, in order.
    pub sent: Vec<Sent>,
    /// Records that found no room in the tracer, or here.
    pub missed: u64,
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
        let sending = (!others.is_empty())
            .then(|| Trace::start("senders", others, Subject::Sending, BUFFER_KIB))
            .transpose()?;
        let work = Trace::start("work", cores, Subject::Work, BUFFER_KIB)?;
        let events = cores.iter().map(|core| (core, Vec::new())).collect();
        let symbols = Symbols::read(sys);
        let mut recorder = Self {
            work,
            sending,
            senders: Senders::new(),
            cores: cores.clone(),
            clock,
            sys: Sys::at(&sys.root),
            began: (Instant::now(), clock()),
            record: Record {
                events,
                disks: disks(sys),
                profilers: Profilers::new(sys, &symbols),
                symbols,
                before: Bracket::take(sys, clock),
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
            events,
            sent,
            missed,
            profilers,
            ..
        } = &mut self.record;
        self.work.read(|core, decoder, bytes| {
            let list = events.entry(core).or_default();
            let gone = page::records(bytes, |at, record| {
                let Some(event) = decoder.decode(record) else {
                    return;
                };
                profilers.see(&event);
                if list.len() < EVENTS_MAX {
                    list.push(Stamped { at, event });
                } else {
                    *missed += 1;
                }
            });
            *missed += gone;
        });
        let senders = &mut self.senders;
        if let Some(sending) = &mut self.sending {
            sending.read(|core, decoder, bytes| {
                let gone = page::records(bytes, |at, record| {
                    if let Some(event) = decoder.decode(record) {
                        // Beyond that senders have no names.
                        sent.extend(senders.step(at, core, &event).filter(|_| sent.len() < EVENTS_MAX));
                    }
                });
                *missed += gone;
            });
        }
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.record.events.values().map(|list| list.len() as u64).sum()
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
        record.sent.sort_by_key(|sent| sent.at);
        record
    }
}

impl Record {
    /// Names the stalls, in order, that the thread `own` saw on `core`.
    pub fn name(&self, core: Core, own: u32, stalls: &[Span]) -> Vec<AttributedStall> {
        let function = |address| self.profilers.owned(address, self.symbols.name(address));
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
        let named = stalls.iter().map(|stall| {
            let end = events.partition_point(|event| event.at <= stall.to);
            let (now, later) = events.split_at(end);
            events = later;
            walk.name(*stall, now)
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
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "ended".into(), |name| name.trim().to_owned())
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
