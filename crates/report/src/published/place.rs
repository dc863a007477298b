//! Where published files lie: a directory of the user's own in shared memory, one file a process.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use procfs_core::FromRead as _;
use procfs_core::process::{Stat, Status};

use super::file::is_published;
use super::{Process, Refusal, State, encode, own_id, read};

/// Names another directory, in the place of the user's own.
const VARIABLE: &str = "DROPLESS_LIVE_DIR";
/// Memory that all processes of a machine see.
const SHARED: &str = "/dev/shm";
/// Mode bits: everybody may write; only owners rename and remove.
const WRITTEN_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// What a dead process left, or told of its end, is kept this long, so that whoever watches sees how it ended.
const KEPT: Duration = Duration::from_secs(60);
/// Ticks a second in which the kernel tells starts, on every architecture that this runs on.
const USER_HZ: i64 = 100;

/// Why a run cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct PlaceError {
    path: PathBuf,
    problem: String,
}

/// The directory.
#[derive(Debug, Clone)]
pub struct Place(PathBuf);

/// A published file, and what became of it.
#[derive(Debug)]
pub struct Found {
    /// The process id that the file is named after.
    pub process: u32,
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub state: Result<State, Refusal>,
    /// Its process lives.
    pub alive: bool,
}

impl Found {
    /// Its process died, or told that its run has ended, more than [`KEPT`] ago.
    fn is_long_over(&self) -> bool {
        let has_ended = self.state.as_ref().is_ok_and(|state| state.ended.is_some());
        (!self.alive || has_ended) && is_old(&self.path)
    }
}

impl Place {
    /// The user's own directory.
    pub fn own() -> Self {
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let usual = || Path::new(SHARED).join(format!("dropless-{}", nix::unistd::geteuid()));
        Self(named.map_or_else(usual, PathBuf::from))
    }

