//! `dropless filter test`: what rules do with the packets of a file.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use capture::input::{LinkType, Packet};
use clap::ValueHint;
use dissect::{Clock, Printer, Show, TimeFormat};
use report::number::{count, counted};
use report::out::Console;
use report::style::Style;
use report::table::{Cell, Table};
use rules::limit::Limiter;
use rules::{Malformed, RuleSet, Tables, Verdict};
use serde::Serialize;

use super::times::{self, Times};
use super::why::Why;
use crate::plan::{self, nonzero_count, optional};
use crate::run::capture_input::CaptureInput;
use crate::run::output::Output;
use crate::run::signals::Interrupt;

/// Version of what `--json` prints.
const VERSION: u32 = 1;

/// Tell what rules do with each packet of a capture file; no interface is touched
#[derive(clap::Args, Debug)]
#[command(after_help = "Rates go by the times in the file.
Exit codes: 0 every packet was judged; 2 the rules or the file cannot be read.")]
pub struct Args {
    /// Rule file
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    rules: PathBuf,
    /// Capture file, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// End after so many packets
    #[arg(long, short = 'c', value_name = "N")]
    count: Option<String>,
    /// Explain the verdict of packet N, rule by rule; the first is 1
    #[arg(long, value_name = "N", conflicts_with_all = ["count", "json", "summary"])]
    why: Option<String>,
    /// No line for each packet
    #[arg(long)]
    summary: bool,
    /// Print JSON: one object of all counts
    #[arg(long)]
    json: bool,
}

/// What rules met.
#[derive(Serialize)]
struct Tested {
    version: u32,
    packets: u64,
    bytes: u64,
    allowed: u64,
    denied: u64,
    /// Packets whose headers were cut off when they were captured.
    not_judged: u64,
    /// Packets without a time, which rates took for that of the packet before; 0 where no rule has a rate.
    without_time: u64,
    rules: Vec<Met>,
    default: Met,
    malformed: Vec<Reason>,
}

#[derive(Clone, Serialize)]
struct Met {
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    line: Option<u32>,
    rule: String,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Reason {
    reason: &'static str,
    packets: u64,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let set = plan::rules::read(&args.rules)?;
    let tables = Tables::new(&set)?;
    let wanted = optional(args.count.as_deref(), "--count", nonzero_count)?;
    let explained = optional(args.why.as_deref(), "--why", nonzero_count)?;
    let interrupt = Interrupt::install()?;
    let is_over = interrupt.clone();
    let mut reader = CaptureInput::open(&args.file)?.reader(move || is_over.is_set())?;
    let mut test = Test::new(&set, &tables, !args.summary && !args.json && explained.is_none());
    let mut why = Why::new(&set);
    let mut at = 0;
    let read = loop {
        if interrupt.is_set() || wanted == Some(at) || test.output.is_closed() {
            break Ok(());
        }
        let packet = match reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break Ok(()),
            Err(_) if interrupt.is_set() => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        if packet.interface.link != LinkType::Ethernet {
            break Err(anyhow!(
                "{}: packet {} is not of Ethernet, and rules are for Ethernet frames",
                args.file.display(),
                at + 1
            ));
        }
        at += 1;
        match explained {
            None => test.take(&packet)?,
            // Earlier packets count for rates.
            Some(wanted) if wanted > at => why.pass(&packet),
            Some(_) => return why.explain(&packet).map(|()| 0),
        }
    };
    if let Some(wanted) = explained {
        read?;
        bail!(
            "--why {wanted}: {} has {}",
            args.file.display(),
            counted(at, "packet")
        );
    }
    // What was read before an error is told first, if anything was; in JSON the error is the one object.
    if read.is_ok() || (at > 0 && !args.json) {
        test.output.flush()?;
        let tested = test.finish();
        let console = Console::json_or_text(args.json);
        console.either(&tested, &tested.text(&console.style()))?;
    }
    read.map(|()| 0)
}

/// Rules at work.
struct Test<'r> {
    tables: &'r Tables,
    limiter: Limiter,
    times: Times,
    output: Output,
    printer: Option<Printer>,
    tested: Tested,
}

