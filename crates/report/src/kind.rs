//! What a kind of result is: all that lists, reports, pages and comparisons ask of one. Each is a file in `kinds/`.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;

use maud::{Markup, Render, html};
use measure::{
    ExpectationResult, GapSummary, Note, Percentiles, PortSummary, RunResult, Validity, WorkerSummary,
};
use serde::Serialize;
use serde_json::Value;

use crate::compare::metrics::Metric;
use crate::number::counted;
use crate::read::ReadError;
use crate::rundir::file;
use crate::style::{Paint, Style};

/// How results of a kind are found and read. The registry [`kinds::ALL`](crate::kinds::ALL) lists them.
#[derive(Debug)]
pub struct Entry {
    /// The command that writes them, as `command` in the file says.
    pub command: &'static str,
    /// The file of the run directory that holds the result. More than one kind may use `summary.json`.
    pub file: &'static str,
    /// The keys that version 1 of the file always had; one that came later must not be added here. A `*` stands for each
    /// item of a list.
    pub required: &'static [&'static str],
    /// Reads the result in a run directory: bounded, checked, whole or not at all.
    pub read: fn(&Path) -> Result<Box<dyn Kind>, ReadError>,
    /// Of a run directory without the file: that it is a run of this kind and did not end, where it is one.
    pub unfinished: fn(&Path) -> Result<Option<ReadError>, ReadError>,
    /// Figures that other kinds do not have.
    pub metrics: &'static [Metric],
}

/// A result: what it came to, and how that is shown.
pub trait Kind: Plain {
    /// How it is found and read; nothing for what is no run directory.
    fn entry(&self) -> Option<&'static Entry>;
    /// What it came to, in words.
    fn verdict(&self) -> Verdict;
    /// Its value of the figure `name`, if it knows that.
    fn figure(&self, _name: &str) -> Option<f64> {
        None
    }
    /// Its values of the figure `name`, each with what it is of (a frame size, a method); usually one, of nothing.
    fn figures(&self, name: &str) -> Vec<(String, f64)> {
        let value = self.figure(name);
        value.map(|value| (String::new(), value)).into_iter().collect()
    }
    /// The best that it found, packets/s; nothing where it looked for none.
    fn best_pps(&self) -> Option<f64> {
        let found = self.figures("throughput").into_iter();
        found.map(|(_, value)| value).reduce(f64::max)
    }
    /// What everybody asks first: the tiles of a page, and the columns of a list of runs.
    fn tiles(&self) -> Vec<Tile>;
    /// All of it for a terminal.
    fn terminal(&self, style: &Style) -> String;
    /// What of that stands above the charts of one run among several.
    fn headline(&self, style: &Style) -> String {
        self.terminal(style)
    }
    /// Its sections of a page. Of several runs each heading says whose it is (`named`), and ids begin with `id`.
    fn page(&self, named: &str, id: &str) -> Markup;
    /// The files beside it that are read and drawn, too.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }
    /// Runs of the same kind are compared with each other.
    fn compared_with(&self) -> &'static str {
        self.entry().map_or("", |entry| entry.command)
    }
    /// What else the user should know.
    fn notes(&self) -> &[Note] {
        &[]
    }
    /// The ports and their counters.
    fn ports(&self) -> &[PortSummary] {
        &[]
    }
    /// What carried them.
    fn workers(&self) -> &[WorkerSummary] {
        &[]
    }
    /// Latency of its packets.
    fn latency(&self) -> Percentiles {
        Percentiles::default()
    }
    /// Gaps between departures.
    fn departures(&self) -> GapSummary {
        GapSummary::default()
    }
    /// The outcome of every `--expect`.
    fn expectations(&self) -> &[ExpectationResult] {
        &[]
    }
    /// What a chart of loss does not tell by itself.
    fn about_loss(&self) -> Option<String> {
        None
    }
}

/// A file of the run directory that is drawn together with the result.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name.
    pub file: &'static str,
    /// What cannot be shown without it.
    pub shows: &'static str,
    /// Whether such a run always writes it.
    pub is_expected: bool,
}

impl Part {
    /// What a run with workers writes while it goes.
    pub fn of_workers(workers: &[WorkerSummary]) -> Vec<Self> {
        [
            (file::INTERVALS, "what happened over time"),
            (file::STALLS, "the stalls of the workers"),
        ]
        .map(|(file, shows)| Self {
            file,
            shows,
            is_expected: !workers.is_empty(),
        })
        .to_vec()
    }
}

/// What a verdict begins with, and a list shows of it: it is in capitals for people who look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It may be believed.
    Valid,
    /// It must not be believed.
    Invalid,
    /// A search came to its end.
    Found,
    /// Somebody ended it before.
    NotFinished,
    /// There is no result.
    DidNotEnd,
    /// There is something that cannot be read.
    Unreadable,
}