    /// Any directory.
    pub fn at(path: &Path) -> Self {
        Self(path.to_path_buf())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directories to look in: one's own, and for root everybody's.
    pub fn visible() -> Vec<Self> {
        let own = Self::own();
        let mut all = vec![own.clone()];
        if nix::unistd::geteuid().is_root() && std::env::var_os(VARIABLE).is_none() {
            let entries = fs::read_dir(SHARED).into_iter().flatten().flatten();
            let theirs = entries.filter(|entry| {
                let name = entry.file_name().into_string().unwrap_or_default();
                let user = name.strip_prefix("dropless-").and_then(|user| user.parse().ok());
                let data = fs::symlink_metadata(entry.path()).ok();
                let owner = data.filter(fs::Metadata::is_dir).map(|data| data.uid());
                // A directory speaks for the user that it is named after, and for nobody else.
                user.is_some() && user == owner
            });
            let theirs = theirs.map(|entry| Self(entry.path()));
            all.extend(theirs.filter(|place| place.0 != own.0));
        }
        all
    }

    /// The file of a process.
    pub fn file(&self, process: u32) -> PathBuf {
        self.0.join(process.to_string())
    }

    /// What becomes the file of a process.
    fn beside(&self, process: u32) -> PathBuf {
        self.0.join(format!(".{process}"))
    }

    /// All published files, the latest process last, without what is over for long.
    pub fn list(&self) -> Vec<Found> {
        let mut found: Vec<Found> = self
            .processes()
            .map(|process| self.look(process))
            .filter(|found| !found.is_long_over())
            .collect();
        found.sort_by_key(|found| {
            let begun = found
                .state
                .as_ref()
                .map_or(0, |state| state.process.started_ticks);
            (begun, found.process)
        });
        found
    }

    /// Removes what is over for long.
    fn sweep(&self) {
        // Age first: nothing else asks for what is in a file, and every start of a run comes by here.
        for process in self.processes().filter(|process| is_old(&self.file(*process))) {
            let found = self.look(process);
            if found.is_long_over() && is_own(&found.path, false) {
                let _ = fs::remove_file(&found.path);
                remove_tap(&found.path);
            }
        }
        // It was killed while it wrote.
        for process in self.named(|name| name.strip_prefix('.')) {
            let path = self.beside(process);
            if started_ticks(process).is_none() && is_old(&path) && is_own(&path, true) {
                let _ = fs::remove_file(path);
            }
        }
        // What a process published may have gone before: by a run that had its number after it.
        for process in self.named(|name| name.strip_suffix(".tap")) {
            let path = self.file(process);
            if started_ticks(process).is_none() && is_old(&tap_socket(&path)) && !path.exists() {
                remove_tap(&path);
            }
        }
    }

    fn processes(&self) -> impl Iterator<Item = u32> {
        self.named(|name| Some(name))
    }

    /// The processes whose numbers are what `number` takes of the names of files.
    fn named(&self, number: fn(&str) -> Option<&str>) -> impl Iterator<Item = u32> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = number(&name)?;
            let process: u32 = number.parse().ok()?;
            // `+7` and `007` are numbers, and no names of ours.
            (process.to_string() == number).then_some(process)
        })
    }

    /// The file of one process.
    pub fn look(&self, process: u32) -> Found {
        let path = self.file(process);
        let state = read(&path);
        let is_there = match &state {
            Ok(state) => state.process.id == process && is_alive(&state.process),
            // Of a version that we cannot read, the name must do.
            Err(_) => started_ticks(process).is_some(),
        };
        // Nobody publishes for the process of another user, whom we might send a signal to.
        let alive = is_there && is_of_its_user(&path, process);
        Found {
            process,
            path,
            state,
            alive,
        }
    }

    /// Makes the directory where it is not there, and a publisher in it.
    pub fn publisher(&self) -> Result<Publisher, PlaceError> {
        let error = |problem: String| PlaceError {
            path: self.0.clone(),
            problem,
        };
        let io = |cause: io::Error| error(cause.to_string());
        match DirBuilder::new().mode(0o700).create(&self.0) {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(io(cause)),
            _ => {}
        }
        let found = fs::symlink_metadata(&self.0).map_err(io)?;
        if !found.is_dir() {
            return Err(error("is no directory".into()));
        }
        // Everybody may write to /dev/shm: what another user put there is not ours to write into.
        if ![user(), 0].contains(&found.uid()) {
            return Err(error(format!("belongs to user {}", found.uid())));
        }
        if found.mode() & (WRITTEN_BY_ALL | STICKY) == WRITTEN_BY_ALL {
            return Err(error(
                "may be changed by everybody; fix: chmod o-w, or chmod +t".into(),
            ));
        }
        self.sweep();
        let process = own_id();
        let publisher = Publisher {
            path: self.file(process),
            beside: self.beside(process),
        };
        // An earlier process may have had our number.
        for (path, may_be_cut) in [(&publisher.path, false), (&publisher.beside, true)] {
            if fs::symlink_metadata(path).is_ok() {
                if !is_own(path, may_be_cut) {
                    return Err(error(format!("{} is in the way", path.display())));
                }
                fs::remove_file(path).map_err(io)?;
            }
        }
        remove_tap(&publisher.path);
        Ok(publisher)
    }
}

/// Writes the file of this process.
#[derive(Debug)]
pub struct Publisher {
    path: PathBuf,
    beside: PathBuf,
}

impl Publisher {
    /// Puts `state` in the place of the last one: a reader sees the one or the other, and never half of it.
    pub fn publish(&self, state: &State) -> io::Result<()> {
        // Shared memory has no disk to wait for, so nothing is forced out. What is renamed over is replaced itself,
        // and what is written to is new: a link that somebody put there leads us nowhere.
        let bytes = encode(state)?;
        let written = File::create_new(&self.beside)
            .and_then(|mut file| file.write_all(&bytes))
            .and_then(|()| fs::rename(&self.beside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&self.beside);
        }
        written
    }
}

