//! SIGINT and SIGTERM end a run in order; a second one before it has ended, but later, ends the process at once. SIGHUP
//! does the same, or makes a run read its rules again.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::libc::{SI_KERNEL, siginfo_t};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::out;
use report::published::of_kernel;
use report::style::{ERASE, Stream, can_redraw};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

use super::privileges;

/// Within this time one wish to end often comes twice: timeout(1) signals its child and then the whole group.
const SAME_WISH: Duration = Duration::from_millis(500);

/// A terminal signals first, and shows the `^C` a moment later.
const ECHO: Duration = Duration::from_millis(20);
/// How long a signal waits for a terminal that takes nothing (Ctrl-S).
const ECHO_MAX: Duration = Duration::from_millis(100);

/// Makes a file that is too long (`ulimit -f`) an error of whoever writes it, and no end of the process.
pub fn survive_long_files() {
    // Nobody asks whether it came: the write fails with EFBIG. Ignored altogether it would be so in children of other
    // programs, too.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Sends a signal to the process that has this number in `/proc`, which must be of our PID namespace: the kernel's number there
/// is somebody else's here.
pub fn tell(process: u32, signal: Signal) -> Result<()> {
    let id = of_kernel(process).ok_or_else(|| {
        anyhow!("process {process} is in another PID namespace than this one, or has gone; fix: run this outside of `unshare --pid`")
    })?;
    kill(Pid::from_raw(i32::try_from(id)?), signal).map_err(|error| match error {
        nix::Error::EPERM => {
            anyhow!("process {process} belongs to another user; fix: sudo dropless <the same arguments>")
        }
        other => anyhow!("process {process} cannot be told: {other}"),
    })
}

#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Heard>);

/// What SIGHUP asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// To end.
    End,
    /// To read again what can be read again; if the terminal is gone, to end.
    Reload,
}

#[derive(Debug, Default)]
struct Heard {
    is_set: AtomicBool,
    reload: AtomicBool,
    wish: Mutex<Wish>,
}

/// The last wish to end that was understood as one.
#[derive(Debug, Default)]
struct Wish {
    at: Option<Instant>,
    /// What it wanted to end has ended.
    is_done: bool,
}

/// What a signal is.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    /// End in order.
    End,
    /// The signal before, once more.
    Same,
    /// That takes too long: end at once.
    Kill,
}

impl Wish {
    fn hear(&mut self, now: Instant) -> Meaning {
        match self.at {
            Some(at) if now.duration_since(at) <= SAME_WISH => Meaning::Same,
            Some(_) if !self.is_done => Meaning::Kill,
            _ => {
                *self = Self {
                    at: Some(now),
                    is_done: false,
                };
                Meaning::End
            }
        }
    }
}

impl Interrupt {
    /// Installs the handlers, and the thread that listens to them.
    pub fn install() -> Result<Self> {
        Self::install_with(Hangup::End)
    }

    /// The same, where SIGHUP may mean something else.
    pub fn install_with(hangup: Hangup) -> Result<Self> {
        let interrupt = Self::default();
        let had_terminal = has_terminal();
        let mut signals = SignalsInfo::<WithRawSiginfo>::new([SIGINT, SIGTERM, SIGHUP])
            .context("cannot install a signal handler")?;
        let heard = interrupt.clone();
        let listen = move || {
            privileges::drop_all();
            let mut is_first = true;
            for info in signals.forever() {
                let signal = info.si_signo;
                if signal == SIGINT && is_first {
                    within(ECHO_MAX, take_echo_away);
                }
                is_first = false;
                // Whoever closes a terminal wants an end of what was started there, also where a shell passes it on.
                let is_asked = || !is_of_terminal(&info) && has_terminal() == had_terminal;
                if signal == SIGHUP && hangup == Hangup::Reload && is_asked() {
                    heard.0.reload.store(true, Ordering::Relaxed);
                    continue;
                }
                if heard.hear(Instant::now()) == Meaning::Kill {
                    // Ends the process like an unhandled one.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(listen)
            .context("cannot start a thread")?;
        Ok(interrupt)
    }

    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Whether what can be read again should be, since this was asked last.
    pub fn take_reload(&self) -> bool {
        self.0.reload.swap(false, Ordering::Relaxed)
    }

    /// What was to end has ended: the next wish is for what comes now, and is a first one again.
    pub fn done(&self) {
        let mut wish = self.wish();
        wish.is_done = true;
        self.0.is_set.store(false, Ordering::Relaxed);
    }

    fn hear(&self, now: Instant) -> Meaning {
        let mut wish = self.wish();
        let meaning = wish.hear(now);
        if meaning == Meaning::End {
            self.0.is_set.store(true, Ordering::Relaxed);
        }
        meaning
    }

    fn wish(&self) -> MutexGuard<'_, Wish> {
        self.0.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a terminal sent it itself, and not some process. The kernel does so before it takes the terminal away
/// (`disassociate_ctty`, drivers/tty/tty_jobctrl.c): whoever looks for that may still find it.
fn is_of_terminal(info: &siginfo_t) -> bool {
    info.si_code == SI_KERNEL
}

/// Whether the session that this process belongs to has a terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Does `what` in a thread of its own, which is waited for no longer than `limit`.
fn within(limit: Duration, what: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel::<()>();
    let does = move || {
        let _done = done;
        what();
    };
    // Without a thread nothing is done, and nothing waited for.
    let _ = std::thread::Builder::new().name("echo".into()).spawn(does);
    let _ = wait.recv_timeout(limit);
}

/// Takes away the `^C` that a terminal shows for Ctrl-C: what is printed next would be glued to it.
fn take_echo_away() {
    let Some(stream) = [Stream::Stderr, Stream::Stdout]
        .into_iter()
        .find(|stream| stream.is_terminal())
    else {
        return;
    };
    std::thread::sleep(ECHO);
    let can_erase = can_redraw();
    let text = if can_erase { ERASE } else { "\n" };
    let _ = match stream {
        Stream::Stderr => out::print_stderr(text),
        Stream::Stdout => out::print_stdout(text),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_to_end_is_heard_once_and_again_when_it_is_done() {
        let interrupt = Interrupt::default();
        let begun = Instant::now();
        let hear = |ms: u64| interrupt.hear(begun + Duration::from_millis(ms));
        assert!(!interrupt.is_set());
        assert_eq!(hear(0), Meaning::End);
        assert_eq!(hear(400), Meaning::Same);
        assert!(interrupt.is_set());
        assert_eq!(hear(600), Meaning::Kill);
        interrupt.done();
        assert!(!interrupt.is_set());
        assert_eq!(hear(450), Meaning::Same);
        assert!(!interrupt.is_set());
        assert_eq!(hear(700), Meaning::End);
        assert!(interrupt.is_set());
        assert_eq!(hear(1300), Meaning::Kill);
    }

    #[test]
    fn a_terminal_that_takes_nothing_keeps_no_signal_waiting() {
        let (shown, taken) = mpsc::sync_channel(0);
        within(ECHO, move || shown.send(()).unwrap());
        taken.recv().unwrap();
    }

    #[test]
    fn what_ended_by_itself_is_still_followed_by_a_first_wish() {
        let interrupt = Interrupt::default();
        interrupt.done();
        assert_eq!(interrupt.hear(Instant::now()), Meaning::End);
        assert!(interrupt.is_set());
    }
}
