//! Looking into another run: its taps in the place of ports.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use capture::pcapng::{Direction, Interface};
use capture::ring::{Consumer, socket};
use dataplane::capture::TapCounters;
use host::Sys;
use host::cores::{self, Core, CoreSet};
use measure::{Note, PortSummary, Ticks};
use report::published::{Found, Place, State, tap_socket};

use super::args::Way;
use crate::plan::{AttachPlan, CapturePlan, MachinePlan};
use crate::run::clock;
use crate::run::tap::can_be_looked_into;
use crate::run::tap::message::{Answer, Asked, TELL_LEN, Told};
use crate::status::find::{self, Target};

/// How long the other run has to hand over its taps, and to end them.
const PATIENCE: Duration = Duration::from_secs(5);
/// The lowest priority that a thread can have.
const NICE: i32 = 19;

/// The connection to another run, whose taps live as long as this.
pub struct Attached {
    /// Who is looked into, when it was found.
    pub host: State,
    /// What is wanted of it.
    wanted: AttachPlan,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// It and others that poll use every core that there is.
    is_everywhere: bool,
    stream: UnixStream,
}

/// The run that is looked into. One that starts is waited for until it tells its ports.
pub fn find(named: &str) -> Result<Found> {
    let since = Instant::now();
    loop {
        let found = find_now(named)?;
        let has_ports = found.state.as_ref().is_ok_and(|state| !state.ports.is_empty());
        if has_ports || since.elapsed() > PATIENCE {
            return Ok(found);
        }
        std::thread::sleep(super::TICK);
    }
}

fn find_now(named: &str) -> Result<Found> {
    let target = Target::parse(Some(named));
    let found = find::one(&target, "dropless capture --attach")?;
    let state = found.state.as_ref().map_err(|refusal| anyhow!("{refusal}"))?;
    let (process, command) = (found.process, state.process.command.as_str());
    ensure!(
        found.alive && state.ended.is_none(),
        "the run of process {process} has ended; what it left is in {}",
        state.process.run.display()
    );
    match command {
        _ if can_be_looked_into(state) => Ok(found),
        "search" | "compare" => bail!(
            "process {process} is a {command}, whose trials are runs of their own; {}",
            trial(process)
        ),
        "capture" => bail!(
            "process {process} captures itself, and what it takes is there already: start it with --ring NAME, and join that"
        ),
        _ => bail!("process {process} is a {command}, which moves no packets that could be looked at"),
    }
}

/// Which trial of a search could be looked into.
fn trial(process: u32) -> String {
    let mut runs = Place::visible().into_iter().flat_map(|place| place.list());
    let is_trial = |found: &Found| {
        found
            .state
            .as_ref()
            .is_ok_and(|state| state.process.parent == process)
    };
    match runs.find(|found| found.alive && is_trial(found)) {
        Some(found) => format!("the one that goes now is: --attach {}", found.process),
        None => "none goes at this moment, try again".into(),
    }
}

fn cannot(process: u32) -> String {
    format!("cannot look into the run of process {process}")
}

