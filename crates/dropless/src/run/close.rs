//! The close of a run: ports are read and closed, stalls are explained, and then the pools are counted. What is left is the
//! job's.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataplane::worker::WorkerCounters;
use host::Medium;
use measure::note::LOST_WITH_PEER;
use measure::place::HOLD_NS;
use measure::units::format_duration;
use measure::verdict::{Evidence, LinkLoss, Role, TooShort};
use measure::{Clock, ClockSummary, Explanation, Note, PortSummary, Stall, Ticks, WorkerSummary};
use nix::unistd::{Whence, lseek};
use report::number::counted;
use report::rundir::RunDir;

use super::below::Below;
use super::buffers::{Kept, PoolCounts};
use super::clock::RunClock;
use super::control::Seen;
use super::kernel_counts::has_queues;
use super::open::{OpenPort, once_an_interface};
use super::pools::Pools;
use super::workers::{self, Left, Roles};
use crate::explain::{self, Received};

/// What is left when the workers have ended.
pub struct Closing<'r> {
    pub dir: &'r RunDir,
    pub clock: RunClock,
    /// When the first packet was due, if there was a schedule.
    pub start: Ticks,
    pub left: Left,
    pub seen: Seen,
    /// Cores and what was done on them.
    pub roles: Roles,
    /// What the workers published.
    pub published: Vec<Arc<WorkerCounters>>,
    pub notes: Vec<Note>,
}

/// A port at the end.
pub struct PortEnd {
    pub summary: PortSummary,
    /// The interface of the kernel that it works through.
    pub interface: Option<String>,
    /// What the other end of an embedded ring missed.
    pub far_missed: u64,
    /// Whether its counters are those of hardware.
    pub counts_on_wire: bool,
    pub link_losses: u32,
    /// Whether a peer that is away takes no frame, so that none is lost unseen.
    pub pushes_back: bool,
    /// Whether somebody else takes packets from its full transmit queue.
    pub is_emptied_by_others: bool,
    /// Packets that its peer may have been given and not have taken.
    pub tx_places: u64,
    /// Whether the interface below it was removed.
    pub is_gone: bool,
    /// The MTU that its frames need, and a smaller one that its interface had in the run.
    pub too_short: Option<(u32, u32)>,
    /// Whether its counters could be read at the end.
    pub is_read: bool,
    /// Why its file could not be read to its end.
    pub misread: Option<String>,
}

/// What a job makes its result of, beside its own counters.
pub struct Ending<'r> {
    pub dir: &'r RunDir,
    pub ports: Vec<PortEnd>,
    pub pools: PoolCounts,
    /// Ticks to nanoseconds.
    pub clock: Clock,
    pub clock_summary: ClockSummary,
    pub clock_problem: Option<String>,
    pub workers: Vec<WorkerSummary>,
    /// The longest stall of each receiver, with what its ring holds.
    pub stalls: Vec<Stall>,
    /// The longest one of those before which a far side waits.
    pub waited_for: Option<Stall>,
    /// All stalls of all workers that were kept: those that the verdict is about, however long `--pause` is.
    pub kept_stalls: Vec<Stall>,
    /// Where the packets went that the ports missed; only with `--explain`.
    pub explanation: Option<Explanation>,
    pub link_losses: Vec<LinkLoss>,
    /// Files that are shorter than what was written to them, and by how many bytes.
    pub short_files: Vec<(String, u64)>,
    pub is_interrupted: bool,
    pub died: Option<String>,
    pub notes: Vec<Note>,
}

/// A run whose ports are closed: nobody has a packet any more.
pub struct Closed<'r> {
    ending: Ending<'r>,
    /// What drivers keep of each pool.
    kept: Vec<Kept>,
}

