//! What a check found: what was read, what it means, what it costs, and what mends it.

use std::fmt;

use serde::Serialize;

use host::Fix;
use host::problem::quoted;

/// How bad it is. Ordered: the worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It could not be read, or means nothing here; the sentence says why.
    CannotTell,
    /// It may cost packets.
    Warning,
    /// It does cost packets.
    Bad,
}

/// A value that a check is based on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// The file, or the command.
    pub from: String,
    /// What stood there, in one line.
    pub value: String,
}

/// When a remedy has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// At once.
    Now,
    /// When the program that polls is started again.
    Restart,
    /// After a reboot.
    Boot,
    /// In the firmware's settings.
    Firmware,
    /// With other hardware, or in another slot.
    Hardware,
    /// On the machine that this one is a guest of.
    Host,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "works now",
            Self::Restart => "after a restart of the program",
            Self::Boot => "after a reboot",
            Self::Firmware => "in the firmware",
            Self::Hardware => "in the hardware",
            Self::Host => "on the host of this virtual machine",
        })
    }
}

/// A file of the kernel's that is to hold another value. `tune` makes such changes, and takes them back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file.
    pub path: String,
    /// What it shall hold.
    pub value: String,
    /// The file that tells what took effect, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
}

impl Change {
    /// `path` shall hold `value`.
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            value: value.into(),
            effective: None,
        }
    }

    /// The effect is read from `path`.
    #[must_use]
    pub fn effective_in(mut self, path: impl Into<String>) -> Self {
        self.effective = Some(path.into());
        self
    }

    /// The shell command that does the same.
    pub fn command(&self) -> String {
        format!("echo {} > {}", quoted(&self.value), quoted(&self.path))
    }
}

/// One way to mend a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// When it has its effect.
    pub when: When,
    /// The commands or the advice, and how to take them back.
    pub fix: Fix,
    /// What `tune` changes for it; then `fix` says the same in commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Arguments of the kernel's command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boot: Vec<String>,
}

impl Remedy {
    /// Commands or advice for people.
    pub fn by_hand(when: When, fix: Fix) -> Self {
        Self {
            when,
            fix,
            changes: Vec::new(),
            boot: Vec::new(),
        }
    }

    /// Files to write, with what they hold `now`.
    pub fn now(changes: Vec<(Change, String)>) -> Self {
        let undo = changes.iter().rev();
        let undo = undo.map(|(change, old)| Change::new(&change.path, old).command());
        Self {
            when: When::Now,
            fix: Fix::all(changes.iter().map(|(change, _)| change.command())).undone_by(undo),
            changes: changes.into_iter().map(|(change, _)| change).collect(),
            boot: Vec::new(),
        }
    }

    /// Arguments for the kernel's command line.
    pub fn boot<I: IntoIterator<Item = S>, S: Into<String>>(arguments: I) -> Self {
        let boot: Vec<String> = arguments.into_iter().map(Into::into).collect();
        Self {
            when: When::Boot,
            fix: Fix::advice(format!(
                "kernel command line: {} (dropless tune --boot)",
                boot.join(" ")
            )),
            changes: Vec::new(),
            boot,
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name, stable, for scripts: `irq`, `tick`.
    pub check: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What is so, in one sentence.
    pub says: String,
    /// What it costs a polling core; nothing where it is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// What was read.
    pub read: Vec<Reading>,
    /// What mends it, the quickest first.
    pub remedies: Vec<Remedy>,
}

impl Finding {
    /// A finding that nothing is said about yet but this.
    pub fn new(check: &'static str, verdict: Verdict, says: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            says: says.into(),
            costs: None,
            read: Vec::new(),
            remedies: Vec::new(),
        }
    }

    /// Adds what it is based on.
    #[must_use]
    pub fn read(mut self, from: impl Into<String>, value: impl Into<String>) -> Self {
        self.read.push(Reading {
            from: from.into(),
            value: value.into(),
        });
        self
    }

    /// Adds what it costs.
    #[must_use]
    pub fn costs(mut self, costs: impl Into<String>) -> Self {
        self.costs = Some(costs.into());
        self
    }

    /// Adds what mends it.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }
}
