//! A run that did not end, or is still at work: among others it is a line that says so.

use serde::{Serialize, Serializer};

use crate::kind::{Entry, Kind, Standing, Tile, Verdict};
use crate::style::{Paint, Style};
use crate::wrap::marked;

/// What is known of it.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// What is missing, and what can be done.
    pub why: String,
}

/// There is no result.
impl Serialize for Unfinished {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl Kind for Unfinished {
    fn entry(&self) -> Option<&'static Entry> {
        None
    }

    fn verdict(&self) -> Verdict {
        Verdict {
            standing: Standing::Invalid,
            words: format!("DID NOT END: {}", self.why),
            reasons: Vec::new(),
            is_by_reason: false,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        Vec::new()
    }

    fn terminal(&self, style: &Style) -> String {
        marked("DID NOT END:", Paint::Bad, &self.why, style)
    }

    fn page(&self, _named: &str, _id: &str) -> String {
        String::new()
    }
}