impl<'r> Closed<'r> {
    /// Counts the packet buffers, where there is DPDK.
    pub fn count(self, pools: Option<&mut Pools<'_>>) -> Ending<'r> {
        let pools = PoolCounts::count(pools, self.kept);
        let mut ending = self.ending;
        ending.notes.extend(pools.notes());
        Ending { pools, ..ending }
    }
}

impl<'r> Closing<'r> {
    /// Closes the ports, which took their buffers from `pools`.
    pub fn close(
        mut self,
        ports: Vec<OpenPort<'_>>,
        pools: Option<&Pools<'_>>,
        received: &[Received<'_>],
    ) -> Closed<'r> {
        let ends = ports.iter().map(PortEnd::of).collect();
        let longest = |receiver: &Received<'_>, holds_ns| self.longest_stall(receiver.core, holds_ns);
        let own = received.iter();
        let stalls = own.filter_map(|receiver| longest(receiver, receiver.bears_ns(&ports)));
        let stalls = stalls.collect();
        let is_waited_for = |receiver: &&Received<'_>| {
            let medium = ports[receiver.port].traits().medium;
            matches!(medium, Medium::Process | Medium::Peer)
        };
        let waited_for = received.iter().filter(is_waited_for);
        let waited_for = waited_for.filter_map(|receiver| longest(receiver, HOLD_NS));
        let waited_for = waited_for.max_by_key(|stall| stall.gap_ns);
        let clock = self.clock.clock;
        let (rows, explanation) = explain::explain(
            self.seen.explainer.take(),
            &self.left.stalled,
            received,
            &ports,
            &clock,
            self.start,
        );
        let _ = self.dir.write_stalls(&rows);
        let kept_stalls = self.left.kept_stalls(&clock, self.start);
        let kept = Kept::by(&ports, pools);
        let files: Vec<_> = ports.iter().filter_map(OpenPort::written).collect();
        self.notes.extend(ports.iter().flat_map(OpenPort::last_notes));
        let failure = ports.iter().find_map(OpenPort::failure);
        drop(ports);
        self.notes.extend(self.left.dropped_note(explanation.is_some()));
        self.notes.extend(self.left.unjudged_note());
        self.notes.extend(explanation.iter().flat_map(explain::notes));
        self.notes.extend(explain::moved(&self.left.stalled));
        self.notes.extend(late(self.seen.late_ns));
        self.notes.extend(self.seen.behind.take());
        let (clock_summary, clock_problem) = self.clock.finish();
        let first_packet = |counters: &WorkerCounters| {
            let at = Some(counters.first_busy.get()).filter(|at| *at > 0)?;
            self.clock.since_process_start_ms(Ticks(at))
        };
        let workers = self.roles.iter().zip(&self.published);
        let ending = Ending {
            dir: self.dir,
            ports: ends,
            pools: PoolCounts::default(),
            clock,
            clock_summary,
            clock_problem,
            workers: workers
                .map(|((core, roles), counters)| {
                    let (stalls, stalls_dropped) = self.left.stalls_of(*core);
                    WorkerSummary {
                        first_packet_ms: first_packet(counters),
                        stalls,
                        stalls_dropped,
                        ..workers::summary(*core, roles, counters, &clock)
                    }
                })
                .collect(),
            stalls,
            waited_for,
            kept_stalls,
            explanation,
            link_losses: self.seen.link_losses,
            short_files: short(&files),
            is_interrupted: self.seen.is_interrupted,
            died: self.left.died.map(|error| error.to_string()).or(failure),
            notes: self.notes,
        };
        Closed { ending, kept }
    }

    /// The longest stall of the receivers on `core`, who can bear one of `holds_ns`. A stall after which nothing waited has
    /// filled no ring: such as one after everything had come back.
    fn longest_stall(&self, core: usize, holds_ns: u64) -> Option<Stall> {
        let place = self.roles.iter().position(|(other, _)| *other == core)?;
        let of_core = self.left.stalled.iter().find(|stalled| stalled.core == core);
        // The kept stalls tell only where all that matter were kept.
        let holds = self.clock.clock.ticks_from_ns(holds_ns);
        let kept = of_core.filter(|stalled| stalled.has_all_of(holds));
        let longest = kept.map_or_else(
            || self.published[place].gap_ticks.snapshot().max(),
            |stalled| {
                let costly = stalled.stalls.iter().filter(|stall| stall.next != Some(0));
                costly.map(|stall| stall.to.since(stall.from)).max()
            },
        );
        Some(Stall {
            core: core as u32,
            role: "receive".into(),
            gap_ns: self.clock.clock.ns_from_ticks(longest.unwrap_or(0)),
            ring_holds_ns: holds_ns,
            ..Stall::default()
        })
    }
}

impl PortEnd {
    fn of(open: &OpenPort<'_>) -> Self {
        if let Some(below) = &open.below {
            below.look();
        }
        open.kernel.expire();
        Self {
            summary: open.summary(),
            interface: open.interface().map(str::to_owned),
            far_missed: open.far_missed(),
            counts_on_wire: open.traits().counts_on_wire,
            link_losses: open.tending.losses,
            pushes_back: open.traits().pushes_back,
            is_emptied_by_others: open.traits().medium.is_emptied_by_others()
                || open.kernel.has_queues()
                || open.sockets().is_some() && open.interface().is_some_and(has_queues),
            tx_places: open.tx_places(),
            is_gone: open.is_gone(),
            too_short: open.below.as_ref().and_then(Below::too_short),
            is_read: open.stats().is_some(),
            misread: open.misread(),
        }
    }
}

impl PortEnd {
    /// Whether what it counted is not all: the memif driver forgets its counters with its link, and others could not be read.
    pub fn forgets(&self) -> bool {
        !self.is_read || (self.link_losses > 0 && self.summary.driver == "net_memif")
    }
}

/// What the interfaces below the ports threw away: that of an interface once, whatever ports are on it.
pub fn thrown_away(ends: &[PortEnd]) -> u64 {
    once_an_interface(
        ends.iter()
            .map(|end| (end.interface.as_deref(), end.summary.tx_dropped)),
    )
}

