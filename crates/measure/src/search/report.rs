//! The whole result of `dropless search`: every frame size, every goal.

use serde::{Deserialize, Serialize};

use super::result::{Limit, SearchResult};
use super::{Range, Rfc2544Settings};
use crate::note::Note;
use crate::summary::{EXIT_CLEAN, EXIT_INVALID, EXIT_LOSS, nothing_yet};

/// How the rate is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Many short trials, several goals at once (draft-ietf-bmwg-mlrsearch).
    #[default]
    Mlr,
    /// Long trials, one after the other (RFC 2544).
    Rfc2544,
}

/// The result of a `search` run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchReport {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `search`.
    pub command: String,
    /// The run directory.
    pub run: String,
    /// How the rate was looked for.
    pub method: Method,
    /// Whether every search came to its end.
    pub complete: bool,
    /// Why not; empty when complete.
    pub reasons: Vec<Note>,
    /// One for each frame size, in the order asked for.
    pub sizes: Vec<SizeResult>,
    /// Trials of all sizes, those that only measured the highest rate among them.
    pub trials: u64,
    /// Seconds of sending in them.
    pub seconds: f64,
    /// What was asked of the tests of RFC 2544.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Rfc2544Settings>,
    /// What else the user should know.
    pub notes: Vec<Note>,
}

nothing_yet! {
    SearchReport, "search":
    run method complete reasons sizes trials seconds settings notes
}

/// What was found for one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeResult {
    /// The size as asked for: `64`, `imix`.
    pub size: String,
    /// Mean frame size with FCS.
    pub mean_frame_bytes: f64,
    /// The rates looked between; `null` where the search did not begin.
    pub range: Option<Range>,
    /// The rest.
    #[serde(flatten)]
    pub result: SearchResult,
}

impl SearchReport {
    /// The process exit code: 2 when the search did not come to its end; 1 when an answer is not one about the path
    /// (our own sender or receiver, or the reflector, was the limit, or not even the lowest rate was carried); else 0.
    pub fn exit_code(&self) -> u8 {
        if !self.complete || self.sizes.is_empty() {
            return EXIT_INVALID;
        }
        let mut goals = self.sizes.iter().flat_map(|size| &size.result.goals);
        let is_answer = |limit| matches!(limit, Limit::Path | Limit::Line | Limit::MaxRate);
        if goals.all(|goal| is_answer(goal.limit) && goal.throughput_pps.is_some()) {
            EXIT_CLEAN
        } else {
            EXIT_LOSS
        }
    }
}
