//! The forms in which `dropless report` shows runs, one a file. A further one is its file and its name in the list, from
//! which the command line takes its flags.

use std::io;
use std::path::{Path, PathBuf};

use crate::load::Loaded;
use crate::style::Style;
use crate::{atomic, ours};

macro_rules! exports {
    ($($name:ident,)*) => {
        $(pub mod $name;)*

        /// Every form, in the order of the help page.
        pub const ALL: &[&Export] = &[$(&$name::EXPORT),*];
    };
}

exports! {
    html,
    terminal,
    csv,
    json,
}

/// What is shown where nobody asked for another.
pub const DEFAULT: &Export = &terminal::EXPORT;

/// A form in which runs are shown.
#[derive(Debug)]
pub struct Export {
    /// The flag.
    pub name: &'static str,
    /// What the help page says of it.
    pub help: &'static str,
    /// What is written where the flag takes a file; without it, it goes to standard output.
    pub file: Option<Written>,
    /// Makes it.
    pub render: fn(&Shown<'_>) -> Result<String, ExportError>,
}

/// A file that an export writes.
#[derive(Debug)]
pub struct Written {
    /// What it is.
    pub what: &'static str,
    /// How its name ends; the first is the one to recommend. Another file is not replaced.
    pub extensions: &'static [&'static str],
}

/// What is to be shown.
#[derive(Debug)]
pub struct Shown<'r> {
    /// The runs, the baseline first.
    pub runs: &'r [Loaded],
    /// The lines of the rules that failed.
    pub failed: &'r [String],
    /// Whether they are listed, also where they could be shown in full or compared.
    pub is_list: bool,
    /// How text for people looks there.
    pub style: Style,
}

/// Why runs are not shown. One line.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The numbers would not become JSON.
    #[error("cannot make the numbers into JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The file could not be written.
    #[error("cannot write {0}: {1}; fix: {fix}", fix = fix(.0, .1))]
    Write(PathBuf, io::Error),
    /// The file that a flag names is something else than what such a flag writes, which ends in the last.
    #[error("--{0} {1} would replace a file that is no {2}; name one that ends in .{3}")]
    Replaces(&'static str, PathBuf, &'static str, &'static str),
}

fn fix(path: &Path, cause: &io::Error) -> String {
    let limit = ours::limit(cause, path.parent().unwrap_or(path));
    limit.unwrap_or_else(|| "name a file in a directory you may write to".to_owned())
}

impl Export {
    /// Writes it to `path`, whole or not at all.
    pub fn write(&self, path: &Path, shown: &Shown<'_>) -> Result<(), ExportError> {
        if let Some(Written { what, extensions }) = &self.file {
            // What a link leads to is what would be replaced.
            let landing = ours::landing(path).map_err(|cause| ExportError::Write(path.to_owned(), cause))?;
            let is_ours = landing
                .extension()
                .is_some_and(|word| extensions.iter().any(|known| word == *known));
            if !is_ours && landing.is_file() {
                let extension = extensions.first().copied().unwrap_or_default();
                return Err(ExportError::Replaces(self.name, path.to_owned(), what, extension));
            }
        }
        whole(path, &(self.render)(shown)?)
    }
}

/// Writes `text` to `path`, whole or not at all.
pub(crate) fn whole(path: &Path, text: &str) -> Result<(), ExportError> {
    atomic::write(path, text.as_bytes()).map_err(|cause| ExportError::Write(path.to_owned(), cause))
}
