//! A run that did not end, or is still at work: what it left is shown, and that it is not a result.

use serde::{Serialize, Serializer};

use super::intervals::Intervals;
use crate::kind::{Entry, Kind, Standing, Tile, Verdict};
use crate::load::Series;
use crate::style::{Paint, Style};
use crate::terminal::join;
use crate::wrap::marked;

/// What is known of it.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// What is missing, and what can be done.
    why: String,
    /// The intervals that it wrote.
    so_far: Option<Intervals>,
}

impl Unfinished {
    /// What is missing and what can be done is `why`; `series` are the intervals that it wrote.
    pub fn of(why: String, series: Option<&Series>) -> Self {
        Self {
            why,
            so_far: series.map(Intervals::of),
        }
    }
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

    fn figure(&self, name: &str) -> Option<f64> {
        self.so_far.as_ref()?.figure(name)
    }

    fn tiles(&self) -> Vec<Tile> {
        self.so_far.as_ref().map(Kind::tiles).unwrap_or_default()
    }

    fn terminal(&self, style: &Style) -> String {
        let so_far = self.so_far.as_ref().map(|so_far| so_far.terminal(style));
        join(&[so_far.unwrap_or_default(), self.headline(style)])
    }

    fn headline(&self, style: &Style) -> String {
        marked("DID NOT END:", Paint::Bad, &self.why, style)
    }

    fn page(&self, _named: &str, _id: &str) -> String {
        String::new()
    }

    /// With its like: what it did until then is no result that others could be held against.
    fn compared_with(&self) -> &'static str {
        "what did not end"
    }
}
