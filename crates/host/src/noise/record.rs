//! Everything that the kernel told of some cores, from a beginning to an end.

use std::collections::{BTreeMap, HashMap};

use super::attribute::{Sent, Stamped};
use super::event::{Event, Sender};
use super::interrupts::{Delta, Interrupts};
use super::page;
use super::trace::{Subject, Trace, TraceError};
use crate::Sys;
use crate::cores::{Core, CoreSet};

/// Buffer of the tracer for one core, KiB: some 300,000 events.
const BUFFER_KIB: u32 = 16 << 10;

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    work: Trace,
    /// What the other cores send; none on a machine that has no others.
    sending: Option<Trace>,
    names: HashMap<u32, String>,
    before: Interrupts,
    record: Record,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Record {
    /// The events of each core, in order.
    pub events: BTreeMap<Core, Vec<Stamped>>,
    /// What other cores sent, in order.
    pub sent: Vec<Sent>,
    /// Records that found no room in the tracer.
    pub missed: u64,
    /// What `/proc/interrupts` counted meanwhile.
    pub interrupts: BTreeMap<Core, Vec<Delta>>,
}

impl Recorder {
    /// Begins to record what runs on `cores`, and what `others` send there.
    pub fn start(sys: &Sys, name: &str, cores: &CoreSet, others: &CoreSet) -> Result<Self, TraceError> {
        let sending = (!others.is_empty())
            .then(|| Trace::start(&format!("{name}-senders"), others, Subject::Sending, BUFFER_KIB))
            .transpose()?;
        let work = Trace::start(name, cores, Subject::Work, BUFFER_KIB)?;
        let events = cores.iter().map(|core| (core, Vec::new())).collect();
        Ok(Self {
            work,
            sending,
            names: HashMap::new(),
            before: Interrupts::read(sys),
            record: Record {
                events,
                ..Record::default()
            },
        })
    }

    /// Takes over what the tracer has; often enough, or it overflows.
    pub fn collect(&mut self) {
        let Record {
            events, sent, missed, ..
        } = &mut self.record;
        self.work.read(|core, decoder, bytes| {
            let list = events.entry(core).or_default();
            let gone = page::records(bytes, |at, record| {
                list.extend(decoder.decode(record).map(|event| Stamped { at, event }));
            });
            *missed += gone.records;
        });
        let names = &mut self.names;
        if let Some(sending) = &mut self.sending {
            sending.read(|core, decoder, bytes| {
                let gone = page::records(bytes, |at, record| {
                    if let Some(Event::Send { to, pid }) = decoder.decode(record) {
                        let sender = Sender {
                            core: core.0,
                            pid,
                            name: names.entry(pid).or_insert_with(|| name_of(pid)).clone(),
                        };
                        sent.push(Sent { at, to, sender });
                    }
                });
                *missed += gone.records;
            });
        }
    }

    /// Ends the recording.
    pub fn finish(mut self, sys: &Sys) -> Record {
        let after = Interrupts::read(sys);
        self.work.stop();
        if let Some(sending) = &self.sending {
            sending.stop();
        }
        self.collect();
        let mut record = std::mem::take(&mut self.record);
        record.sent.sort_by_key(|sent| sent.at);
        record.interrupts = record
            .events
            .keys()
            .map(|core| (*core, after.since(&self.before, *core)))
            .collect();
        record
    }
}

fn name_of(pid: u32) -> String {
    if pid == 0 {
        return "idle".into();
    }
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "ended".into(), |name| name.trim().to_owned())
}

/// The kernel's functions by their addresses.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads `/proc/kallsyms`; empty where addresses are hidden.
    pub fn read(sys: &Sys) -> Self {
        let text = sys.text("/proc/kallsyms").unwrap_or_default();
        let mut all: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let name = words.nth(1)?;
                (address != 0).then(|| (address, name.to_owned()))
            })
            .collect();
        all.sort_unstable();
        Self(all)
    }

    /// The function that `address` lies in.
    pub fn name(&self, address: u64) -> String {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        match after.checked_sub(1).and_then(|index| self.0.get(index)) {
            Some((_, name)) => name.clone(),
            None => format!("{address:#x}"),
        }
    }
}
