//! What changes the machine: each change is written down first, made, and read back.

use std::io;

use nix::errno::Errno;
use serde::Serialize;

use super::journal::{Effect, Journal, Kind};
use super::kernel::Kernel;
use super::value::{same, within, writable};
use host::Problem;

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Outcome {
    /// It was so before; nothing was written.
    Already,
    /// It is as wanted now, read back.
    Took {
        /// What it was.
        old: String,
        /// What it reads.
        now: String,
    },
    /// The kernel took the value and has not acted on it yet.
    NotYet {
        /// What is still so.
        now: String,
        /// When it will act.
        until: &'static str,
    },
    /// It is as it was, or as nobody wanted it.
    Refused {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// Refused for this reason.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into() }
    }

    /// As wanted now, and what it was.
    pub(super) fn took(old: impl Into<String>, now: impl Into<String>) -> Self {
        Self::Took {
            old: old.into(),
            now: now.into(),
        }
    }

    /// Whether it is not as wanted.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

/// A machine and the journal of what is done to it.
pub struct Operator<'k> {
    pub kernel: &'k dyn Kernel,
    pub journal: &'k mut Journal,
}

impl Operator<'_> {
    /// A file of the kernel's shall hold `wanted`; what took effect stands in `effective`, if not in itself.
    pub fn value(&mut self, path: &str, wanted: &str, effective: Option<&str>) -> Result<Outcome, Problem> {
        let old = match self.kernel.read(path) {
            Ok(old) => old,
            Err(error) => return Ok(Outcome::refused(format!("it cannot be read: {error}"))),
        };
        if same(&old, wanted) && self.effect(path, wanted, effective).is_ok() {
            return Ok(Outcome::Already);
        }
        let effect = effective.and_then(|file| {
            let old = self.kernel.read(file).ok()?;
            let path = file.to_owned();
            Some(Effect { path, old })
        });
        self.journal.before_effect(path, &old, wanted, effect)?;
        let written = self.kernel.write(path, wanted);
        let held = self.kernel.read(path).unwrap_or_default();
        self.journal.took(path, Some(&held))?;
        if let Err(error) = written {
            return Ok(Outcome::refused(refusal(path, &error)));
        }
        Ok(match self.effect(path, wanted, effective) {
            Ok(now) => Outcome::took(writable(&old), now),
            Err(now) if effective.is_some() && same(&held, wanted) => Outcome::NotYet {
                now,
                until: "its next interrupt",
            },
            Err(now) => Outcome::refused(format!("it was written, and reads '{now}'")),
        })
    }

    /// What took effect; an error where that is not what was wanted.
    fn effect(&self, path: &str, wanted: &str, effective: Option<&str>) -> Result<String, String> {
        let now = self.kernel.read(effective.unwrap_or(path)).unwrap_or_default();
        let as_wanted = match effective {
            Some(_) => within(&now, wanted),
            None => same(&now, wanted),
        };
        let now = writable(&now).to_owned();
        if as_wanted { Ok(now) } else { Err(now) }
    }

    /// An ordinary file shall have this text; `service` is started again, as it reads the file only then.
    pub fn file(&mut self, path: &str, text: &str, service: Option<&str>) -> Result<Outcome, Problem> {
        let old = match self.kernel.text(path) {
            Ok(old) => old,
            Err(error) => return Ok(Outcome::refused(format!("it cannot be read: {error}"))),
        };
        if old.as_deref() == Some(text) {
            return Ok(Outcome::Already);
        }
        self.journal
            .before_with(Kind::File, path, old.as_deref(), Some(text), service)?;
        if let Err(error) = self.kernel.replace(path, Some(text)) {
            return Ok(Outcome::refused(error.to_string()));
        }
        self.journal.took(path, Some(text))?;
        if let Some(Err(error)) = service.map(|name| self.kernel.run("systemctl", &["restart", name])) {
            let why = format!("written, but the service did not start again: {error}");
            return Ok(Outcome::refused(why));
        }
        let old = if old.is_some() { "its old text" } else { "no file" };
        Ok(Outcome::took(old, "written"))
    }

    /// There shall be this directory.
    pub fn directory(&mut self, path: &str) -> Result<io::Result<()>, Problem> {
        if self.kernel.sys().exists(path) {
            return Ok(Ok(()));
        }
        self.journal.before(Kind::Directory, path, None, None)?;
        let made = self.kernel.make_directory(path);
        self.journal.took(path, None)?;
        Ok(made)
    }

    /// The module shall be loaded.
    pub fn module(&mut self, name: &str) -> Result<Outcome, Problem> {
        if host::modules::is_loaded(self.kernel.sys(), name) {
            return Ok(Outcome::Already);
        }
        self.journal.before(Kind::Module, name, None, Some(name))?;
        let loaded = self.kernel.run("modprobe", &[name]);
        self.journal.took(name, Some(name))?;
        Ok(match loaded {
            Ok(()) => Outcome::took("not loaded", "loaded"),
            Err(error) => Outcome::refused(error.to_string()),
        })
    }
}

/// The kernel's error number in words that say what helps.
fn refusal(path: &str, error: &io::Error) -> String {
    let number = error.raw_os_error().map(Errno::from_raw);
    let managed = path.starts_with("/proc/irq/") && matches!(number, Some(Errno::EIO | Errno::EPERM));
    if managed {
        return "managed by the kernel: it follows its queue; boot with isolcpus=managed_irq (dropless tune --boot), or use fewer queues".into();
    }
    error.to_string()
}
