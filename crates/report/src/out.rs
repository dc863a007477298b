//! Prints: to a reader who may have gone away, and without ever mixing text for people into JSON.

use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::input::clean;
use crate::style::{Stream, Style, printable};

/// Why something that had to be said could not be.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// Standard output or error took no more (for instance a full disk behind `>`).
    #[error("cannot write to {0}: {1}; a run's result is in its run directory, too")]
    Write(&'static str, io::Error),
    /// The result would not become JSON.
    #[error("cannot make the result into JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Who listens, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Console {
    /// Standard output carries exactly one JSON object; text for people goes to standard error.
    pub json: bool,
    /// Nothing for people but errors.
    pub quiet: bool,
}

impl Console {
    /// JSON where that is asked for, else text; never quiet.
    pub fn json_or_text(json: bool) -> Self {
        Self { json, quiet: false }
    }

    /// Where text for people goes.
    pub fn stream(&self) -> Stream {
        if self.json { Stream::Stderr } else { Stream::Stdout }
    }

    /// How text for people looks there.
    pub fn style(&self) -> Style {
        Style::detect(self.stream())
    }

    /// Prints `text` for people, unless they asked for quiet.
    pub fn human(&self, text: &str) -> Result<(), PrintError> {
        if self.quiet {
            return Ok(());
        }
        let text = self.style().fitted(text.to_owned());
        match self.stream() {
            Stream::Stdout => print_stdout(&text),
            Stream::Stderr => print_stderr(&text),
        }
    }

    /// Prints `value` as the one JSON object on standard output, if JSON was asked for.
    pub fn object<T: Serialize>(&self, value: &T) -> Result<(), PrintError> {
        if self.json {
            print_stdout(&crate::json::pretty(value)?)
        } else {
            Ok(())
        }
    }

    /// Prints `value` as JSON if that was asked for, else `text`; both on standard output.
    pub fn either<T: Serialize>(&self, value: &T, text: &str) -> Result<(), PrintError> {
        if self.json {
            self.object(value)
        } else {
            print_stdout(text)
        }
    }

    /// One line on standard error, also when quiet. When even that is not possible there is nobody to tell. Whatever it
    /// quotes, of a file or of a name, does not get at the terminal.
    pub fn error(&self, line: &str) {
        let line = Style::detect(Stream::Stderr).fitted(clean(line));
        let _ = print_stderr(&format!("{line}\n"));
    }
}

/// Prints to standard output what a terminal may see of it. A reader who has gone away (`| head`) is the end of output, not an error.
pub fn print_stdout(text: &str) -> Result<(), PrintError> {
    print_to(&mut io::stdout().lock(), text, "standard output")
}

/// Prints to standard error, with the same tolerance.
pub fn print_stderr(text: &str) -> Result<(), PrintError> {
    print_to(&mut io::stderr().lock(), text, "standard error")
}

fn print_to(sink: &mut dyn Write, text: &str, to: &'static str) -> Result<(), PrintError> {
    match sink
        .write_all(printable(text).as_bytes())
        .and_then(|()| sink.flush())
    {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(PrintError::Write(to, cause)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn a_closed_pipe_is_the_end_of_output() {
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        print_to(&mut writer, "nobody reads this\n", "standard output").unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_of_one_line() {
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = print_to(&mut full, "x", "standard output")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot write to standard output: "), "{error}");
        assert!(!error.contains('\n'));
    }
}
