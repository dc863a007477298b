//! The journal: what each file held before it was changed, on the disk before the change is made.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::kernel::with_suffix;
use host::{Fix, Problem, Sys};

/// Where it is, unless told otherwise.
pub const DEFAULT: &str = "/var/lib/dropless/tune.journal";

/// What sort of thing was changed, which tells how it is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A file of the kernel's holds another value.
    Value,
    /// An ordinary file has another text, is new or is gone.
    File,
    /// A directory was made.
    Directory,
    /// A controller was switched on in a `cgroup.subtree_control`.
    Controller,
    /// A PCI function has another driver.
    Driver,
    /// A module was loaded.
    Module,
    /// Not a change: what the file of the last change really holds since.
    Took,
}

impl Kind {
    /// A torn line begins with one of these.
    const ALL: [Self; 7] = [
        Self::Value,
        Self::File,
        Self::Directory,
        Self::Controller,
        Self::Driver,
        Self::Module,
        Self::Took,
    ];
}

/// What of a value was in effect, in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The file.
    pub path: String,
    /// What it held.
    pub old: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What was changed.
    pub kind: Kind,
    /// Which one: a path, or a module's name.
    pub path: String,
    /// What was there; nothing where nothing was.
    pub old: Option<String>,
    /// What shall be there.
    pub new: Option<String>,
    /// A service that reads the file when it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// What of it was in effect, where the kernel chooses that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The kernel's name for this boot.
    pub boot: String,
    /// When, seconds since 1970.
    pub time: u64,
}

/// A journal that this process alone has open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    boot: String,
    records: Vec<Record>,
    _lock: Flock<File>,
}

