//! The plan of a `replay` run.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use host::{Medium, PortTraits};
use measure::{ReplayRate, ReplaySummary, expect};
use serde::{Deserialize, Serialize};

use super::MachinePlan;

/// The shortest and longest frame that a port can be made for, with FCS.
const FRAMES: std::ops::RangeInclusive<usize> = 64..=measure::FRAME_SIZE_MAX;

/// What becomes of packets of which the capture has only the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Snapped {
    /// They are sent as they were captured
    Send,
    /// They are left out, and counted
    Skip,
    /// They get zeros up to their length
    Pad,
}

/// A `replay` run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayPlan {
    /// Version of this format.
    pub version: u32,
    /// Always `replay`.
    pub command: String,
    /// The machine's part; it has one port.
    pub machine: MachinePlan,
    /// The capture; `-` is standard input.
    pub file: PathBuf,
    /// How fast, as the user writes it.
    pub rate: String,
    /// How often; `None` is until the run is ended.
    pub loops: Option<u64>,
    /// Gaps of the capture that are longer are cut to this, ns.
    pub gap_max_ns: Option<u64>,
    /// From the last packet of a loop to the first of the next, ns; `None` is the mean gap of the capture.
    pub loop_gap_ns: Option<u64>,
    /// What becomes of packets that were captured in part.
    pub snapped: Snapped,
    /// The longest frame that is sent, with FCS; `None` is what the port carries.
    pub frame_max: Option<usize>,
    /// Memory between the file and the port.
    pub buffer: BufferPlan,
    /// End after so long, ns.
    pub duration_ns: Option<u64>,
    /// Conditions on the result.
    pub expect: Vec<String>,
}

/// The memory between the file and the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferPlan {
    /// How many chunks.
    pub chunks: usize,
    /// How long each is, bytes.
    pub chunk_len: usize,
}

impl BufferPlan {
    /// The longest chunk, bytes.
    const CHUNK_MAX: u64 = 1 << 20;
    /// The shortest: the longest frame has a place in it.
    const CHUNK_MIN: u64 = 13_750;
    /// There are never fewer of them.
    const CHUNKS_MIN: u64 = 8;

    /// At most so many bytes.
    pub fn of_bytes(bytes: u64) -> Result<Self> {
        let chunk_len = (bytes / Self::CHUNKS_MIN).min(Self::CHUNK_MAX);
        ensure!(
            chunk_len >= Self::CHUNK_MIN,
            "--buffer is less than 110 kB, a few packets; leave it out, or give it more"
        );
        ensure!(
            bytes <= 1 << 36,
            "--buffer is more than 64 GiB; leave it out, or give it less"
        );
        Ok(Self {
            chunks: (bytes / chunk_len) as usize,
            chunk_len: chunk_len as usize,
        })
    }
}

impl ReplayPlan {
    /// Whether the capture is standard input.
    pub fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    /// How fast.
    pub fn rate(&self) -> Result<ReplayRate> {
        Ok(self.rate.parse()?)
    }

    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        self.machine.validate()?;
        let is_timed = matches!(self.rate()?, ReplayRate::Times(_));
        for (flag, gap) in [("--max-gap", self.gap_max_ns), ("--loop-gap", self.loop_gap_ns)] {
            ensure!(
                is_timed || gap.is_none(),
                "{flag} is about the capture's own times: leave it out, or use --rate original or xN"
            );
        }
        ensure!(
            self.machine.ports.len() == 1,
            "a capture is sent to one port; give one --port"
        );
        self.machine
            .check_cores(1, "a capture is sent from one queue; name one core")?;
        expect::check::<ReplaySummary>(&self.expect)?;
        if let Some(most) = self.frame_max {
            ensure!(
                FRAMES.contains(&most),
                "--max-frame {most} is not between {} and {}",
                FRAMES.start(),
                FRAMES.end()
            );
        }
        ensure!(
            self.loops == Some(1) || !self.is_stdin(),
            "standard input can be read once only: --loop needs a file"
        );
        let first = |wanted: fn(PortTraits) -> bool| {
            let mut ports = self.machine.ports.iter();
            ports.find(|port| wanted(port.kind.traits()))
        };
        if let Some(port) = first(|traits| traits.medium == Medium::Sockets) {
            bail!(
                "port {port} is a socket and sends no frames; send to the interface below it: --port packet:INTERFACE"
            );
        }
        if let Some(port) = first(|traits| traits.holds_sent) {
            bail!(
                "nothing receives from port {port}: it would be full at once; use a port that another program can reach, or --port null to try"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::replay::feed::{Planned, feed};

    #[test]
    fn the_smallest_buffer_has_a_place_for_the_longest_frame() {
        let smallest = BufferPlan::of_bytes(110_000).expect("the smallest");
        assert!(BufferPlan::of_bytes(109_999).is_err());
        let (mut filler, _feed) = feed(smallest.chunks, smallest.chunk_len);
        let planned = Planned {
            at: 0,
            position: 0,
            is_snapped: false,
        };
        // With a VLAN tag, and without FCS.
        assert!(filler.push(planned, &vec![0; FRAMES.end() + 4 - 4]));
    }
}
