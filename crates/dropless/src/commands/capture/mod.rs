//! `dropless capture`: takes what arrives on its ports into shared memory and files.

mod active;
pub mod args;
mod attach;
mod consumer;
mod summary;

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use measure::Note;
use serde::Serialize;

pub use args::Args;

use crate::plan::{CapturePlan, MachinePlan};
use crate::run::open::OpenPort;
use crate::run::peer::Patience;
use crate::run::pools::Pools;
use crate::run::signals::Interrupt;
use crate::run::stage::Stage;
use crate::run::{self, Job, Needs};
use active::ActiveCapture;
use attach::Attached;

/// How often control looks.
const TICK: Duration = Duration::from_millis(20);
/// The largest frame that buffers and links are made for, with FCS; longer ones come in several buffers.
const LARGEST_FRAME: usize = 1518;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let found = args.attach.as_deref().map(attach::find).transpose()?;
    let attach = found.as_ref().map(|found| attach::plan(found, args.direction));
    let mut plan = args.plan(attach)?;
    if let Some(files) = &plan.files {
        consumer::check_file(files)?;
    }
    let sink = args.stdout.then(own_stdout).transpose()?;
    let mut settings = args.run.settings()?;
    let mut attached = None;
    if let (Some(found), Some(wanted)) = (found, &plan.attach) {
        let mut host = Attached::new(found, wanted, plan.snap_len)?;
        settings.has_doctor = false;
        host.share_machine(&mut plan.machine);
        attached = Some(host);
    }
    let job = CaptureJob {
        plan,
        attached,
        sink,
        is_quiet: args.run.output.quiet,
    };
    run::run(job, &settings)
}

/// Standard output for packets alone: whatever else is printed there goes to standard error from now on.
fn own_stdout() -> Result<File> {
    let stdout = std::io::stdout();
    ensure!(
        !stdout.is_terminal(),
        "--stdout writes binary pcapng, which a terminal cannot show; pipe it: | tshark -i -, or > FILE"
    );
    let own = stdout.as_fd().try_clone_to_owned().context("standard output")?;
    nix::unistd::dup2_stdout(std::io::stderr()).context("standard output")?;
    Ok(File::from(own))
}

/// A run that captures.
pub struct CaptureJob {
    plan: CapturePlan,
    /// The run that is looked into, in the place of ports.
    attached: Option<Attached>,
    /// Gets a stream of pcapng.
    sink: Option<File>,
    /// Nobody wants to hear that no peer has come.
    is_quiet: bool,
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
        let remark = if self.is_quiet {
            Duration::MAX
        } else {
            Duration::from_nanos(self.plan.machine.wait_ns)
        };
        Ok(Needs {
            rx_queues: self.plan.queues,
            tx_queues: self.plan.queues,
            largest_frame: LARGEST_FRAME,
            held_per_queue: dataplane::capture::buffers_held(self.plan.machine.burst),
            tx_checksum_offload: false,
            sockets: self.plan.sockets(),
            patience: Patience::Forever(remark),
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

    /// One: it polls, merges and copies.
    fn workers(&self, _ports: &[OpenPort<'_>]) -> usize {
        1
    }

    fn wire<'p, 'e: 'p>(self, stage: &mut Stage<'_, 'p, 'e>) -> Result<ActiveCapture> {
        ActiveCapture::wire(self.plan, (self.sink, self.attached), stage)
    }
}