impl<'r> Test<'r> {
    fn new(set: &RuleSet, tables: &'r Tables, has_lines: bool) -> Self {
        let met = |rule: &rules::Rule| Met {
            file: set.place(rule).file.to_owned(),
            line: Some(set.place(rule).line),
            rule: rule.text.clone(),
            packets: 0,
            bytes: 0,
        };
        Self {
            tables,
            limiter: Limiter::new(plan::rules::GROUPS, Limiter::seed()),
            times: Times::new(set),
            output: Output::new(),
            printer: has_lines
                .then(|| Printer::new(Clock::new(TimeFormat::Clock, false), Show { ethernet: false })),
            tested: Tested {
                version: VERSION,
                packets: 0,
                bytes: 0,
                allowed: 0,
                denied: 0,
                not_judged: 0,
                without_time: 0,
                rules: set.rules.iter().map(met).collect(),
                default: Met {
                    file: String::new(),
                    line: None,
                    rule: format!("default {}", set.default.word()),
                    packets: 0,
                    bytes: 0,
                },
                malformed: Malformed::ALL
                    .map(|reason| Reason {
                        reason: reason.name(),
                        packets: 0,
                    })
                    .into(),
            },
        }
    }

    fn take(&mut self, packet: &Packet<'_>) -> anyhow::Result<()> {
        let len = packet.original_len as usize;
        let found = rules::look(packet.data, len, self.tables.reasons);
        let time_ns = self.times.of(packet);
        let tested = &mut self.tested;
        tested.packets += 1;
        tested.bytes += u64::from(packet.original_len);
        let said = match &found {
            found if rules::is_cut(packet.data, len, found) => {
                tested.not_judged += 1;
                "cut off".to_owned()
            }
            found => {
                if let Err(reason) = found {
                    tested.malformed[*reason as usize].packets += 1;
                }
                let decision = self.tables.decide(found, &self.limiter, time_ns);
                *match decision.verdict {
                    Verdict::Allow => &mut tested.allowed,
                    Verdict::Deny => &mut tested.denied,
                } += 1;
                let met = match decision.rule {
                    Some(rule) => &mut tested.rules[usize::from(rule)],
                    None => &mut tested.default,
                };
                met.packets += 1;
                met.bytes += u64::from(packet.original_len);
                let by = met
                    .line
                    .map_or_else(|| "default".to_owned(), |line| format!("{}:{line}", met.file));
                format!("{} {by}", decision.verdict.word())
            }
        };
        if let Some(printer) = &mut self.printer {
            self.output
                .text
                .put(&format!("{:>6} {said:<24} ", self.tested.packets));
            printer.line(&mut self.output.text, packet);
        }
        self.output.look()
    }

    fn finish(mut self) -> Tested {
        self.tested.without_time = self.times.missing();
        self.tested.malformed.retain(|reason| reason.packets > 0);
        self.tested
    }
}

impl Tested {
    fn text(&self, style: &Style) -> String {
        let mut table = Table::section("rules", &[">packets", ">bytes", "rule"]);
        for met in self.rules.iter().chain([&self.default]) {
            let name = met
                .line
                .map(|line| format!("{}:{line}", met.file))
                .unwrap_or_default();
            let cells = [
                Cell::right(count(met.packets)),
                Cell::right(count(met.bytes)),
                Cell::left(&met.rule),
            ];
            table.item(&name, cells);
        }
        let mut text = table.render(style);
        if !self.malformed.is_empty() {
            let mut table = Table::section("malformed", &[">packets"]);
            for Reason { reason, packets } in &self.malformed {
                table.item(reason, [Cell::right(count(*packets))]);
            }
            text += &table.render(style);
        }
        let cut = match self.not_judged {
            0 => String::new(),
            cut => format!(
                "; {} not judged: its headers were cut off when it was captured",
                counted(cut, "packet")
            ),
        };
        text + &format!(
            "{}: {} allowed, {} denied{cut}{}\n",
            counted(self.packets, "packet"),
            count(self.allowed),
            count(self.denied),
            times::told(self.without_time)
        )
    }
}
