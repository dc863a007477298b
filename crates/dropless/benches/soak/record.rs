//! What a session tells: a line a round, a table by kind, and every round as a line of JSON.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use measure::units::format_count;
use serde::Serialize;

use crate::balance::Account;
use crate::plan::{Kind, Plan};

/// A round that is over.
#[derive(Debug, Serialize)]
pub struct Record {
    pub round: u64,
    pub plan: Plan,
    pub seconds: f64,
    #[serde(flatten)]
    pub account: Account,
    pub commands: Vec<String>,
    /// Where its run directories are, if something did not hold.
    pub kept: Option<PathBuf>,
}

impl Record {
    pub fn is_sound(&self) -> bool {
        self.account.problems.is_empty()
    }

    /// For whoever watches.
    pub fn line(&self) -> String {
        let account = &self.account;
        let verdict = match (self.is_sound(), account.excused.is_empty()) {
            (false, _) => "FAILED".to_owned(),
            (true, true) => "valid".to_owned(),
            (true, false) => account.excused.iter().cloned().collect::<Vec<_>>().join(" "),
        };
        let named = places(&account.named);
        let named = if named.is_empty() {
            named
        } else {
            format!("  ({named})")
        };
        format!(
            "{:>5}  seed {:<10}  {:<10}  {:>5.1} s  {:>15} packets  {} unexplained  {verdict}{named}",
            self.round,
            self.plan.seed,
            self.plan.kind.name(),
            self.seconds,
            format_count(account.packets),
            format_count(account.unexplained),
        )
    }
}

/// In words; what a run sends that nobody is to return is no loss.
fn places(named: &BTreeMap<String, u64>) -> String {
    let lost = named.iter().filter(|(place, _)| *place != "not_awaited");
    let words = lost.map(|(place, count)| format!("{place} {}", format_count(*count)));
    words.collect::<Vec<_>>().join(", ")
}

/// Everything so far.
pub struct Records {
    directory: PathBuf,
    file: File,
    rounds: Vec<Record>,
}

impl Records {
    /// In a directory of its own.
    pub fn begin(directory: PathBuf) -> std::io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        let file = File::create(directory.join("rounds.jsonl"))?;
        Ok(Self {
            directory,
            file,
            rounds: Vec::new(),
        })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn file(&self) -> PathBuf {
        self.directory.join("rounds.jsonl")
    }

    pub fn add(&mut self, record: Record) -> std::io::Result<()> {
        writeln!(self.file, "{}", serde_json::to_string(&record)?)?;
        self.rounds.push(record);
        Ok(())
    }

    pub fn failures(&self) -> impl Iterator<Item = &Record> {
        self.rounds.iter().filter(|record| !record.is_sound())
    }

    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    pub fn rounds_of(&self, kind: Kind) -> impl Iterator<Item = &Record> {
        self.rounds.iter().filter(move |record| record.plan.kind == kind)
    }

    /// Packets and unexplained ones of a kind.
    pub fn totals(&self, kind: Kind) -> (u64, u64) {
        self.rounds_of(kind)
            .fold((0, 0), |(packets, unexplained), record| {
                (
                    packets + record.account.packets,
                    unexplained + record.account.unexplained,
                )
            })
    }

    /// By kind, with all of them last.
    pub fn table(&self) -> String {
        let mut kinds: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
        for record in &self.rounds {
            kinds.entry(record.plan.kind.name()).or_default().push(record);
        }
        let mut table = String::from(
            "| kind | rounds | packets | unexplained | failed | named |\n|---|---:|---:|---:|---:|---|\n",
        );
        for (kind, records) in &kinds {
            table += &row(kind, records);
        }
        table + &row("all", &self.rounds.iter().collect::<Vec<_>>())
    }
}

fn row(kind: &str, records: &[&Record]) -> String {
    let mut sum = Account::default();
    for record in records {
        sum.packets += record.account.packets;
        sum.unexplained += record.account.unexplained;
        for (place, count) in &record.account.named {
            sum.name(place, *count);
        }
    }
    let failed = records.iter().filter(|record| !record.is_sound()).count();
    format!(
        "| {kind} | {} | {} | {} | {failed} | {} |\n",
        records.len(),
        format_count(sum.packets),
        format_count(sum.unexplained),
        places(&sum.named)
    )
}
