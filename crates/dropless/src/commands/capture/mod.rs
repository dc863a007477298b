//! `dropless capture`: takes what arrives on its ports into shared memory and files.

mod active;
pub mod args;
mod attach;
mod consumer;
mod draining;
mod guests;
mod refusals;
mod statistics;
mod stream;
mod summary;
mod wall;
mod wiring;

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use capture::ring::share::{DOOR_MAX, Door, RINGS};
use measure::Note;
use nix::sys::resource::{Resource, getrlimit};
use serde::Serialize;

pub use args::Args;
use args::Way;

use crate::about::{About as _, ensure_about};
use crate::plan::{CapturePlan, MachinePlan, RingPlan, USUAL_FRAME};
use crate::run::generator;
use crate::run::kernel_port::SocketConfig;
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::preflight;
use crate::run::signals::Interrupt;
use crate::run::stage::Stage;
use crate::run::{self, Job, Needs};
use active::ActiveCapture;
use attach::Attached;

/// How often control looks.
const TICK: Duration = Duration::from_millis(20);
/// Bytes kept of frames that are not cut.
const WHOLE: u32 = 262_144;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let found = args.attach.as_deref().map(attach::find).transpose()?;
    let attach = found
        .as_ref()
        .map(|found| attach::plan(found, args.direction.unwrap_or(Way::Both)));
    let mut plan = args.plan(attach)?;
    check_memory(&plan.ring)?;
    if let Some(files) = &plan.files {
        consumer::check_file(files, &plan.machine.ports)?;
    }
    let door = plan.ring.door.as_deref();
    let door = door.map(|path| open_door(path, plan.ring.group)).transpose()?;
    if args.stdout {
        consumer::check_apart(Path::new(STDOUT), "--stdout", &plan.machine.ports).about("--stdout")?;
    }
    let sink = args.stdout.then(own_stdout).transpose()?;
    let mut settings = args.run.settings()?;
    let mut attached = None;
    if let (Some(found), Some(wanted)) = (found, &plan.attach) {
        let mut host = Attached::new(found, wanted.clone())?;
        if !args.run.output.quiet {
            report::out::print_stderr(&host.begins())?;
        }
        settings.has_doctor = false;
        host.share_machine(&mut plan.machine);
        attached = Some(host);
    }
    let job = CaptureJob {
        plan,
        attached,
        door,
        sink,
        is_quiet: args.run.output.quiet,
    };
    run::run(job, &settings)
}

/// The file that standard output is, where it is one.
const STDOUT: &str = "/proc/self/fd/1";

/// The ring is there as a whole before the first packet: more than there is would wake the OOM killer.
fn check_memory(ring: &RingPlan) -> Result<()> {
    let wanted = ring.bytes();
    preflight::memory_for("--ring-size: the ring needs", wanted, "use a smaller one").about("--ring-size")?;
    let (longest, _) = getrlimit(Resource::RLIMIT_FSIZE).context("ulimit -f")?;
    ensure_about!(
        "--ring-size",
        wanted <= longest,
        "--ring-size: the ring is a file of {} MiB in memory, and this process may make none longer than {} KiB; raise `ulimit -f`, or use a smaller ring",
        wanted >> 20,
        longest >> 10
    );
    Ok(())
}

/// Opens the socket at which other processes join the ring. The directory of this machine's rings is made; no other is.
fn open_door(path: &Path, group: Option<u32>) -> Result<Door> {
    let own = path.parent().filter(|parent| *parent == Path::new(RINGS));
    let made = own.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| Door::open(path, group))
        .map_err(|error| anyhow!("--ring {}: {}", path.display(), cannot_open(path, &error)))
        .about("--ring")
}

/// Why there is no socket, and what to do.
fn cannot_open(path: &Path, error: &io::Error) -> String {
    let (parent, name) = (path.parent(), path.file_name().unwrap_or_default());
    let is_own = parent == Some(Path::new(RINGS));
    match error.kind() {
        ErrorKind::AddrInUse => "another capture has this name; choose another, or end that one".into(),
        ErrorKind::PermissionDenied if is_own => format!(
            "only root writes to {RINGS}; name a place of your own, such as --ring ./{}, or use sudo",
            name.to_string_lossy()
        ),
        ErrorKind::NotFound => format!(
            "there is no directory {}; make it, or choose another",
            parent.unwrap_or(path).display()
        ),
        ErrorKind::InvalidInput => format!(
            "the name is too long for a socket, whose path may have {DOOR_MAX} bytes, and this one has {}; choose a shorter one",
            path.as_os_str().len()
        ),
        ErrorKind::AlreadyExists => "what is there is no socket, and stays; choose another name".into(),
        _ => error.to_string(),
    }
}

/// Standard output for packets alone: whatever else is printed there goes to standard error from now on.
fn own_stdout() -> Result<File> {
    let stdout = io::stdout();
    ensure_about!(
        "--stdout",
        !stdout.is_terminal(),
        "--stdout writes binary pcapng, which a terminal cannot show; pipe it: | tshark -i -, or > FILE"
    );
    let own = stdout.as_fd().try_clone_to_owned().context("standard output")?;
    nix::unistd::dup2_stdout(io::stderr()).context("standard output")?;
    Ok(File::from(own))
}

/// A run that captures.
pub struct CaptureJob {
    plan: CapturePlan,
    /// The run that is looked into, in the place of ports.
    attached: Option<Attached>,
    /// Gets a stream of pcapng.
    sink: Option<File>,
    /// Where other processes join the ring.
    door: Option<Door>,
    /// Nobody wants to hear that no peer has come.
    is_quiet: bool,
}

impl CaptureJob {
    fn buffers_held(&self) -> usize {
        let (plan, burst) = (&self.plan, self.plan.machine.burst);
        let held = dataplane::capture::buffers_held(burst, plan.has_receivers());
        if plan.machine.has(|traits| traits.is_reflected) {
            held + generator::buffers_held(burst)
        } else {
            held
        }
    }
}

impl Job for CaptureJob {
    type Active = ActiveCapture;

    const COMMAND: &'static str = "capture";

    fn plan(&self) -> &impl Serialize {
        &self.plan
    }

    fn machine(&self) -> &MachinePlan {
        &self.plan.machine
    }

    fn needs(&self) -> Result<Needs> {
        Ok(Needs {
            rx_queues: self.plan.queues,
            tx_queues: self.plan.queues,
            // Longer ones come in several buffers.
            largest_frame: USUAL_FRAME,
            mtu: None,
            takes_all: true,
            held_per_queue: self.buffers_held(),
            tx_checksum_offload: false,
            // It has none.
            sockets: SocketConfig::default(),
            patience: Patience::forever(self.plan.machine.wait_ns, !self.is_quiet),
            tick: TICK,
        })
    }

    fn meet<'e>(
        &mut self,
        _pools: Option<&Pools<'e>>,
        _ports: &mut [OpenPort<'e>],
        _interrupt: &Interrupt,
    ) -> Result<Vec<Note>> {
        let notes = self.attached.as_mut().map(|host| std::mem::take(&mut host.notes));
        Ok(notes.unwrap_or_default())
    }

    /// One, which polls, merges and copies, unless the user names more.
    fn workers(&self, _ports: &[OpenPort<'_>]) -> usize {
        1
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveCapture> {
        wiring::wire(self.plan, self.attached, (self.sink, self.door), stage)
    }
}
