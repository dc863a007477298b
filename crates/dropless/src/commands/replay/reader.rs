//! Reads a capture ahead of the worker that sends it, in a thread of its own, which may wait for the disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use capture::input::{InputError, LinkType, Packet, Reader};
use dataplane::replay::feed::{Filler, Planned};
use measure::place::{NOT_ETHERNET, SNAPPED, TOO_LONG, TOO_SHORT};
use measure::{Clock, Counter, ReplayRate, TimesSummary, Timetable};

use crate::about::ensure_about;
use crate::plan::{ReplayPlan, Snapped};
use crate::run::capture_input::CaptureInput;

use super::pauses::{Finder, Pauses, pauses};

/// From one look for room to the next.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// Whoever waits for a disk that does not answer is left behind after this long.
const FAREWELL: Duration = Duration::from_secs(1);
/// The head of an Ethernet frame.
const HEAD_LEN: usize = 14;
/// A VLAN tag comes on top of what a port carries: the kernel and DPDK's drivers both leave room for one.
const VLAN_TAG: usize = 4;

/// Opens the capture of `plan`. What can be seen at once is refused: that it is none, that there is nothing to send, or that it
/// would be written over.
pub fn open(plan: &ReplayPlan) -> Result<CaptureInput> {
    let file = if plan.is_stdin() {
        Path::new("/dev/stdin")
    } else {
        &plan.file
    };
    for port in &plan.machine.ports {
        let output = port.kind.files().1;
        ensure_about!(
            "--port",
            !output.is_some_and(|output| host::is_same_file(output, file)),
            "port {port} would write over the capture that is sent; write to another file"
        );
    }
    let mut input = CaptureInput::open(&plan.file)?;
    ensure!(
        input.len.is_some() || plan.loops == Some(1),
        "{} can be read once only: --loop needs a file",
        input.name
    );
    if input.len.is_some() {
        look(&mut input)?;
    }
    Ok(input)
}

/// Looks at the first packet of a file.
fn look(input: &mut CaptureInput) -> Result<()> {
    let mut reader = input.reader(|| false)?;
    let name = &input.name;
    let Some(packet) = reader.next_packet()? else {
        bail!("{name} holds no packet; there is nothing to send");
    };
    let link = packet.interface.link;
    let instead = match link {
        LinkType::Sll | LinkType::Sll2 => "capture on one interface instead of `any`, or ",
        _ => "",
    };
    ensure!(
        link == LinkType::Ethernet,
        "the packets of {name} are no Ethernet frames (they are {link}); {instead}give them heads: tcprewrite --dlt=enet --enet-dmac=MAC --enet-smac=MAC -i {name} -o NEW"
    );
    Ok(())
}

/// What the thread counts while it reads. One writer.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Packets read.
    pub packets: Counter,
    /// Those that were captured in part.
    pub snapped: Counter,
    pub too_long: Counter,
    pub too_short: Counter,
    pub not_ethernet: Counter,
    /// Left out because they were captured in part.
    pub left_out: Counter,
    /// Read when the run ended.
    pub cut_off: Counter,
    /// How often the capture was read to its end.
    pub loops: Counter,
    /// How long it is, bytes as they are read; 0 while that is not known.
    pub loop_bytes: Counter,
}

