//! What became of a change that was to be taken back.

use serde::Serialize;

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Undone {
    /// It is as it was, read back.
    Restored {
        /// What that is.
        value: String,
    },
    /// It was so already: the change was never made, or has been taken back.
    AsItWas,
    /// The reboot since has reset it.
    Rebooted,
    /// Somebody else has changed it since: it is left alone.
    Foreign {
        /// What it holds.
        now: String,
    },
    /// It stays, and harms nobody.
    Stays {
        /// Why.
        why: String,
    },
    /// It could not be taken back; the journal keeps it.
    Refused {
        /// Why.
        why: String,
    },
}

impl Undone {
    pub(super) fn restored(value: &str) -> Self {
        Self::Restored { value: value.into() }
    }

    pub(super) fn stays(why: impl Into<String>) -> Self {
        Self::Stays { why: why.into() }
    }

    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into() }
    }
}