impl Journal {
    /// Opens the journal at `path` (below the root, where it is absolute), and makes it where there is none.
    pub fn open(sys: &Sys, path: &Path) -> Result<Self, Problem> {
        let real = real(sys, path);
        let what = format!("journal {}", path.display());
        let failed = |error: io::Error| {
            let fix = Fix::advice("run as root, or choose another file with --journal");
            Problem::new(&what, error.to_string(), fix)
        };
        if let Some(parent) = real.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        // What it names is changed as root.
        if let Some((found, fix)) = fs::symlink_metadata(&real).ok().and_then(|file| not_ours(&file)) {
            return Err(Problem::new(&what, found, Fix::advice(fix)));
        }
        // Looked into before there is a lock: beside what is refused nothing is left.
        match File::open(&real) {
            Ok(mut file) => drop(read(&mut file, &what, &failed)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let lock = ours(&with_suffix(&real, ".lock")).map_err(failed)?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|_| {
            let fix = Fix::advice("wait until it has ended");
            Problem::new(&what, "another dropless tune is running", fix)
        })?;
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(&real);
        let mut file = file.map_err(failed)?;
        // Somebody may have been quicker.
        if let Some((found, fix)) = not_ours(&file.metadata().map_err(failed)?) {
            return Err(Problem::new(&what, found, Fix::advice(fix)));
        }
        let (records, whole) = read(&mut file, &what, &failed)?;
        // A line without an end was never finished, and its change never made.
        if let Some(whole) = whole {
            file.set_len(whole).map_err(failed)?;
        }
        sync_directory(&real).map_err(failed)?;
        Ok(Self {
            path: real,
            file,
            boot: boot_id(sys),
            records,
            _lock: lock,
        })
    }

    /// What is in it, the oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Writes down that `path` is about to change; returns when that is on the disk.
    pub fn before(
        &mut self,
        kind: Kind,
        path: &str,
        old: Option<&str>,
        new: Option<&str>,
    ) -> Result<(), Problem> {
        let record = self.record(kind, path, old, new);
        self.add(record)
    }

    /// The same for a file that `service` reads when it starts.
    pub fn before_with(
        &mut self,
        kind: Kind,
        path: &str,
        old: Option<&str>,
        new: Option<&str>,
        service: Option<&str>,
    ) -> Result<(), Problem> {
        let record = Record {
            service: service.map(str::to_owned),
            ..self.record(kind, path, old, new)
        };
        self.add(record)
    }

    /// The same for a value of which only what was in `effect` shows what it did.
    pub fn before_effect(
        &mut self,
        path: &str,
        old: &str,
        new: &str,
        effect: Option<Effect>,
    ) -> Result<(), Problem> {
        let record = Record {
            effect,
            ..self.record(Kind::Value, path, Some(old), Some(new))
        };
        self.add(record)
    }

    fn record(&self, kind: Kind, path: &str, old: Option<&str>, new: Option<&str>) -> Record {
        Record {
            kind,
            path: path.to_owned(),
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
            service: None,
            effect: None,
            boot: self.boot.clone(),
            time: now(),
        }
    }

    fn add(&mut self, record: Record) -> Result<(), Problem> {
        self.append(&record).map_err(|error| self.unwritable(&error))?;
        self.records.push(record);
        Ok(())
    }

    /// Writes down what the change came to.
    pub fn took(&mut self, path: &str, value: Option<&str>) -> Result<(), Problem> {
        self.before(Kind::Took, path, None, value)
    }

    /// Ends the journal. What could not be taken back stays in it, everything else is history.
    pub fn end(self, left: &[Record]) -> Result<(), Problem> {
        self.finish(left).map_err(|error| self.unwritable(&error))
    }

    fn finish(&self, left: &[Record]) -> io::Result<()> {
        if left.is_empty() {
            // An empty file may be anybody's, and takes the place of no history.
            if self.records.is_empty() {
                return Ok(());
            }
            // Kept for whoever asks what was done; the next one takes its place.
            fs::rename(&self.path, with_suffix(&self.path, ".undone"))?;
        } else {
            let name = with_suffix(&self.path, ".new");
            let mut file = ours(&name)?;
            file.set_len(0)?;
            for record in left {
                file.write_all(line(record)?.as_bytes())?;
            }
            file.sync_all()?;
            fs::rename(name, &self.path)?;
        }
        sync_directory(&self.path)
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        self.file.write_all(line(record)?.as_bytes())?;
        self.file.sync_data()
    }

    fn unwritable(&self, error: &io::Error) -> Problem {
        let fix = Fix::advice("make room there; nothing is changed before it is recorded in the journal");
        Problem::new(format!("journal {}", self.path.display()), error.to_string(), fix)
    }
}

/// What `file` has held by the journal at `path`, or by the one before that was undone; as far as they can be read.
pub fn texts_of(sys: &Sys, path: &Path, file: &str) -> Vec<String> {
    let real = real(sys, path);
    let journals = [with_suffix(&real, ".undone"), real];
    let texts = journals.iter().filter_map(|name| fs::read_to_string(name).ok());
    let records = texts.flat_map(|text| {
        let lines = text.lines().map(serde_json::from_str::<Record>);
        lines.filter_map(Result::ok).collect::<Vec<_>>()
    });
    let of_file = records.filter(|record| record.path == file);
    of_file
        .flat_map(|record| [record.old, record.new])
        .flatten()
        .collect()
}

fn real(sys: &Sys, path: &Path) -> PathBuf {
    if path.is_absolute() {
        sys.path(path)
    } else {
        path.to_owned()
    }
}

/// The kernel's name for this boot; the same nothing on trees that have none.
pub fn boot_id(sys: &Sys) -> String {
    sys.text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// What stands in a journal, and how many bytes of it are whole where its last line was torn.
fn read(
    file: &mut File,
    what: &str,
    failed: &impl Fn(io::Error) -> Problem,
) -> Result<(Vec<Record>, Option<u64>), Problem> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let (lines, tail) = bytes.split_at(whole);
    let lines = std::str::from_utf8(lines)
        .ok()
        .filter(|_| tail.is_empty() || is_torn(tail));
    let Some(lines) = lines else {
        let fix = Fix::advice("name the journal of a dropless tune, or a file that does not exist");
        let found = "this file is not a journal of dropless tune";
        return Err(Problem::new(what, found, fix));
    };
    Ok((parse(lines, what)?, (!tail.is_empty()).then_some(whole as u64)))
}

fn parse(text: &str, what: &str) -> Result<Vec<Record>, Problem> {
    let read = |(index, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            let fix = Fix::advice("remove the line, and restore by hand what it names");
            Problem::new(what, format!("line {} cannot be read: {error}", index + 1), fix)
        })
    };
    text.lines().enumerate().map(read).collect()
}

/// Whether these bytes are the beginning of a line of ours. Half a line of JSON says little: an end of somebody else's file,
/// too, is one, and what is torn is cut off.
fn is_torn(tail: &[u8]) -> bool {
    let begins = |kind: &Kind| {
        let kind = serde_json::to_string(kind).unwrap_or_default();
        let head = format!("{{\"kind\":{kind},\"path\":\"");
        let length = head.len().min(tail.len());
        head.as_bytes()[..length] == tail[..length]
    };
    // All that was written may be there but for the end of the line.
    let is_record = serde_json::from_slice::<Record>(tail).map_or_else(|error| error.is_eof(), |_| true);
    is_record && Kind::ALL.iter().any(begins)
}

fn line(record: &Record) -> io::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(record)?))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// A file's name is on the disk when its directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Why a file cannot be the journal, and what to do; `None` where it can.
fn not_ours(file: &Metadata) -> Option<(&'static str, &'static str)> {
    let by_hand =
        "look at what it says, and whose it is; then name another file with --journal, or remove it";
    if file.is_symlink() || (file.is_file() && file.nlink() > 1) {
        Some(("it is a link to a file", by_hand))
    } else if !file.is_file() {
        Some(("it is not a regular file", "name a file"))
    } else if file.uid() != nix::unistd::geteuid().as_raw() {
        Some(("it belongs to another user", by_hand))
    } else {
        None
    }
}

/// A file beside the journal. A link in its place would lead us to somebody else's.
fn ours(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
}