impl Ending<'_> {
    /// The ports that sent through an interface whose MTU was too small for a while.
    fn too_short(&self) -> Vec<TooShort> {
        let sent = self.ports.iter().filter(|port| port.summary.tx_packets > 0);
        let too_short = sent.filter_map(|port| {
            let (needed, mtu) = port.too_short?;
            Some(TooShort {
                port: port.summary.uri.clone(),
                needed,
                mtu,
            })
        });
        too_short.collect()
    }

    /// The losses of links over which frames went that nobody has counted since.
    pub fn costly_link_losses(&self) -> Vec<LinkLoss> {
        let is_costly = |port: &&PortEnd| !port.pushes_back;
        let costly: Vec<_> = self
            .ports
            .iter()
            .filter(is_costly)
            .map(|port| &port.summary.uri)
            .collect();
        let mut losses = self.link_losses.clone();
        losses.retain(|loss| costly.contains(&&loss.port));
        losses
    }

    /// What became of the links of a run that goes on without.
    pub fn link_notes(&self) -> Vec<Note> {
        let lost = self.ports.iter().filter(|port| port.link_losses > 0);
        lost.flat_map(|port| {
            let text = format!(
                "port {} lost its link {}, and goes on with whoever comes next",
                port.summary.uri,
                match port.link_losses {
                    1 => "once".into(),
                    losses => format!("{losses} times"),
                }
            );
            let with_peer = port.pushes_back.then(|| {
                let text = format!(
                    "what a peer of port {} had been given and had not taken went with it, up to {}, and counts as sent",
                    port.summary.uri,
                    counted(port.tx_places * u64::from(port.link_losses), "packet"),
                );
                Note::new(LOST_WITH_PEER, text)
            });
            [Some(Note::new("link_lost", text)), with_peer]
        })
        .flatten()
        .collect()
    }

    pub fn port_summaries(&self) -> Vec<PortSummary> {
        self.ports.iter().map(|port| port.summary.clone()).collect()
    }

    /// What every run's verdict is drawn from; the job adds what it moved.
    pub fn evidence(&self, role: Role) -> Evidence {
        let dead = self.died.iter().map(|how| ("dropless".into(), how.clone()));
        Evidence {
            role,
            ports: self.ports.len(),
            rx_missed: self.ports.iter().map(|port| port.summary.rx_missed).sum(),
            removed: {
                let gone = self.ports.iter().filter(|port| port.is_gone);
                gone.map(|port| port.summary.uri.clone()).collect()
            },
            too_short: self.too_short(),
            unread: self
                .ports
                .iter()
                .filter(|port| !port.is_read)
                .map(|port| port.summary.uri.clone())
                .collect(),
            broken_input: self.ports.iter().find_map(|port| port.misread.clone()),
            stalls: self.stalls.clone(),
            waited_for: self.waited_for.clone(),
            short_files: self.short_files.clone(),
            clock_uncertainty_ppm: self.clock_summary.uncertainty_ppm,
            clock_problems: self.clock_problem.clone().into_iter().collect(),
            pools: self.pools.evidence(),
            dead_workers: dead.collect(),
            ..Evidence::default()
        }
    }
}

/// Threads start in less.
const LATE_NS: u64 = 100_000_000;

/// What was due before the workers polled was not sent in its time: nobody else is to be blamed for that.
fn late(late_ns: u64) -> Option<Note> {
    (late_ns > LATE_NS).then(|| {
        let text = format!(
            "the workers polled first {} after the run had begun: something else kept them from their cores",
            format_duration(late_ns)
        );
        Note::new("workers_late", text)
    })
}

/// The files in which something is not there that was written to them, and how many bytes.
fn short(files: &[(PathBuf, u64)]) -> Vec<(String, u64)> {
    let missing = files.iter().filter_map(|(path, written)| {
        let there = match path.metadata() {
            Ok(about) if about.is_file() => whole(path).unwrap_or(0),
            Ok(_) => return None,
            // Removed, or nobody can say.
            Err(_) => 0,
        };
        Some((path.display().to_string(), written.saturating_sub(there)))
    });
    missing.filter(|(_, missing)| *missing > 0).collect()
}

/// How much of a file is there without a hole: what was cut off is one, once more was written behind it.
fn whole(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    Ok(match lseek(&file, 0, Whence::SeekHole) {
        Ok(hole) => u64::try_from(hole).unwrap_or(0),
        // That of an empty one.
        Err(nix::Error::ENXIO) => 0,
        // Of a file system that knows no holes.
        Err(_) => file.metadata()?.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn what_was_cut_off_is_missing_whatever_was_written_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.pcap");
        let file = File::create(&path).unwrap();
        let write = |at: u64| file.write_all_at(&vec![1; 1 << 20], at).unwrap();
        let missing = || short(&[(path.clone(), 3 << 20)]).first().map(|found| found.1);
        (0..3).for_each(|turn| write(turn << 20));
        assert_eq!(missing(), None);
        file.set_len(0).unwrap();
        assert_eq!(missing(), Some(3 << 20));
        write(2 << 20);
        assert_eq!(missing(), Some(3 << 20), "it is as long as it was");
    }
}
