//! All results of one run: as a page, as JSON, and as an exit code.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Args;
use crate::flat::FlatRounds;
use crate::machine::Machine;
use crate::rounds::{Rounds, rate};
use crate::{page, table, tables};

/// A worker that has less of its core was disturbed.
const QUIET: f64 = 0.9;

/// What was measured.
pub struct Results {
    /// The rows.
    pub rows: Vec<Rounds>,
    /// The series.
    pub flats: Vec<FlatRounds>,
    /// Targets are judged: one short round says too little.
    pub judged: bool,
    /// Every row was measured, in a full run.
    pub complete: bool,
    asked: String,
    other: &'static str,
}

impl Results {
    /// Nothing yet.
    pub fn new(args: &Args) -> Self {
        let asked = format!("{} rounds of {} s", args.rounds, args.seconds);
        Self {
            rows: Vec::new(),
            flats: Vec::new(),
            judged: !args.quick,
            complete: false,
            asked,
            other: args.other(),
        }
    }

    /// The page for people.
    pub fn markdown(&self, machine: &Machine) -> String {
        let mut page = String::new();
        let program = if self.other == "testpmd" {
            "dpdk-testpmd"
        } else {
            "a build before"
        };
        let _ = write!(
            page,
            "`dropless` beside `{program}`: the same devices, one core a program (core {}), bursts of 64, {}.\n\
             `./dev bench` measures it again and writes this page. Both programs run in each round, one after the\n\
             other, and the next round swaps their order. testpmd runs at its best settings: `--burst=64\n\
             --mbcache=512`. dropless does its full job: a sequence number, a time and a checksum in every packet,\n\
             each verified where packets come back.\n\n",
            machine.worker, self.asked
        );
        let facts = machine
            .facts()
            .into_iter()
            .map(|(name, fact)| vec![name.to_string(), fact]);
        page += &tables::layout(&["machine", ""], facts.collect());
        if !self.rows.is_empty() {
            page += &self.figures();
        }
        if !self.flats.is_empty() {
            page += "\n## The cost per packet, as flows and streams grow\n\n\
                     64-byte frames on one core; medians. The last two columns count only the time that the worker had its core.\n\n";
            page += &table::costs(&self.flats);
        }
        page += &self.failures();
        page
    }

    fn figures(&self) -> String {
        let mut text = String::from("\n## Figures\n\n");
        let works = self.rows.iter().map(|rounds| {
            let row = rounds.row;
            vec![
                row.name.into(),
                row.work.into(),
                if self.other == "testpmd" {
                    row.beside.into()
                } else {
                    "the same".into()
                },
                format!("{} B", row.frame_size),
            ]
        });
        text += &tables::layout(&["row", "dropless", self.other, "frame"], works.collect());
        text += "\nBy the wall clock, as medians; the ratio of the medians is judged. Packets count once: when they\n\
                 have come back, or when they have gone out where nothing comes back.\n\n";
        text += &table::rates(&self.rows, self.other, self.judged);
        text += "\nPer second that a worker really had its core (\"had\": its share of the core). On a machine that is\n\
                 shared, neighbours and the hypervisor take from both programs, unevenly (\"stolen\": by the hypervisor,\n\
                 of all cores); these figures are without that. Where a program has two workers it is their mean.\n\
                 \"line there and back\": what a cache line takes from one core to the other and back, before and after each\n\
                 measurement of dropless. Where that is slow the two share no cache, and each byte that goes from one to the\n\
                 other waits for it; a hypervisor may move them while it is measured.\n\n";
        text += &table::rates_per_cpu_second(&self.rows, self.other);
        text += "\n## Loss\n\nEvery packet that dropless sent in all rounds and did not get back, and where it was lost (`far_`: as the\n\
                 reflecting process counts it). What testpmd lost includes the packets that its full rings refused.\n\n";
        text += &table::losses(&self.rows, self.other);
        text += &self.doubts();
        for rounds in self.rows.iter().filter(|rounds| rounds.row.frame_size > 64) {
            if let Some(rate) = rate(&rounds.ours) {
                let gbps = rate * f64::from(rounds.row.frame_size) * 8.0 / 1e9;
                let _ = writeln!(text, "\n`{}` is {gbps:.1} Gbps of frames.", rounds.row.name);
            }
        }
        text
    }

    /// What a reader has to know before believing the figures.
    fn doubts(&self) -> String {
        let mut text = String::new();
        for rounds in &self.rows {
            if let Some(reason) = rounds.invalid().next() {
                let (count, name) = (rounds.invalid().count(), rounds.row.name);
                let _ = writeln!(
                    text,
                    "\n`{name}`: {count} of {} rounds say of themselves: {reason}",
                    rounds.ours.len()
                );
            }
        }
        let shares = self.rows.iter().filter_map(Rounds::share_min);
        if let Some(least) = shares.min_by(f64::total_cmp).filter(|least| *least < QUIET) {
            let _ = writeln!(
                text,
                "\n**The machine was not quiet**: in one measurement a worker had only {:.0} % of its core.",
                least * 100.0
            );
        }
        text
    }

    fn failures(&self) -> String {
        let rows = self.rows.iter().map(|rounds| (rounds.row.name, &rounds.failed));
        let flats = self.flats.iter().map(|rounds| (rounds.flat.name, &rounds.failed));
        let failed = rows
            .chain(flats)
            .filter_map(|(name, failed)| Some((name, failed.as_ref()?)));
        let mut text = String::new();
        for (name, reason) in failed {
            if text.is_empty() {
                text += "\n## Not measured\n\n";
            }
            let _ = writeln!(text, "- `{name}`: {reason}");
        }
        text
    }

    fn json(&self, machine: &Machine) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|rounds| {
                json!({
                    "name": rounds.row.name, "work": rounds.row.work, "beside": rounds.row.beside,
                    "frame_size": rounds.row.frame_size, "target": rounds.target,
                    "ratio": rounds.ratio(), "ratio_per_cpu_second": rounds.ratio_per_cpu_second(),
                    "ratios": rounds.ratios(), "shortfall": rounds.shortfall(), "rounds": rounds,
                })
            })
            .collect();
        let flats: Vec<Value> = self.flats.iter().map(|rounds| {
            json!({"name": rounds.flat.name, "work": rounds.flat.work, "counts": rounds.flat.counts, "rounds": rounds})
        }).collect();
        json!({
            "version": 1, "asked": self.asked, "judged": self.judged, "complete": self.complete,
            "machine": machine.json(), "rows": rows, "flats": flats,
        })
    }

    /// Writes the JSON below cargo's target directory, and the text: into the documentation if it is complete.
    pub fn write(&self, machine: &Machine) {
        let directory = page::target().join("bench");
        let json = format!("{:#}\n", self.json(machine));
        page::write(&directory.join("testpmd.json"), &json);
        let text = self.markdown(machine);
        if self.complete {
            page::replace("testpmd", &text);
        } else {
            page::write(&directory.join("testpmd.md"), &text);
        }
    }

    /// 2: a row could not be measured; 1: a target was missed, or a packet lost that must not be; 0: all is well.
    pub fn exit_code(&self) -> ExitCode {
        let failed = |failed: &Option<String>| failed.is_some();
        if self.rows.iter().any(|rounds| failed(&rounds.failed))
            || self.flats.iter().any(|rounds| failed(&rounds.failed))
        {
            return ExitCode::from(2);
        }
        let missed = |rounds: &Rounds| match rounds.shortfall() {
            Some("NO" | "NO: invalid") => self.judged,
            shortfall => shortfall.is_some(),
        };
        ExitCode::from(u8::from(self.rows.iter().any(missed)))
    }
}
