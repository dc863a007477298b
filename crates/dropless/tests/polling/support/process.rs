//! A child process whose output is gathered as it comes, waited for with a limit, and killed when dropped.

use std::ffi::OsStr;
use std::fmt;
use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::published::{Phase, Place, State};

use super::Namespace;

/// Asks again every few milliseconds until the condition holds; false when the limit passes first.
pub fn until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that dies with the thread that starts it, in the namespace if one is given.
pub fn command(program: impl AsRef<OsStr>, within: Option<&str>) -> Command {
    let mut command = Command::new("setpriv");
    // A test that is killed runs no destructor, and a poller left behind would take a core for ever.
    command.args(["--pdeathsig", "KILL", "--"]);
    if let Some(namespace) = within {
        command.args(["ip", "netns", "exec", namespace]);
    }
    command.arg(program);
    command
}

/// Everything one stream has said so far, gathered by a thread of its own.
struct Stream {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn gather(mut source: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut bytes) {
                let said = String::from_utf8_lossy(&bytes[..count]);
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_str(&said);
            }
        });
        Self {
            text,
            reader: Some(reader),
        }
    }

    fn so_far(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The whole text: waits for the end of the stream, but not for a grandchild that keeps it open.
    fn rest(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            until(Duration::from_secs(2), || reader.is_finished());
        }
        self.so_far()
    }
}

/// A process that runs; killed when dropped.
pub struct Running {
    child: Child,
    shown: String,
    begun: Instant,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    pub(super) fn spawn(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("starting {shown}: {error}"));
        let stdout = Stream::gather(child.stdout.take().expect("stdout was piped"));
        let stderr = Stream::gather(child.stderr.take().expect("stderr was piped"));
        Self {
            child,
            shown,
            begun: Instant::now(),
            stdout,
            stderr,
        }
    }

    /// The process id of the program itself.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said on stdout so far.
    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// What it has said on stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// Writes to its stdin.
    pub fn write(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().expect("stdin was piped");
        stdin
            .write_all(text.as_bytes())
            .and_then(|()| stdin.flush())
            .expect("writing to the child");
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("sending a signal");
    }

    /// True while it has not ended.
    pub fn is_alive(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("asking for the child's state")
            .is_none()
    }

    /// Waits until stdout or stderr contains the text; fails the test when the limit passes or the process ends first.
    pub fn wait_for(&mut self, text: &str, limit: Duration) {
        let said = |this: &Self| this.stdout().contains(text) || this.stderr().contains(text);
        let mut alive = true;
        let found = until(limit, || {
            alive = alive && self.is_alive();
            said(self) || !alive
        });
        if !alive {
            // The last words may still be on their way from the pipe.
            until(Duration::from_secs(1), || said(self));
        }
        assert!(
            found && said(self),
            "{text:?} never came (alive: {alive}) from {self:?}"
        );
    }

    /// Waits until it has sent packets by its schedule, as it tells `dropless top`: in words it says so a second later.
    pub fn until_sending(&mut self, limit: Duration) {
        self.until_told(limit, |state| {
            state.phase == Phase::Sending && state.total.sent > 0
        });
    }

    /// Waits until its run has begun: what came before belongs to nobody. It says before that on what it listens.
    pub fn until_begun(&mut self, limit: Duration) {
        self.until_told(limit, |state| {
            state.phase != Phase::Starting && state.elapsed_s > 0.0
        });
    }

    /// Waits until it tells that of itself.
    pub fn until_told(&mut self, limit: Duration, is_it: fn(&State) -> bool) {
        let tells = |this: &Self| {
            Place::own()
                .look(this.id())
                .state
                .is_ok_and(|state| is_it(&state))
        };
        until(limit, || tells(self) || !self.is_alive());
        assert!(tells(self), "never told: {self:?}");
    }

    /// Waits for its end; kills it and fails the test when the limit passes.
    pub fn wait(mut self, limit: Duration) -> Finished {
        let ended = until(limit, || !self.is_alive());
        let took = self.begun.elapsed();
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("waiting for the child");
        let finished = Finished {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.rest(),
            stderr: self.stderr.rest(),
            took,
            shown: self.shown.clone(),
        };
        assert!(ended, "not ended after {limit:?}: {finished}");
        finished
    }

    /// Kills it at once, as `kill -9` does.
    pub fn kill(self) -> Finished {
        self.signal(Signal::SIGKILL);
        self.wait(Duration::from_secs(10))
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\nstdout so far:\n{}\nstderr so far:\n{}",
            self.shown,
            self.stdout(),
            self.stderr()
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended, and all it said.
pub struct Finished {
    /// The exit code, none when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
    shown: String,
}

impl Finished {
    /// Whether this word was on its command line.
    pub fn was_given(&self, word: &str) -> bool {
        self.shown.contains(&format!("{word:?}"))
    }

    /// Stdout as the one JSON object that it must be.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{self}"))
    }

    /// The number at a path such as `ledger.intended`.
    pub fn number(&self, path: &str) -> u64 {
        let json = self.json();
        let value = path.split('.').fold(&json, |value, key| {
            // A number names a place in a list.
            key.parse::<usize>()
                .map_or_else(|_| &value[key], |index| &value[index])
        });
        value
            .as_u64()
            .unwrap_or_else(|| panic!("{path} is {value}, not a count\n{self}"))
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\nended with code {:?}, signal {:?}",
            self.shown, self.code, self.signal
        )?;
        write!(
            f,
            " after {:?}\nstdout:\n{}\nstderr:\n{}",
            self.took, self.stdout, self.stderr
        )
    }
}