impl Attached {
    /// Connects to the run in `found`, and asks nothing of it yet.
    pub fn new(found: Found, wanted: AttachPlan) -> Result<Self> {
        let host = found.state.map_err(|refusal| anyhow!("{refusal}"))?;
        let process = found.process;
        let is_shut = || {
            anyhow!(
                "the run of process {process} lets nobody look into it yet, or no more: it starts, ends, or is of another version"
            )
        };
        // What it tells of its ports it tells from its start on.
        ensure!(!host.ports.is_empty(), is_shut());
        let stream = UnixStream::connect(tap_socket(&found.path)).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => is_shut(),
            ErrorKind::PermissionDenied => {
                anyhow!("the run of process {process} is another user's; use sudo")
            }
            _ => anyhow!(error).context(cannot(process)),
        })?;
        Ok(Self {
            host,
            wanted,
            notes: Vec::new(),
            is_everywhere: false,
            stream,
        })
    }

    /// What is begun, in words.
    pub fn begins(&self) -> String {
        format!(
            "attaching to `dropless {}` of process {}\n",
            self.host.process.command, self.wanted.process
        )
    }

    /// Why nothing more is said by the other side.
    fn broken(&self, error: io::Error) -> anyhow::Error {
        let process = self.wanted.process;
        match error.kind() {
            ErrorKind::WouldBlock => anyhow!("the run of process {process} does not answer: is it stopped?"),
            ErrorKind::Interrupted => anyhow!("interrupted while attaching to process {process}"),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
                anyhow!("the run of process {process} has ended")
            }
            _ => anyhow!(error).context(cannot(process)),
        }
    }

    /// Asks for taps, which keep so many bytes of each frame.
    fn ask(&self, snap_len: u32) -> Result<Vec<(Told, Consumer)>> {
        let (process, stream) = (self.wanted.process, &self.stream);
        let named = || cannot(process);
        stream.set_read_timeout(Some(PATIENCE)).with_context(named)?;
        let ways = [
            (self.wanted.received, Direction::In),
            (self.wanted.sent, Direction::Out),
        ];
        let ways: Vec<Direction> = ways
            .into_iter()
            .filter_map(|(is_wanted, way)| is_wanted.then_some(way))
            .collect();
        let asked = Asked::new(&ways, snap_len).encode();
        (&*stream).write_all(&asked).map_err(|error| self.broken(error))?;
        let mut taps = Vec::new();
        loop {
            let mut answer = [0; TELL_LEN];
            let files = socket::receive(stream, &mut answer, || false).map_err(|error| self.broken(error))?;
            let answer = Told::decode(&answer, self.host.ports.len())
                .with_context(|| format!("process {process} does not speak as a dropless does"))?;
            let Answer::Tap(told) = answer else {
                bail!("{}: {}", cannot(process), socket::sentence(stream));
            };
            let [ring, page] = <[_; 2]>::try_from(files)
                .map_err(|_| anyhow!("a tap came without its ring"))
                .with_context(named)?;
            taps.push((told, Consumer::new(ring, page).with_context(named)?));
            if taps.len() >= told.taps as usize {
                break;
            }
        }
        stream.set_nonblocking(true).with_context(named)?;
        Ok(taps)
    }

    /// Makes the plan one of a worker that takes nothing from the run, nor from another one: a core that none of them uses, and
    /// where they use all, little of one. That worker rests between its looks, which is no stall.
    pub fn share_machine(&mut self, machine: &mut MachinePlan) {
        machine.pause_ns = MachinePlan::RESTS;
        machine.no_huge = true;
        if !machine.cores.is_empty() {
            return;
        }
        let sys = Sys::live();
        let workers = self.host.workers.iter();
        let own = workers.map(|worker| Core(worker.summary.core));
        let others = cores::polled(&sys).into_iter().map(|polled| polled.core);
        let used: CoreSet = own.chain(others).collect();
        let free = cores::allowed(&sys).without(&used);
        machine.cores = free.iter().take(1).collect();
        if machine.cores.is_empty() {
            self.is_everywhere = true;
            let text = "the run that is looked into, or others that poll, use every core: this process has the lowest priority, and its taps may lose more";
            self.notes.push(Note::new("host_uses_all", text));
        }
    }

    /// The ports of the run as they are told in a file.
    pub fn interfaces(&self, plan: &CapturePlan) -> Vec<Interface> {
        let told = |port: &PortSummary| Interface {
            name: port.uri.clone(),
            description: format!(
                "as `dropless {}` (process {}) received and sent; stamped by the processor's time stamp counter when its burst was polled, or handed to the driver",
                self.host.process.command, self.host.process.id
            ),
            mac: None,
            speed: None,
            snap_len: plan.snap_len,
            filter: plan.filter.clone(),
        };
        self.host.ports.iter().map(told).collect()
    }

    /// The taps, with so many bytes of each frame, and the connection that they live as long as. They fill from now on: this
    /// is for the last moment before they are read.
    pub fn tap(self, snap_len: u32) -> Result<(Link, Vec<(Told, Consumer)>)> {
        let since = clock::now();
        let taps = self.ask(snap_len)?;
        if self.is_everywhere {
            // Not before: all that leads here would wait for a core. Where it is refused, the kernel shares the core evenly.
            let _ = rustix::process::nice(NICE);
        }
        let link = Link {
            process: self.wanted.process,
            ports: self.host.ports.len(),
            what: format!(
                "looking into `dropless {}` of process {}",
                self.host.process.command, self.host.process.id
            ),
            since,
            stream: self.stream,
            taps: taps.iter().map(|_| Arc::default()).collect(),
            asked: None,
        };
        Ok((link, taps))
    }
}

