//! Writes what is shown, in a thread of its own: a terminal that is stopped (Ctrl-S), or a reader who does not read, keeps that
//! one waiting and nobody else.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Text that may wait, in bytes: what is said beyond that is left out.
const SAID_MAX: usize = 1 << 16;
/// How long the end waits for what is to be written.
const END: Duration = Duration::from_millis(200);

/// Somebody who writes. Trouble is the end of it.
pub struct Writer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: Option<Next>,
    is_writing: bool,
    /// Nothing more is written.
    is_over: bool,
}

/// What is written next, in the place of the last drawing.
#[derive(Default)]
struct Next {
    /// What stays, all of it.
    said: String,
    /// The newest drawing, which the next one replaces, and its lines.
    drawing: (String, usize),
}

impl Writer {
    /// Writes to `sink` from now on, in a thread that does what is to be done `first`.
    pub fn onto(sink: Box<dyn Write + Send>, first: fn()) -> Self {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("display".to_owned());
        let write = move || {
            first();
            own.write(sink);
        };
        if thread.spawn(write).is_err() {
            shared.lock().is_over = true;
        }
        Self(shared)
    }

    /// Whether nothing more is written.
    pub fn is_over(&self) -> bool {
        self.0.lock().is_over
    }

    /// Draws `text` of so many `lines` in the place of the drawing before, whether or not that was written.
    pub fn draw(&self, text: String, lines: usize) {
        self.0.lock().next.get_or_insert_default().drawing = (text, lines);
        self.0.changed.notify_all();
    }

    /// Writes `text` in the place of the drawing before.
    pub fn say(&self, text: &str) {
        let mut state = self.0.lock();
        let next = state.next.get_or_insert_default();
        next.drawing = Default::default();
        if next.said.len() + text.len() <= SAID_MAX {
            next.said += text;
        }
        self.0.changed.notify_all();
    }

    /// Waits until all is written.
    #[cfg(test)]
    pub fn wait(&self) {
        drop(self.0.wait());
    }
}

impl Drop for Writer {
    /// Takes the drawing away. Where that is not to be had in time it stays: what others write then stands below it.
    fn drop(&mut self) {
        self.draw(String::new(), 0);
        let mut state = self.0.wait();
        state.is_over = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is written, but not for somebody who takes nothing.
    fn wait(&self) -> MutexGuard<'_, State> {
        let is_busy = |state: &mut State| !state.is_over && (state.next.is_some() || state.is_writing);
        let waited = self.changed.wait_timeout_while(self.lock(), END, is_busy);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn write(&self, mut sink: Box<dyn Write + Send>) {
        let mut drawn = 0;
        while let Some(next) = self.next() {
            let (drawing, lines) = next.drawing;
            let text = erase(drawn) + &next.said + &drawing;
            let written = sink.write_all(text.as_bytes());
            if written.and_then(|()| sink.flush()).is_err() {
                self.lock().is_over = true;
            }
            drawn = lines;
        }
    }

    /// What is to be written next, once there is any; nothing at the end.
    fn next(&self) -> Option<Next> {
        let mut state = self.lock();
        state.is_writing = false;
        self.changed.notify_all();
        let has_none = |state: &mut State| !state.is_over && state.next.is_none();
        let waited = self.changed.wait_while(state, has_none);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = !state.is_over;
        state.next.take().filter(|_| state.is_writing)
    }
}

/// To the first column of the first of the `drawn` lines, and from there everything away.
fn erase(drawn: usize) -> String {
    match drawn {
        0 => String::new(),
        lines => format!("\r\x1b[{lines}A\x1b[J"),
    }
}