/// Where the process that publishes at `published` lets others look into its run.
pub fn tap_socket(published: &Path) -> PathBuf {
    published.with_extension("tap")
}

impl Process {
    /// This process.
    pub fn this(command: &str, version: &str) -> Self {
        let id = own_id();
        let parent = stat(id).and_then(|stat| u32::try_from(stat.ppid).ok());
        Self {
            id,
            parent: parent.unwrap_or_else(std::os::unix::process::parent_id),
            started_ticks: started_ticks(id).unwrap_or(0),
            started_unix_ms: unix_ms(),
            command: command.to_owned(),
            arguments: std::env::args().skip(1).collect(),
            run: PathBuf::new(),
            version: version.to_owned(),
        }
    }
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Whether the process is still there, and is the same.
pub fn is_alive(process: &Process) -> bool {
    // Offsets of time namespaces may end within a tick.
    started_ticks(process.id).is_some_and(|ticks| ticks.abs_diff(process.started_ticks) <= 1)
}

/// Whether the user of a process wrote what is published for it.
fn is_of_its_user(path: &Path, process: u32) -> bool {
    let user = Status::from_file(format!("/proc/{process}/status")).map(|status| status.euid);
    let owner = fs::symlink_metadata(path).map(|file| file.uid());
    user.is_ok_and(|user| owner.is_ok_and(|owner| owner == user))
}

/// Whether a process was stopped, by SIGSTOP or by a debugger: it hears nothing until it goes on.
pub fn is_stopped(process: u32) -> bool {
    stat(process).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// When the kernel started a process, ticks since boot; none for one that is gone or only waits to be reaped.
fn started_ticks(process: u32) -> Option<u64> {
    let stat = stat(process)?;
    let is_there = !matches!(stat.state, 'Z' | 'X');
    is_there.then(|| stat.starttime.wrapping_add_signed(-boot_offset_ticks()))
}

/// How much more than since boot the kernel tells us, ticks: what it adds is that of the time namespace of whoever asks.
fn boot_offset_ticks() -> i64 {
    let [ours, of_children] = ["time", "time_for_children"].map(|name| format!("/proc/self/ns/{name}"));
    // The file has the offsets of children, who may be in another one.
    if fs::read_link(ours).ok() != fs::read_link(of_children).ok() {
        return 0;
    }
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    offset_ticks(&offsets).unwrap_or(0)
}

/// Of the line `boottime SECONDS NANOSECONDS`, of which the first may be negative.
fn offset_ticks(offsets: &str) -> Option<i64> {
    let boot = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?;
    let (seconds, ns) = boot.trim().split_once(' ')?;
    let (seconds, ns): (i64, i64) = (seconds.parse().ok()?, ns.trim().parse().ok()?);
    Some(seconds.checked_mul(USER_HZ)? + ns / (1_000_000_000 / USER_HZ))
}

fn stat(process: u32) -> Option<Stat> {
    Stat::from_file(format!("/proc/{process}/stat")).ok()
}

/// Whether a run of this user published it: the directory may be any, and hold anything.
fn is_own(path: &Path, may_be_cut: bool) -> bool {
    let file = fs::symlink_metadata(path);
    file.is_ok_and(|file| file.is_file() && file.uid() == user()) && is_published(path, may_be_cut)
}

/// Removes the socket of a tap on the dead process that published at `published`, if it is one of ours.
fn remove_tap(published: &Path) {
    let socket = tap_socket(published);
    let found = fs::symlink_metadata(&socket);
    if found.is_ok_and(|found| found.file_type().is_socket() && found.uid() == user()) {
        let _ = fs::remove_file(socket);
    }
}

/// Who we are.
fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

fn is_old(path: &Path) -> bool {
    let changed = fs::symlink_metadata(path).and_then(|data| data.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT))
}