/// The connection to the run that is looked into.
pub struct Link {
    /// What is done, in words.
    pub what: String,
    process: u32,
    /// How many ports it has.
    pub ports: usize,
    /// No tap has filled for longer than since then.
    pub since: Ticks,
    stream: UnixStream,
    /// What is known of each tap.
    pub taps: Vec<Arc<TapCounters>>,
    /// When it was asked to end its taps.
    asked: Option<Instant>,
}

impl Link {
    /// One look; whether all is over. `is_over` asks the run to end its taps, so that nothing is open when the books are made.
    pub fn look(&mut self, is_over: bool) -> bool {
        if is_over && self.asked.is_none() {
            self.asked = Some(Instant::now());
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        if socket::has_ended(&self.stream) {
            self.taps.iter().for_each(|tap| tap.gone.set(1));
        }
        let is_empty = self.taps.iter().all(|tap| tap.is_empty());
        let is_silent = self.asked.is_some_and(|asked| asked.elapsed() > PATIENCE);
        is_empty || is_silent || self.problem().is_some()
    }

    /// Whether all taps have ended, and everything has come.
    fn is_whole(&self) -> bool {
        self.taps.iter().all(|tap| tap.ended.get() == 1)
    }

    /// What was not copied by those taps.
    pub fn lost(&self, is_meant: impl Fn(usize) -> bool) -> u64 {
        let taps = self.taps.iter().enumerate();
        taps.filter(|(index, _)| is_meant(*index))
            .map(|(_, tap)| tap.lost())
            .sum()
    }

    /// What is wrong with what came.
    pub fn problem(&self) -> Option<String> {
        let damaged = self.taps.iter().any(|tap| tap.damaged.get() == 1);
        damaged.then(|| "a tap's ring contradicts itself".into())
    }

    /// Whose taps did not end: it was killed, or does not answer.
    pub fn unended(&self) -> Option<u32> {
        (!self.is_whole()).then_some(self.process)
    }

    /// What went by, and what was lost of it for want of time and of room, when `taken` frames have been taken.
    pub fn counts(&self, taken: u64) -> (u64, [u64; 2]) {
        let sum = |of: fn(&TapCounters) -> u64| self.taps.iter().map(|tap| of(tap)).sum::<u64>();
        let lost = [sum(|tap| tap.no_time.get()), sum(|tap| tap.no_room.get())];
        let seen = sum(|tap| tap.seen.get());
        if self.is_whole() {
            return (seen, lost);
        }
        // What goes by is told before its copies can be seen, and what was lost of it before both.
        (seen.max(taken + lost[0] + lost[1]), lost)
    }
}

/// Whose run it is that a plan looks into.
pub fn plan(found: &Found, way: Way) -> AttachPlan {
    let run = found
        .state
        .as_ref()
        .map_or_else(|_| PathBuf::new(), |state| state.process.run.clone());
    AttachPlan {
        process: found.process,
        run,
        received: way != Way::Out,
        sent: way != Way::In,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (Link, UnixStream) {
        let (stream, host) = UnixStream::pair().expect("a pair");
        stream.set_nonblocking(true).expect("it does not block");
        let link = Link {
            what: String::new(),
            process: 7,
            ports: 1,
            since: clock::now(),
            stream,
            taps: vec![Arc::default(), Arc::default()],
            asked: None,
        };
        (link, host)
    }

    /// A worker that has no core takes nothing, and what it has not taken is no end.
    #[test]
    fn a_run_that_is_gone_is_over_when_every_tap_was_found_empty() {
        let (mut link, host) = link();
        assert!(!link.look(false));
        drop(host);
        assert!(
            (0..100).all(|_| !link.look(false)),
            "a tap was not read to its end"
        );
        link.taps[0].drained.set(1);
        assert!(!link.look(false), "the other one was not");
        link.taps[1].drained.set(1);
        assert!(link.look(false));
        assert_eq!(link.unended(), Some(7));
    }

    /// What was told to have gone by, and did not come, is missing, and no less went by than came.
    #[test]
    fn what_a_killed_run_told_and_did_not_copy_is_missing() {
        let (link, _host) = link();
        link.taps[0].seen.set(9);
        link.taps[1].no_room.set(1);
        assert_eq!(link.counts(5), (9, [0, 1]));
        assert_eq!(link.counts(20), (21, [0, 1]));
        link.taps.iter().for_each(|tap| tap.ended.set(1));
        assert_eq!((link.counts(8), link.unended()), ((9, [0, 1]), None));
    }
}
