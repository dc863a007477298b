//! Denied packets as a capture file, each with the rule that denied it, and why.

use std::fs::File;
use std::io::{self, Read as _};
use std::mem;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use capture::pcapng::{Direction, Interface, PacketHead, Statistics, preamble};
use measure::{Note, SampleSummary};
use nix::time::{ClockId, clock_gettime};
use rules::RuleSet;
use xdp::{Sample, SampleCounts};

use crate::plan::SamplePlan;
use crate::run::clock::unix_ns;

/// Bytes of a packet that samples have, at most.
const SNAP_LEN: u32 = 256;

/// Bytes that are written at once.
const WRITE: usize = 1 << 16;

/// The file.
pub struct Writer {
    name: String,
    file: File,
    /// How long it is: whole blocks.
    len: u64,
    /// Blocks of packets that it lacks yet, and how many.
    waiting: (Vec<u8>, u64),
    /// On the world's clock, ns.
    begun_ns: u64,
    /// Packets that the file has.
    written: u64,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
}

impl Writer {
    /// Makes it, in the place of what had this name.
    pub fn create(plan: &SamplePlan, interface: &str) -> Result<Self> {
        let name = plan.file.display().to_string();
        ensure!(
            may_go(&plan.file),
            "--sample {name}: that file is there, and is no capture; write another name, or remove it first"
        );
        let file = report::ours::create_private(&plan.file).with_context(|| format!("--sample {name}"))?;
        let described = Interface {
            name: interface.to_owned(),
            description: "packets that rules denied".to_owned(),
            snap_len: SNAP_LEN,
            ..Interface::default()
        };
        let application = concat!("dropless ", env!("CARGO_PKG_VERSION"));
        let mut made = Self {
            name,
            file,
            len: 0,
            waiting: (Vec::new(), 0),
            begun_ns: unix_ns(),
            written: 0,
            failed: None,
        };
        made.put(&preamble(application, &[described]))
            .with_context(|| format!("--sample {}", made.name))?;
        Ok(made)
    }

    /// Adds whole blocks: all of them, or the file ends where it ended.
    fn put(&mut self, blocks: &[u8]) -> io::Result<()> {
        report::ours::add(&mut self.file, self.len, blocks)?;
        self.len += blocks.len() as u64;
        Ok(())
    }

    /// Adds a packet, which a rule of this set denied.
    pub fn write(&mut self, sample: &Sample, set: Option<&RuleSet>) {
        if self.failed.is_some() {
            return;
        }
        let head = PacketHead {
            time_ns: sample.time_ns.saturating_add_signed(since_epoch_ns()),
            original_len: sample.len,
            direction: Some(Direction::In),
            ..PacketHead::default()
        };
        let (blocks, packets) = &mut self.waiting;
        blocks.extend(head.commented(&sample.data, &comment(sample, set)));
        *packets += 1;
        if blocks.len() >= WRITE {
            self.flush();
        }
    }

    /// Whoever reads the file has what was added.
    pub fn flush(&mut self) {
        let (blocks, packets) = mem::take(&mut self.waiting);
        if packets == 0 {
            return;
        }
        match self.put(&blocks) {
            Ok(()) => self.written += packets,
            Err(error) => self.failed = Some(error),
        }
    }

    /// What it came to, where the filter told so many.
    pub fn finish(mut self, told: SampleCounts) -> (SampleSummary, Option<Note>) {
        self.flush();
        let all = told.denied + told.denied_missed;
        let last = Statistics {
            from_ns: self.begun_ns,
            to_ns: unix_ns(),
            received: all,
            accepted: all,
            dropped: all.saturating_sub(self.written),
            delivered: self.written,
            ..Statistics::default()
        };
        let ended = self.put(&last.block(0));
        let failed = self.failed.take().or_else(|| ended.err());
        let note = failed.map(|error| {
            let text = format!(
                "{}: samples end after {} packets: {error}",
                self.name, self.written
            );
            Note::new("samples_not_written", text)
        });
        let samples = SampleSummary {
            left_out: all.saturating_sub(self.written),
            written: self.written,
            file: self.name,
        };
        (samples, note)
    }
}

/// Whether a file of this name may give way to another: an earlier capture may, and rules, say, may not.
fn may_go(path: &Path) -> bool {
    const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
    let mut begins = [0; 4];
    // A pipe is not waited for.
    match report::input::open(path) {
        Ok(mut file) => file
            .read(&mut begins)
            .is_ok_and(|read| read == 0 || begins == PCAPNG),
        Err(_) => matches!(report::input::is_there(path), Ok(false)),
    }
}

/// From the clock that samples are stamped by to that of the world, ns.
fn since_epoch_ns() -> i64 {
    let now = |clock| clock_gettime(clock).map(|time| time.tv_sec() * 1_000_000_000 + time.tv_nsec());
    match (now(ClockId::CLOCK_REALTIME), now(ClockId::CLOCK_MONOTONIC)) {
        (Ok(world), Ok(ours)) => world - ours,
        _ => 0,
    }
}

fn comment(sample: &Sample, set: Option<&RuleSet>) -> String {
    let number = sample.rule as usize;
    let by = match set.map(|set| (set, set.rules.get(number))) {
        None => format!("rule {} of generation {}", number + 1, sample.generation),
        Some((_, None)) => "default deny".to_owned(),
        Some((set, Some(rule))) => format!("{} {}", set.place(rule), rule.text),
    };
    let malformed = sample
        .malformed
        .map_or_else(String::new, |reason| format!("; malformed: {}", reason.name()));
    let full = if sample.is_full {
        "; no entry left in the table of rates"
    } else {
        ""
    };
    format!("denied by {by}{malformed}{full}")
}
