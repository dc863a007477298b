//! An argument of the kernel's command line.

use serde::Serialize;

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// As it is written.
    pub text: String,
    /// What it is for.
    pub why: String,
    /// What this kernel was booted with instead; the same text where it is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// It must take the place of `now`, wherever that comes from: beside it the kernel would not take this one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
}

impl Argument {
    /// Whether this kernel was booted with it.
    pub fn is_there(&self) -> bool {
        self.now.as_ref() == Some(&self.text)
    }
}
