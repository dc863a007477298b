//! SIGINT and SIGTERM end a run in order; a second one, later, ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the handlers, and the thread that listens to them.
    pub fn install() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot install a signal handler")?;
        let seen = Arc::clone(&flag);
        let listen = move || {
            privileges::drop_all();
            let mut first: Option<Instant> = None;
            for signal in signals.forever() {
                if signal == SIGINT && first.is_none() {
                    take_echo_away();
                }
                seen.store(true, Ordering::Relaxed);
                if first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                    // Ends the process like an unhandled one.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(listen)
            .context("cannot start a thread")?;
        Ok(Self(flag))
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
