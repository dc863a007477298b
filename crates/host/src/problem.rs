//! What stands in the way, as data: a problem that stops, a warning that does not, and the commands that mend either.

use serde::Serialize;
use std::fmt;

/// Commands that mend something, and how to take them back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Shell commands, to be run as root in this order.
    pub commands: Vec<String>,
    /// What to do, where that is no command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Whether the effect of `commands` is still there after a reboot.
    pub persists: bool,
    /// Shell commands that take the effect back.
    pub undo: Vec<String>,
    /// Shell commands that make the same effect survive a reboot, where `commands` alone do not.
    pub make_persistent: Vec<String>,
    /// Whether its advice is another kernel, and so takes a reboot.
    #[serde(skip)]
    pub reboots: bool,
}

impl Fix {
    /// A sentence, where no command can mend it.
    pub fn advice(advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..Self::default()
        }
    }

    /// To boot a kernel that has this.
    pub fn kernel_with(what: impl fmt::Display) -> Self {
        Self {
            reboots: true,
            ..Self::advice(format!("boot a kernel with {what}"))
        }
    }

    /// A fix of one command that nothing needs to take back.
    pub fn one(command: impl Into<String>) -> Self {
        Self {
            commands: vec![command.into()],
            ..Self::default()
        }
    }

    /// Adds what else can be done.
    #[must_use]
    pub fn or(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// A fix of several commands.
    pub fn all<I: IntoIterator<Item = S>, S: Into<String>>(commands: I) -> Self {
        Self {
            commands: commands.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Says that the effect is still there after a reboot.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.persists = true;
        self
    }

    /// Adds the commands that take the effect back.
    #[must_use]
    pub fn undone_by<I: IntoIterator<Item = S>, S: Into<String>>(mut self, commands: I) -> Self {
        self.undo = commands.into_iter().map(Into::into).collect();
        self
    }

    /// Adds the commands that make the effect survive a reboot.
    #[must_use]
    pub fn kept_by<I: IntoIterator<Item = S>, S: Into<String>>(mut self, commands: I) -> Self {
        self.make_persistent = commands.into_iter().map(Into::into).collect();
        self
    }

    /// Puts the commands of `first` before these; undone in the opposite order.
    #[must_use]
    pub fn after(self, first: Self) -> Self {
        Self {
            commands: [first.commands, self.commands].concat(),
            advice: first.advice.or(self.advice),
            persists: first.persists && self.persists,
            undo: [self.undo, first.undo].concat(),
            make_persistent: [first.make_persistent, self.make_persistent].concat(),
            reboots: first.reboots || self.reboots,
        }
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.commands.join(" && "))?;
        match &self.advice {
            Some(advice) if self.commands.is_empty() => f.write_str(advice),
            Some(advice) => write!(f, ", or {advice}"),
            None => Ok(()),
        }
    }
}

/// Why a port cannot be used: what was wanted, what was found, what mends it. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{what}: {found}; fix: {fix}")]
pub struct Problem {
    /// What was wanted: the port as the user wrote it, or what it needs.
    pub what: String,
    /// What was found instead.
    pub found: String,
    /// What mends it; boxed to keep results small.
    pub fix: Box<Fix>,
}

impl Problem {
    /// A problem with `what`, where `found` was found and `fix` mends it.
    pub fn new(what: impl fmt::Display, found: impl Into<String>, fix: Fix) -> Self {
        Self {
            what: one_line(&what.to_string()),
            found: one_line(&found.into()),
            fix: Box::new(fix),
        }
    }
}

/// Quotes a path or name for a shell, where it needs that.
pub fn quoted(text: impl fmt::Display) -> String {
    let text = text.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@,+=%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Names from the command line may hold control characters; a report line must stay one line.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Something that does not stop a run but may spoil its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable short name, for scripts: `no-hugepages`.
    pub code: &'static str,
    /// The sentence for people, in one line.
    pub text: String,
    /// What mends it, if a command can.
    pub fix: Option<Fix>,
}

impl Warning {
    /// A warning without a fix.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            fix: None,
        }
    }

    /// The same with a fix.
    #[must_use]
    pub fn with_fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fix {
            Some(fix) => write!(f, "{}; fix: {fix}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_a_shell_would_stumble() {
        assert_eq!(quoted("/run/x.sock"), "/run/x.sock");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_problem_is_one_line() {
        let problem = Problem::new("xdp:a", "no\nsuch", Fix::all(["one", "two"]));
        assert_eq!(problem.to_string(), "xdp:a: no\u{fffd}such; fix: one && two");
    }

    #[test]
    fn what_is_done_last_is_undone_first() {
        let first = Fix::one("load").persistent().undone_by(["unload"]);
        let both = Fix::one("bind").undone_by(["unbind"]).after(first);
        assert_eq!(both.commands, ["load", "bind"]);
        assert_eq!(both.undo, ["unbind", "unload"]);
        assert!(!both.persists);
    }
}
