//! One test's lab: its turn on the cores, its own directory, names that no other test has, the programs it starts.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use super::process::{Running, command};
use super::{Dropless, Namespace, namespace, testpmd};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// What a test holds while it runs: dropping it ends the turn and removes the directory.
pub struct Lab {
    // Fields drop in order: the directory goes before the next test comes.
    directory: TempDir,
    _turn: Flock<File>,
    program: PathBuf,
}

impl Lab {
    /// Waits until no other test, of this process or another, polls a core.
    pub(super) fn enter() -> Self {
        let file = lock_file(&std::env::temp_dir().join("dropless-tests.lock"));
        let turn = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error);
        let turn = turn.expect("the lock of the tests");
        namespace::sweep();
        let directory = tempfile::Builder::new().prefix("dropless-").tempdir();
        Self {
            directory: directory.expect("a temporary directory"),
            _turn: turn,
            program: env!("CARGO_BIN_EXE_dropless").into(),
        }
    }

    /// The test's own directory: the programs run in it, so run directories end up here.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A path in the test's own directory, for sockets and captures.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program under test, with these arguments.
    pub fn dropless(&self, arguments: &[&str]) -> Dropless {
        Dropless::new(&self.program, self.directory(), arguments)
    }

    /// The same lab for another build of the program.
    #[must_use]
    pub fn with_program(mut self, program: &Path) -> Self {
        self.program = program.to_path_buf();
        self
    }

    /// Keeps its directory, as `name` where it can be moved there; returns where it is.
    pub fn keep(self, name: &Path) -> PathBuf {
        let kept = self.directory.keep();
        let moved = std::fs::rename(&kept, name);
        moved.map_or(kept, |()| name.to_path_buf())
    }

    /// A shell script in the test's directory, with the program under test as `$DROPLESS`.
    pub fn shell(&self, script: &str) -> Running {
        let mut command = command("sh", None);
        command
            .args(["-c", script])
            .current_dir(self.directory())
            .env("DROPLESS", &self.program);
        Running::spawn(command)
    }

    /// A `dpdk-testpmd` to configure and start.
    pub fn testpmd(&self) -> testpmd::Builder {
        testpmd::Builder::new(self.directory(), &unique("testpmd"))
    }

    #[allow(
        clippy::unused_self,
        reason = "a namespace belongs to a test that has its turn"
    )]
    /// A fresh network namespace, deleted when dropped.
    pub fn namespace(&self, name: &str) -> Namespace {
        Namespace::new(&unique(name))
    }
}

/// A name that no other test on this machine has.
fn unique(name: &str) -> String {
    format!(
        "dropless-{}-{}-{name}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The file whose lock is the turn. It is opened for reading where it exists, since another user may own it.
fn lock_file(path: &Path) -> File {
    File::open(path)
        .or_else(|_| File::create(path))
        .expect("opening the lock file of the tests")
}
