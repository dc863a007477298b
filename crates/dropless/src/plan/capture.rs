//! The plan of a `capture` run.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use capture::filter::Filter;
use capture::ring::layout::SEGMENT_MIN;
use host::{Medium, PortKind};
use measure::{CaptureSummary, expect};
use serde::{Deserialize, Serialize};

use super::{MachinePlan, check_interval};
use crate::about::{About as _, bail_about, ensure_about};

/// A `capture` run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapturePlan {
    /// Version of this format.
    pub version: u32,
    /// Always `capture`.
    pub command: String,
    /// The machine's part.
    pub machine: MachinePlan,
    /// The run that is looked into, in the place of ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<AttachPlan>,
    /// Receive queues a port.
    pub queues: u16,
    /// Bytes kept of each packet, at most.
    pub snap_len: u32,
    /// What is captured, in the syntax of libpcap; `None` is everything.
    pub filter: Option<String>,
    /// One flow of so many is captured; `None` is every one.
    pub sample: Option<u64>,
    /// How long a queue that says nothing is waited for, ns; `None` is for ever, so that the stream is sorted.
    pub patience_ns: Option<u64>,
    /// The shared memory.
    pub ring: RingPlan,
    /// The files; `None` writes none.
    pub files: Option<FilesPlan>,
    /// End after so many packets.
    pub count: Option<u64>,
    /// How long to capture, ns.
    pub duration_ns: Option<u64>,
    /// End after this long without a packet, ns.
    pub idle_exit_ns: Option<u64>,
    /// Conditions of success.
    pub expect: Vec<String>,
    /// Length of a statistics interval, ns.
    pub interval_ns: u64,
}

/// A run that a capture looks into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachPlan {
    /// Its process.
    pub process: u32,
    /// Its directory.
    pub run: PathBuf,
    /// What it receives is wanted.
    pub received: bool,
    /// What it sends is wanted.
    pub sent: bool,
}

/// The shared memory of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingPlan {
    /// How many segments.
    pub segments: u32,
    /// How long each is, bytes.
    pub segment_len: u32,
    /// The socket at which other processes join it.
    pub door: Option<PathBuf>,
    /// The group that may, too.
    pub group: Option<u32>,
}

impl RingPlan {
    /// Bytes of a segment.
    pub const SEGMENT_LEN: u32 = 1 << 20;
    const _WHOLE: () = assert!(Self::SEGMENT_LEN >= SEGMENT_MIN);

    /// A ring of at least so many bytes, as `text` says.
    pub fn of_bytes(bytes: u64, text: &str) -> Result<Self> {
        let segments = bytes.div_ceil(u64::from(Self::SEGMENT_LEN));
        ensure_about!(
            "--ring-size",
            bytes >= 2 * u64::from(Self::SEGMENT_LEN),
            "--ring-size {text}: a ring has two segments of 1 MiB at least; use 2MiB or more"
        );
        ensure_about!(
            "--ring-size",
            segments <= 1 << 16,
            "--ring-size {text}: a ring has 64 GiB at most; use less"
        );
        Ok(Self {
            segments: segments as u32,
            segment_len: Self::SEGMENT_LEN,
            door: None,
            group: None,
        })
    }

    /// What it takes of memory.
    pub fn bytes(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_len)
    }
}

/// The files of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesPlan {
    /// The file; where there are several each name gets a number and a time.
    pub path: PathBuf,
    /// A file ends with so many bytes.
    pub size: Option<u64>,
    /// A file ends after so long, ns.
    pub every_ns: Option<u64>,
    /// Only the newest so many are kept.
    pub files: Option<usize>,
    /// Each is compressed once it is closed.
    #[serde(default)]
    pub compress: bool,
}

impl FilesPlan {
    /// Bytes of a file, at least: a segment of the ring, and room for its head and end.
    pub const SIZE_MIN: u64 = 2 * RingPlan::SEGMENT_LEN as u64;

    /// Whether there are several.
    pub fn rotates(&self) -> bool {
        self.size.is_some() || self.every_ns.is_some()
    }
}

impl CapturePlan {
    /// Whether the queues are polled by other workers than the one that merges.
    pub fn has_receivers(&self) -> bool {
        self.machine.cores.len() > 1
    }

    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        if self.attach.is_none() {
            self.machine.validate()?;
        }
        ensure_about!(
            "--queues",
            self.queues > 0,
            "a port needs at least one queue; use --queues 1"
        );
        self.machine
            .check_queues("--queues", self.queues, |port| port.queues.is_none())?;
        check_interval(self.interval_ns)?;
        ensure_about!(
            "--snaplen",
            self.snap_len >= 14,
            "--snaplen {} is less than an Ethernet header; use 14 or more, or leave it out to keep whole packets",
            self.snap_len
        );
        if let Some(port) = self
            .machine
            .ports
            .iter()
            .find(|port| port.kind.traits().medium == Medium::Sockets)
        {
            bail_about!(
                "--port",
                "port {port} is a socket and has no frames; capture from the interface below it: --port packet:INTERFACE"
            );
        }
        let is_loop = |kind: &PortKind| matches!(kind, PortKind::Ring { direct: true, .. });
        if let Some(port) = self.machine.ports.iter().find(|port| is_loop(&port.kind)) {
            bail_about!(
                "--port",
                "port {port} gives back what this run sends, which is nothing; use ring, into which a generator sends"
            );
        }
        if let Some(filter) = &self.filter {
            Filter::compile(filter)
                .map_err(|error| anyhow!("--filter {error}"))
                .about("--filter")?;
        }
        ensure_about!(
            "--sample",
            self.sample != Some(0),
            "--sample 1/0 is no share of the flows; write 1/10 for every tenth"
        );
        self.machine.check_cores(
            self.machine.queues_of_all(self.queues) + 1,
            "one for each queue and one that merges; name fewer, or use more --queues",
        )?;
        expect::check::<CaptureSummary>(&self.expect).about("--expect")?;
        if let Some(files) = &self.files {
            ensure_about!(
                "--files",
                files.files != Some(0),
                "--files 0 keeps none; give a number from 1 on, or leave it out to keep all"
            );
            ensure_about!(
                "--files",
                files.files.is_none() || files.rotates(),
                "--files keeps the newest of several files: say with --file-size or --file-time when one ends"
            );
            let size = files.size.unwrap_or(FilesPlan::SIZE_MIN);
            ensure_about!(
                "--file-size",
                size >= FilesPlan::SIZE_MIN,
                "--file-size of {size} bytes: a file has a segment of the ring (1 MiB) at least, its head and its end; use 2MiB ({} bytes) or more",
                FilesPlan::SIZE_MIN
            );
        }
        Ok(())
    }
}
