//! Why a trial is made, for people: as a sentence, and in the few words that fit a line.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::result::Limit;

/// Why a trial is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose {
    /// Why it is made once more.
    pub again: Option<Again>,
    of: String,
    words: String,
    brief: String,
}

/// Why a trial is made once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// The last one could not be believed.
    Invalid,
    /// Only our own side kept the last one from being good.
    Spoiled(Limit),
    /// One trial does not decide.
    Unsure,
}

impl Purpose {
    /// What is looked for in these words, of this goal or test; of none where that is empty.
    pub fn new(of: impl Into<String>, words: impl Into<String>) -> Self {
        let (of, words) = (of.into(), words.into());
        let brief = joined(&of, &words);
        Self {
            again: None,
            of,
            words,
            brief,
        }
    }

    /// With these words where there is no room for all.
    #[must_use]
    pub fn in_brief(mut self, brief: impl Into<String>) -> Self {
        self.brief = brief.into();
        self
    }

    /// Of a trial that is made once more, unless it was that already.
    #[must_use]
    pub fn again(mut self, why: Again) -> Self {
        self.again = self.again.or(Some(why));
        self
    }

    /// In a few words: without the trials that led to it.
    pub fn brief(&self) -> String {
        match self.again {
            None => self.brief.clone(),
            Some(Again::Invalid) => format!("again, {}", self.brief),
            Some(Again::Spoiled(limit)) => format!("again, {limit} was in it"),
            Some(Again::Unsure) => joined(&self.of, "again, to be sure"),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = joined(&self.of, &self.words);
        match self.again {
            None => formatter.write_str(&whole),
            Some(Again::Invalid) => write!(formatter, "again, the last one was invalid: {whole}"),
            Some(Again::Spoiled(limit)) => write!(formatter, "again, {limit} spoiled the last one: {whole}"),
            Some(Again::Unsure) => formatter.write_str(&joined(&self.of, "again, one trial does not decide")),
        }
    }
}

fn joined(of: &str, words: &str) -> String {
    if of.is_empty() {
        words.to_owned()
    } else {
        format!("{of}: {words}")
    }
}
