//! A run that did not end, or is still at work: what it left is shown, and that it is not a result. What cannot be read is no
//! more than that.

use maud::Markup;
use serde::{Serialize, Serializer};

use super::intervals::Intervals;
use crate::kind::{Entry, Kind, Mark, Standing, Tile, Verdict};
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
    is_unreadable: bool,
}

impl Unfinished {
    /// What cannot be read, and why.
    pub fn unreadable(why: String) -> Self {
        Self {
            why,
            so_far: None,
            is_unreadable: true,
        }
    }

    /// Whether there is something that could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    fn mark(&self) -> Mark {
        if self.is_unreadable {
            Mark::Unreadable
        } else {
            Mark::DidNotEnd
        }
    }

    /// What is missing and what can be done is `why`; `series` are the intervals that it wrote.
    pub fn of(why: String, series: Option<&Series>) -> Self {
        Self {
            why,
            so_far: series.map(Intervals::of),
            is_unreadable: false,
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
            mark: Some(self.mark()),
            outcome: self.why.clone(),
            reasons: Vec::new(),
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
        marked(&format!("{}:", self.mark().name()), Paint::Bad, &self.why, style)
    }

    fn page(&self, _named: &str, _id: &str) -> Markup {
        Markup::default()
    }

    /// With its like: what it did until then is no result that others could be held against.
    fn compared_with(&self) -> &'static str {
        if self.is_unreadable {
            "what cannot be read"
        } else {
            "what did not end"
        }
    }
}
