//! A private instance of the kernel's tracer: only ours, stamped with the TSC, and gone when we are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use itertools::Itertools as _;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::event::{CALL_NAMES, CALLS, Decoder, PAIRS, SENDERS, SINGLES};
use host::cores::{Core, CoreSet};

/// Where tracefs is looked for.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Our instances are called so, with the process's id.
const PREFIX: &str = "dropless-";
const PROC: &str = "/proc";
/// Buffer for one core whose work is recorded, KiB: some 300,000 events.
const BUFFER_KIB: usize = 16 << 10;
/// A page of the buffer, as `trace_pipe_raw` hands it out.
const PAGE: usize = 4096;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No tracefs.
    #[error(
        "tracefs is not mounted, and cannot be mounted for this run alone ({0}); fix: mount -t tracefs nodev /sys/kernel/tracing"
    )]
    NotMounted(io::Error),
    /// Not allowed.
    #[error("reading tracefs needs root (CAP_SYS_ADMIN); fix: sudo")]
    Forbidden,
    /// The clock of the loops is not among the tracer's.
    #[error("this kernel's tracer has no x86-tsc clock, so its times cannot be compared with the loop's")]
    NoClock,
    /// The tracer tells tasks by numbers that are not those which this process sees: it would take itself for a stranger.
    #[error(
        "this process is in a PID namespace, and the kernel's tracer counts tasks as the machine does; \
         fix: run it in that of the machine (docker run --pid=host, hostPID: true)"
    )]
    Namespace,
    /// No memory for its buffers.
    #[error(
        "the kernel has no memory for the tracer's buffers ({BUFFER_KIB} KiB for each of {0}, and some MiB for each other core); \
         fix: free some, or watch fewer cores (--cores)"
    )]
    NoMemory(String),
    /// Anything else.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

/// Which events of which cores are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// All that runs on the cores.
    Work,
    /// Only what they send to other cores: that is little, and the buffers stay as the kernel makes them.
    Sending,
}

/// A running trace. Removed when dropped.
#[derive(Debug)]
pub struct Trace {
    base: PathBuf,
    /// Keeps a mount of our own.
    _mount: Option<File>,
    pipes: Vec<(Core, File)>,
    decoder: Decoder,
    page: Vec<u8>,
}

impl Trace {
    /// Records the events of `cores` from now on.
    pub fn start(name: &str, cores: &CoreSet, subject: Subject) -> Result<Self, TraceError> {
        Self::begin(name, cores, subject).map_err(|error| match error {
            TraceError::Io(_, error) if error.kind() == io::ErrorKind::OutOfMemory => {
                TraceError::NoMemory(cores.in_words())
            }
            other => other,
        })
    }

