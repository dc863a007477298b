//! A real terminal: a pseudo terminal, whose screen is read as a person would read it.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::proc::children;
use super::{Lab, until};

const LIMIT: Duration = Duration::from_secs(30);
/// Where the runs of a test publish: no other run of this machine is seen there.
pub const LIVE_VARIABLE: &str = "DROPLESS_LIVE_DIR";

/// A terminal with a shell script in it.
pub struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn std::io::Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

impl Terminal {
    /// `dropless top` in a terminal.
    pub fn top(lab: &Lab, arguments: &str, rows: u16, cols: u16) -> Self {
        Self::dropless(lab, &format!("top {arguments}"), rows, cols)
    }

    /// Runs `dropless ARGUMENTS`, says its exit code, and whether the terminal's settings are what they were.
    pub fn dropless(lab: &Lab, arguments: &str, rows: u16, cols: u16) -> Self {
        Self::within(lab, "LANG=C.UTF-8", arguments, (rows, cols))
    }

    /// The same with another variable of its own (`NAME=VALUE`).
    pub fn within(lab: &Lab, variable: &str, arguments: &str, (rows, cols): (u16, u16)) -> Self {
        let pair = native_pty_system()
            .openpty(size(rows, cols))
            .expect("a pseudo terminal");
        // Ctrl-C is for the program, and the shell goes on.
        let script = format!(
            "trap : INT; before=$(stty -g); {variable} \"$DROPLESS\" {arguments}; code=$?; [ \"$before\" = \"$(stty -g)\" ] && echo restored; echo code $code; sleep 30"
        );
        let mut command = CommandBuilder::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "sh", "-c", &script]);
        command.env("DROPLESS", env!("CARGO_BIN_EXE_dropless"));
        command.env(LIVE_VARIABLE, lab.path("live"));
        command.env("TERM", "xterm-256color");
        command.cwd(lab.directory());
        let child = pair.slave.spawn_command(command).expect("a shell");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, cols, 0)));
        let drawn = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                drawn
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .process(&bytes[..count]);
            }
        });
        Self {
            screen,
            keys: pair.master.take_writer().expect("a writer"),
            master: pair.master,
            child,
        }
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        let parser = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        parser.screen().contents()
    }

    /// The process of the program, which the shell waits for.
    pub fn program(&self) -> i32 {
        let shell = self.child.process_id().expect("a shell");
        let children = children(shell);
        assert_eq!(children.len(), 1, "the program alone");
        children[0].as_raw()
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("pressing keys");
        self.keys.flush().expect("pressing keys");
    }

    /// Gives the window another size.
    pub fn resize(&self, rows: u16, cols: u16) {
        self.screen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .set_size(rows, cols);
        self.master.resize(size(rows, cols)).expect("resizing");
    }

    /// Waits until `text` is on the screen.
    pub fn wait_for(&self, text: &str) {
        assert!(
            until(LIMIT, || self.text().contains(text)),
            "{text:?} never came:\n{}",
            self.text()
        );
    }

    /// The packets in the line that begins with `name`; none while it is not there.
    pub fn count(&self, name: &str) -> Option<u64> {
        let text = self.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("  {name} ")))?;
        line.split_whitespace().next()?.replace(',', "").parse().ok()
    }

    /// Waits until the packets in that line have become more.
    pub fn rises(&self, name: &str) {
        assert!(
            until(LIMIT, || self.count(name).is_some()),
            "{name}:\n{}",
            self.text()
        );
        let before = self.count(name);
        assert!(
            until(LIMIT, || self.count(name) > before),
            "{name} stays:\n{}",
            self.text()
        );
    }

    /// The program has left, and the terminal is as it was.
    pub fn has_left(&self, code: u8) {
        self.wait_for(&format!("code {code}"));
        self.wait_for("restored");
        let parser = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!parser.screen().alternate_screen() && !parser.screen().hide_cursor());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