impl Mark {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Invalid => "INVALID",
            Self::Found => "FOUND",
            Self::NotFinished => "NOT FINISHED",
            Self::DidNotEnd => "DID NOT END",
            Self::Unreadable => "UNREADABLE",
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How good that is.
    pub standing: Standing,
    /// What it begins with; nothing of what is not judged.
    pub mark: Option<Mark>,
    /// What follows, in one sentence.
    pub outcome: String,
    /// What else is to be said of it, a sentence each.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// Of a run that was judged: `words` are what it came to if it may be believed, `standing` how good that is.
    pub fn judged(validity: Validity, standing: Standing, words: &str, reasons: &[Note]) -> Self {
        match validity {
            Validity::Valid => Self {
                standing,
                mark: Some(Mark::Valid),
                outcome: words.to_owned(),
                reasons: Vec::new(),
            },
            Validity::Invalid => Self {
                standing: Standing::Invalid,
                mark: Some(Mark::Invalid),
                outcome: format!("these numbers must not be believed. {words}"),
                reasons: Note::texts(reasons),
            },
        }
    }

    /// The same of a run, whose exit code says how good that is.
    pub(crate) fn of_run(run: &impl RunResult, words: &str) -> Self {
        let standing = Standing::of_exit(run.exit_code());
        Self::judged(run.validity(), standing, words, run.reasons())
    }

    /// Its mark alone, as it stands in lists.
    pub fn word(&self) -> &'static str {
        self.mark.map_or("-", Mark::name)
    }

    /// In one sentence.
    pub fn words(&self) -> String {
        let mark = self
            .mark
            .map_or_else(String::new, |mark| format!("{}: ", mark.name()));
        mark + &self.outcome
    }

    /// In one line, where so many expectations `failed`: of what must not be believed the first reason says more than the
    /// words do.
    pub fn line(&self, failed: usize) -> String {
        let words = match (self.mark, self.reasons.first()) {
            (Some(Mark::Invalid), Some(reason)) => reason.clone(),
            _ => self.outcome.replace('`', ""),
        };
        let failed = (failed > 0).then(|| format!("{} FAILED", counted(failed as u64, "expectation")));
        let mark = self.mark.map(|mark| mark.name().to_owned());
        let head: Vec<String> = mark.into_iter().chain(failed).collect();
        if head.is_empty() {
            words
        } else {
            format!("{}: {words}", head.join(", "))
        }
    }
}

/// How good a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Measured, and nothing is wrong.
    Clean,
    /// Measured, and something was lost or not reached.
    Loss,
    /// Not measured, or not to the end: its figures must not be believed.
    Invalid,
    /// Measured; nothing in it is good or bad.
    Plain,
}

impl Standing {
    /// Of an exit code.
    pub fn of_exit(code: u8) -> Self {
        match code {
            0 => Self::Clean,
            1 => Self::Loss,
            _ => Self::Invalid,
        }
    }

    /// Its class in a page.
    pub fn class(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Loss => "loss",
            Self::Invalid => "invalid",
            Self::Plain => "plain",
        }
    }

    /// Its colour in a terminal.
    pub fn paint(self) -> Paint {
        match self {
            Self::Clean => Paint::Good,
            Self::Loss => Paint::Warn,
            Self::Invalid => Paint::Bad,
            Self::Plain => Paint::None,
        }
    }
}

/// A figure with its name, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its name.
    pub name: String,
    /// Its value and unit.
    pub value: String,
}

impl Tile {
    /// Those of values that are known.
    pub fn known<N: Into<String>>(tiles: impl IntoIterator<Item = (N, Option<String>)>) -> Vec<Self> {
        let known = tiles
            .into_iter()
            .filter_map(|(name, value)| Some((name.into(), value?)));
        known.map(|(name, value)| Self { name, value }).collect()
    }
}

impl Render for Tile {
    fn render(&self) -> Markup {
        html! { div { dt { (self.name) } dd { (self.value) } } }
    }
}

/// What a result can do because it is plain data.
pub trait Plain: Debug {
    /// As the type that it is.
    fn as_any(&self) -> &dyn Any;
    /// A copy.
    fn boxed(&self) -> Box<dyn Kind>;
    /// What the file of the result holds.
    fn value(&self) -> serde_json::Result<Value>;
}

impl<T: Kind + Any + Clone + Serialize> Plain for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn boxed(&self) -> Box<dyn Kind> {
        Box::new(self.clone())
    }

    fn value(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl Clone for Box<dyn Kind> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}
