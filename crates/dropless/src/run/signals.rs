//! SIGINT and SIGTERM end a run in order; a second one before it has ended, but later, ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use report::out;
use report::style::{ERASE, Stream};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::privileges;

/// Within this time one wish to end often comes twice: timeout(1) signals its child and then the whole group.
const SAME_WISH: Duration = Duration::from_millis(500);

/// A terminal signals first, and shows the `^C` a moment later.
const ECHO: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    is_set: AtomicBool,
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
        let interrupt = Self::default();
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot install a signal handler")?;
        let heard = interrupt.clone();
        let listen = move || {
            privileges::drop_all();
            let mut is_first = true;
            for signal in signals.forever() {
                if signal == SIGINT && is_first {
                    take_echo_away();
                }
                is_first = false;
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

/// Takes away the `^C` that a terminal shows for Ctrl-C: what is printed next would be glued to it.
fn take_echo_away() {
    let Some(stream) = [Stream::Stderr, Stream::Stdout]
        .into_iter()
        .find(|stream| stream.is_terminal())
    else {
        return;
    };
    std::thread::sleep(ECHO);
    let can_erase = std::env::var("TERM").is_ok_and(|term| term != "dumb");
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
    fn what_ended_by_itself_is_still_followed_by_a_first_wish() {
        let interrupt = Interrupt::default();
        interrupt.done();
        assert_eq!(interrupt.hear(Instant::now()), Meaning::End);
        assert!(interrupt.is_set());
    }
}
