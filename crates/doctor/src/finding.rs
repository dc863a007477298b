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

impl Verdict {
    /// Bad where that is so, else only a warning.
    pub fn bad_if(is_bad: bool) -> Self {
        if is_bad { Self::Bad } else { Self::Warning }
    }
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

    /// A sentence for people.
    pub fn advice(when: When, advice: impl Into<String>) -> Self {
        Self::by_hand(when, Fix::advice(advice))
    }

    /// Files to write, with what they hold `now`.
    pub fn now(changes: Vec<(Change, String)>) -> Self {
        let (changes, old): (Vec<Change>, Vec<String>) = changes.into_iter().unzip();
        let undo = changes.iter().zip(old).rev();
        let undo = undo.map(|(change, old)| Change::new(&change.path, old).command());
        let fix = Fix::all(changes.iter().map(Change::command)).undone_by(undo);
        Self {
            changes,
            ..Self::by_hand(When::Now, fix)
        }
    }

    /// One file to write, which holds `old` now.
    pub fn write(path: impl Into<String>, value: impl Into<String>, old: impl Into<String>) -> Self {
        Self::now(vec![(Change::new(path, value), old.into())])
    }

    /// Arguments for the kernel's command line.
    pub fn boot<I: IntoIterator<Item = S>, S: Into<String>>(arguments: I) -> Self {
        let boot: Vec<String> = arguments.into_iter().map(Into::into).collect();
        let words = boot.join(" ");
        Self {
            boot,
            ..Self::advice(
                When::Boot,
                format!("kernel command line: {words} (dropless tune --boot)"),
            )
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
    /// A finding that says this.
    pub fn new(check: &'static str, verdict: Verdict, says: impl Into<String>) -> Self {
        Self::of(check).judged(verdict, says)
    }

    /// A finding of which nothing is said yet.
    pub fn of(check: &'static str) -> Self {
        Self {
            check,
            verdict: Verdict::Good,
            says: String::new(),
            costs: None,
            read: Vec::new(),
            remedies: Vec::new(),
        }
    }

    /// A check that has nothing to look at.
    pub fn unreadable(check: &'static str, file: &str) -> Self {
        Self::of(check).cannot_tell(format!("{file} cannot be read"))
    }

    /// Says what is so, and how bad that is.
    #[must_use]
    pub fn judged(self, verdict: Verdict, says: impl Into<String>) -> Self {
        Self {
            verdict,
            says: says.into(),
            ..self
        }
    }

    /// It is as it should be.
    #[must_use]
    pub fn good(self, says: impl Into<String>) -> Self {
        self.judged(Verdict::Good, says)
    }

    /// Nobody can tell, and why.
    #[must_use]
    pub fn cannot_tell(self, says: impl Into<String>) -> Self {
        self.judged(Verdict::CannotTell, says)
    }

    /// It may cost packets.
    #[must_use]
    pub fn warning(self, says: impl Into<String>) -> Self {
        self.judged(Verdict::Warning, says)
    }

    /// It does cost packets.
    #[must_use]
    pub fn bad(self, says: impl Into<String>) -> Self {
        self.judged(Verdict::Bad, says)
    }

    /// Adds what it is based on.
    #[must_use]
    pub fn read(self, from: impl Into<String>, value: impl Into<String>) -> Self {
        self.read_all([(from, value)])
    }

    /// Adds all that it is based on: files, with what stands there.
    #[must_use]
    pub fn read_all<F: Into<String>, V: Into<String>>(
        mut self,
        all: impl IntoIterator<Item = (F, V)>,
    ) -> Self {
        self.read.extend(all.into_iter().map(|(from, value)| Reading {
            from: from.into(),
            value: value.into(),
        }));
        self
    }

    /// Adds what it costs.
    #[must_use]
    pub fn costs(mut self, costs: impl Into<String>) -> Self {
        self.costs = Some(costs.into());
        self
    }

    /// Adds what mends it, if anything does.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<Option<Remedy>>) -> Self {
        self.remedies.extend(remedy.into());
        self
    }
}

impl From<Finding> for Vec<Finding> {
    fn from(finding: Finding) -> Self {
        vec![finding]
    }
}