    fn begin(name: &str, cores: &CoreSet, subject: Subject) -> Result<Self, TraceError> {
        let (root, mount) = find()?;
        let clocks = fs::read_to_string(root.join("trace_clock")).map_err(|_| TraceError::Forbidden)?;
        if !clocks.split_whitespace().any(|clock| clock.contains("x86-tsc")) {
            return Err(TraceError::NoClock);
        }
        sweep(&root.join("instances"), Path::new(PROC));
        let base =
            root.join("instances")
                .join(format!("{PREFIX}{}-{:x}-{name}", std::process::id(), unique()));
        fs::create_dir(&base).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => TraceError::Forbidden,
            _ => TraceError::Io(base.clone(), error),
        })?;
        let mut trace = Self {
            base,
            _mount: mount,
            pipes: Vec::new(),
            decoder: Decoder::default(),
            page: vec![0; PAGE],
        };
        trace.set("tracing_on", "0")?;
        trace.set("trace_clock", "x86-tsc")?;
        trace.set("tracing_cpumask", &cores.mask())?;
        match subject {
            Subject::Work => {
                // Of these cores alone: others have a buffer, too, however many there are.
                for core in cores.iter() {
                    let file = format!("per_cpu/cpu{core}/buffer_size_kb");
                    trace.set(&file, &BUFFER_KIB.to_string())?;
                }
                let pairs = PAIRS.into_iter();
                trace
                    .enable_all(pairs.flat_map(|(system, entry, exit)| [(system, entry), (system, exit)]))?;
                trace.enable_all(SINGLES)?;
            }
            Subject::Sending => {
                trace.enable_all(SENDERS)?;
                // All calls of all tasks would be a load of their own; and our own reads of the trace would fill it.
                let threads = own_threads();
                let threads = threads
                    .iter()
                    .map(|id| format!("common_pid == {id}"))
                    .join(" || ");
                let calls = CALL_NAMES
                    .iter()
                    .map(|(number, _)| format!("id == {number}"))
                    .join(" || ");
                let filter = format!("({threads}) && ({calls})");
                for (system, name) in CALLS {
                    if trace
                        .set(&format!("events/{system}/{name}/filter"), &filter)
                        .is_ok()
                    {
                        trace.enable(system, name)?;
                    }
                }
            }
        }
        for core in cores.iter() {
            let path = trace.base.join(format!("per_cpu/cpu{core}/trace_pipe_raw"));
            let pipe = OpenOptions::new()
                .read(true)
                .custom_flags(nix::libc::O_NONBLOCK)
                .open(&path)
                .map_err(|error| TraceError::Io(path, error))?;
            trace.pipes.push((core, pipe));
        }
        trace.set("tracing_on", "1")?;
        Ok(trace)
    }

    /// Ends the recording; what was recorded can still be read.
    pub fn stop(&self) {
        // It ends with the instance in any case.
        let _ = self.set("tracing_on", "0");
    }

    /// Hands every page that there is to `each`. Never waits, and ends even if reading makes new events.
    pub fn read(&mut self, mut each: impl FnMut(Core, &Decoder, &[u8])) {
        for (core, pipe) in &mut self.pipes {
            for _ in 0..BUFFER_KIB * 1024 / PAGE {
                let Ok(count @ 1..) = pipe.read(&mut self.page) else {
                    break;
                };
                each(*core, &self.decoder, &self.page[..count]);
            }
        }
    }

    fn enable_all(
        &mut self,
        events: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Result<(), TraceError> {
        let mut events = events.into_iter();
        events.try_for_each(|(system, name)| self.enable(system, name))
    }

    /// An event that this kernel does not have is one that cannot happen.
    fn enable(&mut self, system: &str, name: &'static str) -> Result<(), TraceError> {
        let event = format!("events/{system}/{name}");
        let Ok(format) = fs::read_to_string(self.base.join(&event).join("format")) else {
            return Ok(());
        };
        self.decoder.learn(name, &format);
        self.set(&format!("{event}/enable"), "1")
    }

    fn set(&self, file: &str, value: &str) -> Result<(), TraceError> {
        let path = self.base.join(file);
        fs::write(&path, value).map_err(|error| TraceError::Io(path, error))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.stop();
        self.pipes.clear();
        // The kernel takes a moment to let go of the buffers.
        for _ in 0..50 {
            if fs::remove_dir(&self.base).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn mounted() -> Option<PathBuf> {
    let mut places = PLACES.iter().map(PathBuf::from);
    places.find(|place| place.join("instances").is_dir())
}

/// Where tracefs is. Where it is mounted nowhere that we see (as within `ip netns exec`, which has a `/sys` of its own) it
/// is mounted for us alone: the directory is kept open, and the mount is detached from the tree at once.
fn find() -> Result<(PathBuf, Option<File>), TraceError> {
    if let Some(place) = mounted() {
        return Ok((place, None));
    }
    let private = || -> io::Result<File> {
        let place = std::env::temp_dir().join(format!("{PREFIX}tracefs-{}", std::process::id()));
        fs::create_dir(&place)?;
        let made = mount(
            None::<&str>,
            &place,
            Some("tracefs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .map_err(io::Error::from)
        .and_then(|()| {
            let root = File::open(&place);
            umount2(&place, MntFlags::MNT_DETACH).map_err(io::Error::from)?;
            root
        });
        fs::remove_dir(&place)?;
        made
    };
    match private() {
        Ok(root) => Ok((
            PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd())),
            Some(root),
        )),
        Err(error) if nix::unistd::geteuid().is_root() => Err(TraceError::NotMounted(error)),
        Err(_) => Err(TraceError::Forbidden),
    }
}

/// Told apart from what a process of the same id in another namespace makes.
fn unique() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos())
}

/// Removes what killed processes of ours have left, where tracefs is mounted: until the next boot, the events that they
/// asked for would be written down on every core, and cost its packets.
pub fn sweep_killed() {
    if let Some(place) = mounted() {
        sweep(&place.join("instances"), Path::new(PROC));
    }
}

fn sweep(instances: &Path, proc: &Path) {
    let is_dropless = |pid: &str| {
        let name = fs::read_to_string(proc.join(pid).join("comm"));
        name.is_ok_and(|name| name.starts_with("dropless"))
    };
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        // Of another PID namespace's process nothing is seen here, or somebody else who has its number; but what is in use the
        // kernel does not remove. What is being set up is not in use yet.
        let ours = std::process::id().to_string();
        if pid.is_some_and(|pid| pid == ours || !is_dropless(pid)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The threads of this process.
pub(super) fn own_threads() -> Vec<u32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_killed_left_goes_whoever_has_their_numbers_now() {
        let (instances, proc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (pid, name) in [("1", "systemd\n"), ("20", "dropless\n")] {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), name).unwrap();
        }
        let own = format!("dropless-{}-a-noise", std::process::id());
        for name in [
            &own,
            "dropless-1-a-noise",
            "dropless-7-a-noise",
            "dropless-20-a-run",
            "else-1",
        ] {
            fs::create_dir(instances.path().join(name)).unwrap();
        }
        sweep(instances.path(), proc.path());
        let left = fs::read_dir(instances.path()).unwrap().flatten();
        let left = left.map(|entry| entry.file_name().into_string().unwrap());
        assert_eq!(left.sorted().collect_vec(), ["dropless-20-a-run", "else-1"]);
    }
}
