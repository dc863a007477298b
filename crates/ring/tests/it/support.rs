//! A ring that others join, what is written to it, and programs in C that read it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ring::layout::SEGMENT_MIN;
use ring::pcapng::{self, PacketHead};
use ring::share::Door;
use ring::{Producer, Ring};
use tempfile::TempDir;

/// A ring of four segments, and its door.
pub struct Served {
    pub producer: Producer,
    pub ring: Ring,
    pub door: Door,
    path: PathBuf,
    /// Where it lies, if that is its own.
    _dir: Option<TempDir>,
}

impl Served {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = Self::at(&dir.path().join("ring.sock"));
        Self {
            _dir: Some(dir),
            ..at
        }
    }

    /// With its door at this path.
    pub fn at(path: &Path) -> Self {
        let (producer, ring) = Producer::new(4, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
        Self {
            producer,
            ring,
            door: Door::open(path, None).unwrap(),
            path: path.to_owned(),
            _dir: None,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Takes part in the ring until `until` is so.
    pub fn serve(&mut self, mut until: impl FnMut(&Door) -> bool) {
        let begun = Instant::now();
        while !until(&self.door) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", self.door);
            self.producer.commit();
            self.door.look(&self.ring);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Until so many have joined.
    pub fn wait_for(&mut self, guests: usize) {
        self.serve(|door| door.guests().iter().filter(|guest| guest.seat().is_taken).count() >= guests);
    }

    /// Writes a packet; waits for whoever may not lose any.
    pub fn push(&mut self, time_ns: u64, frame: &[u8]) {
        let head = PacketHead {
            time_ns,
            original_len: frame.len() as u32,
            ..PacketHead::default()
        };
        let begun = Instant::now();
        while self.producer.push(&head, frame.len(), [frame]).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", self.door);
            self.producer.commit();
            self.door.look(&self.ring);
        }
    }
}

/// FNV-1a, as the programs in C have it.
pub fn sum_on(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The sum of nothing.
pub const SUM: u64 = 0xcbf2_9ce4_8422_2325;

/// Where the project's files for others lie.
pub fn contrib() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib")
}

/// Compiles programs in C.
pub struct Compiler {
    flags: Vec<&'static str>,
    /// Where they are put.
    pub dir: TempDir,
}

/// What it is asked to do, whatever it compiles; none where there is no compiler. Looked for once.
static FLAGS: OnceLock<Option<Vec<&'static str>>> = OnceLock::new();

impl Compiler {
    /// With the sanitizers, where the compiler has them: what reads or writes where it must not ends the program. `None`
    /// where there is no compiler.
    pub fn new() -> Option<Self> {
        let Some(flags) = FLAGS.get_or_init(Self::flags).clone() else {
            crate::skip::skip("needs a C compiler (cc)");
            return None;
        };
        Some(Self {
            flags,
            dir: tempfile::tempdir().unwrap(),
        })
    }

    fn flags() -> Option<Vec<&'static str>> {
        Command::new("cc").arg("--version").output().ok()?;
        let mut this = Self {
            flags: vec!["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1"],
            dir: tempfile::tempdir().unwrap(),
        };
        let empty = this.dir.path().join("empty.c");
        std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
        let sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"];
        this.flags.extend(sanitizers);
        if !this
            .try_compile(&this.dir.path().join("empty"), &[empty.as_os_str()])
            .0
        {
            this.flags.retain(|flag| !sanitizers.contains(flag));
        }
        Some(this.flags)
    }

    fn try_compile(&self, to: &Path, arguments: &[&OsStr]) -> (bool, String) {
        let output = Command::new("cc")
            .args(&self.flags)
            .arg("-o")
            .arg(to)
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    }

    fn compile_to(&self, to: &Path, source: &Path, arguments: &[&str]) {
        let mut all = vec![source.as_os_str()];
        all.extend(arguments.iter().map(OsStr::new));
        let (is_made, said) = self.try_compile(to, &all);
        assert!(is_made, "{said}");
    }

    /// The program `name`, of this source and with these further arguments.
    pub fn compile(&self, name: &str, source: &Path, arguments: &[&str]) -> PathBuf {
        let built = self.dir.path().join(name);
        self.compile_to(&built, source, arguments);
        built
    }

    /// The same for several tests, which have it compiled once a run: that takes a second. It stays until the next run.
    pub fn shared(&self, name: &str, source: &Path, arguments: &[&str]) -> PathBuf {
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ring").join(name);
        let dir = built.parent().unwrap();
        std::fs::create_dir_all(dir).unwrap();
        // Another run may be about to start what is there: it is replaced whole.
        let new = tempfile::tempdir_in(dir).unwrap();
        self.compile_to(&new.path().join("new"), source, arguments);
        std::fs::rename(new.path().join("new"), &built).unwrap();
        built
    }
}

/// A program under way, both of whose outputs are read.
pub fn spawn(program: &Path, arguments: &[&OsStr]) -> Child {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What it printed, and its exit code.
pub fn ended(child: Child) -> (String, String, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// For signals.
pub fn process(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap())
}

/// Stops it, and waits until it stands.
pub fn stop(child: &Child) {
    kill(process(child), Signal::SIGSTOP).unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let begun = Instant::now();
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not stop");
        std::thread::yield_now();
    }
}