impl ReadCounters {
    /// What was read and cannot be sent, by place.
    pub fn places(&self) -> [(&'static str, u64); 4] {
        [
            (TOO_LONG, self.too_long.get()),
            (TOO_SHORT, self.too_short.get()),
            (NOT_ETHERNET, self.not_ethernet.get()),
            (SNAPPED, self.left_out.get()),
        ]
    }
}

/// What the thread leaves.
#[derive(Debug, Default)]
pub struct Came {
    pub times: TimesSummary,
    /// Why it did not come to the end of the capture.
    pub error: Option<String>,
}

/// The thread as control sees it.
pub struct ReaderSide {
    pub counters: Arc<ReadCounters>,
    /// Of a capture whose own times are kept.
    pub pauses: Pauses,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Came>,
}

impl ReaderSide {
    /// Reads `input` into `filler`, as `plan` says; frames longer than `longest` bytes (without FCS) are counted and left out.
    pub fn start(
        input: CaptureInput,
        (filler, timetable, clock): (Filler, Timetable, Clock),
        plan: &ReplayPlan,
        longest: usize,
    ) -> Result<Self> {
        let counters = Arc::<ReadCounters>::default();
        let stop = Arc::<AtomicBool>::default();
        let (finder, pauses) = pauses(clock);
        let is_timed = matches!(plan.rate()?, ReplayRate::Times(_));
        let mut reading = Reading {
            finder: is_timed.then_some(finder),
            filler,
            timetable,
            clock,
            loops: plan.loops,
            snapped: plan.snapped,
            longest,
            padded: Vec::new(),
            counters: Arc::clone(&counters),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("reader".into());
        let thread = thread.spawn(move || {
            // Whoever stops it ends a stream wherever it is.
            let error = reading.all(input).err().filter(|_| !reading.is_stopped());
            Came {
                times: reading.timetable.summary(),
                error: error.map(|error| error.to_string()),
            }
        });
        Ok(Self {
            counters,
            pauses,
            stop,
            thread: thread.context("cannot start the thread that reads the capture")?,
        })
    }

    /// Ends it; the worker has ended.
    pub fn finish(self) -> Came {
        self.stop.store(true, Ordering::Release);
        let begun = Instant::now();
        while !self.thread.is_finished() {
            if begun.elapsed() > FAREWELL {
                // It has no packet of its own.
                return Came::default();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let died = |_| Came {
            error: Some("the thread that read the capture ended by itself".into()),
            ..Came::default()
        };
        self.thread.join().unwrap_or_else(died)
    }
}

/// The thread's own.
struct Reading {
    /// None where the pauses are as long as the user has asked for.
    finder: Option<Finder>,
    filler: Filler,
    timetable: Timetable,
    clock: Clock,
    loops: Option<u64>,
    snapped: Snapped,
    longest: usize,
    /// The packet at hand, with zeros in the place of what was not captured.
    padded: Vec<u8>,
    counters: Arc<ReadCounters>,
    stop: Arc<AtomicBool>,
}

impl Reading {
    fn all(&mut self, mut input: CaptureInput) -> Result<()> {
        let (mut done, mut length) = (0, 0);
        while self.loops.is_none_or(|loops| done < loops) {
            let before = self.counters.packets.get();
            let stop = Arc::clone(&self.stop);
            let mut reader = input.reader(move || stop.load(Ordering::Acquire))?;
            let len = input.len.filter(|_| !reader.is_compressed());
            self.counters.loop_bytes.set(len.unwrap_or(length));
            if !self.once(&mut reader, input.len.is_none(), done * length)? {
                break;
            }
            let of = self
                .loops
                .map_or_else(String::new, |loops| format!(" of {loops}"));
            ensure!(
                done == 0 || self.counters.packets.get() > before,
                "{} holds no packet any more: it was emptied before loop {}{of}; replay a copy that nobody writes to",
                input.name,
                done + 1
            );
            length = reader.offset();
            self.counters.loop_bytes.set(length);
            done += 1;
            self.counters.loops.set(done);
            self.timetable.begin_again();
        }
        Ok(())
    }

    /// Reads to the end; false if the run ended before. The loops before were `before` bytes.
    fn once(&mut self, reader: &mut Reader, is_stream: bool, before: u64) -> Result<bool, InputError> {
        loop {
            let position = before + reader.offset();
            let packet = if let Some(packet) = reader.next_in_memory()? {
                packet
            } else {
                // It may take long: the worker has all there is, unless it has plenty.
                if is_stream || self.filler.is_low() {
                    self.filler.flush();
                }
                match reader.next_packet()? {
                    Some(packet) => packet,
                    None => return Ok(!self.is_stopped()),
                }
            };
            if self.is_stopped() || !self.take(&packet, position) {
                return Ok(false);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Hands a packet on, or counts why not; false if the run ended before there was room for it.
    fn take(&mut self, packet: &Packet<'_>, position: u64) -> bool {
        let counters = &self.counters;
        counters.packets.add(1);
        self.timetable.pass(packet.time_ns);
        let is_snapped = (packet.data.len() as u64) < u64::from(packet.original_len);
        counters.snapped.add(u64::from(is_snapped));
        let len = match self.snapped {
            Snapped::Pad if is_snapped => packet.original_len as usize,
            _ => packet.data.len(),
        };
        let has_tag = packet.data.get(12..14) == Some(&[0x81, 0x00]);
        let carries = self.longest + if has_tag { VLAN_TAG } else { 0 };
        let left_out = if packet.interface.link != LinkType::Ethernet {
            &counters.not_ethernet
        } else if is_snapped && self.snapped == Snapped::Skip {
            &counters.left_out
        } else if packet.data.len() < HEAD_LEN {
            &counters.too_short
        } else if len > carries {
            &counters.too_long
        } else {
            return self.give(packet.data, len, (position, is_snapped));
        };
        left_out.add(1);
        true
    }

    fn give(&mut self, data: &[u8], len: usize, (position, is_snapped): (u64, bool)) -> bool {
        let at = self.clock.ticks_from_ns(self.timetable.due_ns(len));
        if let Some(finder) = &mut self.finder {
            finder.look(at);
        }
        let mut bytes = data;
        if len > data.len() {
            self.padded.clear();
            self.padded.extend_from_slice(data);
            self.padded.resize(len, 0);
            bytes = &self.padded;
        }
        let planned = Planned {
            at,
            position,
            is_snapped,
        };
        while !self.filler.push(planned, bytes) {
            if self.is_stopped() {
                self.counters.cut_off.add(1);
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use dataplane::replay::feed::feed;

    use super::*;

    #[test]
    fn a_file_that_is_emptied_between_two_loops_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pcap");
        let head = [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 0xFFFF, 1];
        let packet = [0, 0, 60, 60].into_iter().chain([0; 15]);
        let words: Vec<u8> = head
            .into_iter()
            .chain(packet)
            .flat_map(u32::to_le_bytes)
            .collect();
        std::fs::write(&path, &words).unwrap();
        let input = CaptureInput::open(&path).unwrap();
        let (filler, feed) = feed(4, 4096);
        let mut reading = Reading {
            finder: None,
            filler,
            timetable: Timetable::new(ReplayRate::Rate(measure::units::RateSpec::Max), None, None, None)
                .unwrap(),
            clock: Clock::from_calibration(0, 0, 1e9),
            loops: None,
            snapped: Snapped::Send,
            longest: 1514,
            padded: Vec::new(),
            counters: Arc::default(),
            stop: Arc::default(),
        };
        let counters = Arc::clone(&reading.counters);
        let thread = std::thread::spawn(move || reading.all(input).map_err(|error| error.to_string()));
        while counters.loops.get() < 3 {
            feed.next().into_iter().for_each(|chunk| feed.give_back(chunk));
        }
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(24)
            .unwrap();
        while !thread.is_finished() {
            feed.next().into_iter().for_each(|chunk| feed.give_back(chunk));
        }
        let error = thread.join().unwrap().unwrap_err();
        let loops = counters.loops.get();
        assert_eq!(loops, counters.packets.get(), "an empty one is none");
        let told = [
            &format!("before loop {};", loops + 1),
            "a.pcap holds no packet any more",
        ];
        assert!(told.iter().all(|words| error.contains(*words)), "{error}");
    }
}
