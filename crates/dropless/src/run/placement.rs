//! Which cores the workers get, and which one the control thread keeps.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use host::Sys;
use host::cores::{self, Choice, Core, CoreSet, Polled, polled};
use host::partition::{self, CgroupHome, PartitionStay};
use host::threads::is_real_time;
use measure::Note;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use report::published::Place;

use crate::about::ensure_about;
use crate::plan::MachinePlan;

/// Another run that starts at the same moment is waited for so long.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// From the choice of cores until its workers poll, and this is dropped, one run of a user is at it at a time: who chooses next
/// sees them.
pub struct Turn {
    _lock: Option<Flock<File>>,
}

impl Turn {
    /// Waits for it, a while: where it cannot be had, a run goes on without.
    pub fn take() -> Self {
        Self { _lock: lock() }
    }
}

fn lock() -> Option<Flock<File>> {
    let path = Place::own().path().join(".cores");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(path).ok()?;
    let begun = Instant::now();
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((file, Errno::EWOULDBLOCK)) if begun.elapsed() < PATIENCE => file,
            Err(_) => return None,
        };
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Cores for `wanted` workers: the user's, or chosen; and what to tell about the choice, the worst first. Of those that are chosen
/// one is left to the kernel and the display: with one worker less a run is faster than with one that has to take turns.
pub fn worker_cores(plan: &MachinePlan, wanted: usize, node: Option<u32>) -> Result<(Vec<usize>, Vec<Note>)> {
    let sys = Sys::live();
    let polled = polled(&sys);
    let mut own = Vec::new();
    let list: Vec<Core> = if plan.cores.is_empty() {
        let workers = wanted.min(cores::allowed(&sys).len().saturating_sub(1)).max(1);
        let choice = cores::pick(&sys, workers, node, &polled)?;
        if choice.shared {
            own.push(beside_the_kernel(&choice, &polled));
        }
        if workers < wanted {
            own.push(fewer(workers, wanted));
        }
        choice.workers
    } else {
        plan.cores.iter().collect()
    };
    ensure_one_is_left(&sys, &list.iter().copied().collect())?;
    let shared = polled.iter().filter(|polled| list.contains(&polled.core));
    let notes = shared.map(polled_too).chain(own).collect();
    Ok((list.into_iter().map(|core| core.0 as usize).collect(), notes))
}

/// Refuses loops on all cores of `taken` where control would hear nothing any more: threads of a real-time class that never
/// wait leave their cores to nobody.
pub fn ensure_one_is_left(sys: &Sys, taken: &CoreSet) -> Result<()> {
    ensure_about!(
        "--cores",
        !is_real_time(sys) || !cores::allowed(sys).without(taken).is_empty(),
        "in a real-time class (chrt) loops on every core would leave none to the control of this run, which then hears no Ctrl-C: leave one out with --cores, or start it without chrt"
    );
    Ok(())
}

fn polled_too(Polled { core, by }: &Polled) -> Note {
    let text = format!(
        "core {core} is polled by {} of process {}, too: the two take turns, and each is away for 3 ms and more at a time; choose others with --cores, or end that first",
        by.name, by.process
    );
    Note::new("core_polled_too", text)
}

/// What it means that a worker has the core that should be left to all else.
fn beside_the_kernel(choice: &Choice, polled: &[Polled]) -> Note {
    let core = choice.housekeeping;
    let why = if polled.is_empty() {
        "there is no other".to_owned()
    } else {
        let cores: CoreSet = polled.iter().map(|polled| polled.core).collect();
        format!("others poll {}", cores.in_words())
    };
    let text = format!("a worker takes turns with the kernel and this display on core {core}: {why}");
    Note::new("beside_the_kernel", text)
}

fn fewer(workers: usize, wanted: usize) -> Note {
    let text = format!(
        "the work of {wanted} workers is done by {workers}: the last core is left to the kernel and this display (--cores takes those that it names)"
    );
    Note::new("core_left", text)
}

/// Remembers the cgroup of this process, which goes back there when the result is dropped: after its workers have ended.
pub fn home() -> Option<CgroupHome> {
    partition::home(&Sys::live())
}

/// Moves this thread into the partition of `dropless tune`, where one of these cores is in it: what it starts there
/// stays. It comes back when the result is dropped, with its affinity forgotten.
pub fn visit(workers: &[usize]) -> Result<Option<PartitionStay>> {
    let cores: CoreSet = workers.iter().map(|core| Core(*core as u32)).collect();
    Ok(partition::enter(&Sys::live(), &cores)?)
}

/// Keeps the control thread off the workers' cores where there is another.
pub fn leave_to_workers(workers: &[usize]) {
    let allowed = cores::allowed(&Sys::live());
    let taken: CoreSet = workers.iter().map(|core| Core(*core as u32)).collect();
    if let Some(core) = allowed.without(&taken).iter().next() {
        // Only comfort: where it is refused, the workers share their core with a thread that mostly sleeps.
        let _ = dpdk::pin_to_core(core.0 as usize);
    }
}
