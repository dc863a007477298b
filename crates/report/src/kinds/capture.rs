//! `capture`: frames received, and who took them.

use std::collections::BTreeSet;
use std::path::Path;

use maud::{Markup, html};
use measure::{CaptureSummary, ConsumerSummary, ExpectationResult, PortSummary, WorkerSummary, metric};

use crate::balance;
use crate::compare::metrics::{Metric, Unit, lower};
use crate::html::element::section;
use crate::html::flow::{self, End, Flow, node};
use crate::kind::{Entry, Kind, Part, Standing, Tile, Verdict};
use crate::machine;
use crate::number::{count, counted, loss, pps, time};
use crate::read::{self, ReadError};
use crate::rundir::file;
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table, bad};
use crate::terminal::{self, explanation, join};

/// How it is found and read.
pub const KIND: Entry = Entry {
    command: "capture",
    file: file::SUMMARY,
    required: &[
        "verdict",
        "reasons",
        "received",
        "captured",
        "ledger",
        "consumers",
        "duration_s",
        "ports.*.uri",
        "workers.*.core",
        "notes",
    ],
    read: |run| Ok(Box::new(read(run)?)),
    unfinished: |_| Ok(None),
    metrics: &METRICS,
};

/// How much of what came is in the ring.
const METRICS: [Metric; 1] = [lower("captured", Unit::Packets)];

/// The result in the run directory `run`.
pub fn read(run: &Path) -> Result<CaptureSummary, ReadError> {
    read::result(run, &KIND, |_| Ok(()))
}

impl Kind for CaptureSummary {
    fn entry(&self) -> Option<&'static Entry> {
        Some(&KIND)
    }

    fn verdict(&self) -> Verdict {
        Verdict::of_run(self, &outcome(self))
    }

    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "rx_missed" => Some(machine::missed(&self.ports) as f64),
            _ => metric::figure(self, name),
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let value = |name| self.figure(name);
        let lost_most = self.consumers.iter().map(|consumer| consumer.lost).max();
        Tile::known([
            ("received", value("rate_rx").map(pps)),
            ("captured", Some(count(self.captured))),
            (
                "lost before the ring",
                self.ledger.share(self.lost_before_ring()).map(loss),
            ),
            (
                "most lost by a consumer",
                lost_most.filter(|lost| *lost > 0).map(count),
            ),
            ("lasted", Some(time(self.duration_s * 1e9))),
        ])
    }

    fn terminal(&self, style: &Style) -> String {
        join(&[
            settings(self).terminal("Settings", style),
            terminal::carried(self, style),
            explanation::render(self.explanation.as_ref(), style),
            frames(self, style),
            takers(self, style),
            self.headline(style),
        ])
    }

    fn headline(&self, style: &Style) -> String {
        let paint = Standing::of_exit(self.exit_code()).paint();
        terminal::headline(self, &outcome(self), paint, style)
    }

    fn page(&self, named: &str, id: &str) -> Markup {
        html! {
            (section(&format!("Where each frame went{named}"), &flow::svg(&of_capture(self), id)))
            (section(&format!("Consumers{named}"), &takers_html(self)))
            (section(&format!("Settings{named}"), &settings(self).html("Of this capture")))
            (machine::balance_html(self, named))
        }
    }

    fn parts(&self) -> Vec<Part> {
        Part::of_workers(&self.workers)
    }

    fn expectations(&self) -> &[ExpectationResult] {
        &self.expectations
    }

    fn notes(&self) -> &[measure::Note] {
        &self.notes
    }

    fn ports(&self) -> &[PortSummary] {
        &self.ports
    }

    fn workers(&self) -> &[WorkerSummary] {
        &self.workers
    }
}

/// Consumers that the one sentence names; the table has all.
const NAMED_MAX: usize = 3;

/// The one sentence about a capture. What is lost before the ring nobody gets; what a consumer loses others may have, so
/// that the two have no sum.
fn outcome(summary: &CaptureSummary) -> String {
    let came = counted(summary.ledger.entered, "frame");
    let captured = count(summary.captured);
    if summary.lost() == 0 {
        return format!("{came} came, {captured} captured, none lost");
    }
    let before = match summary.lost_before_ring() {
        0 => "none".to_owned(),
        lost => count(lost),
    };
    let mut losers: Vec<_> = summary.consumers.iter().filter(|one| one.lost > 0).collect();
    losers.sort_by_key(|one| std::cmp::Reverse(one.lost));
    let named = losers.iter().take(NAMED_MAX);
    let mut losses: Vec<String> = named
        .map(|one| format!("{} lost {}", one.name, count(one.lost)))
        .collect();
    let more = losers.len().saturating_sub(NAMED_MAX) as u64;
    losses.extend((more > 0).then(|| format!("and {} lost some", counted(more, "other"))));
    let text = format!("{came} came, {captured} captured, {before} lost before the ring");
    if losses.is_empty() {
        return text;
    }
    format!("{text}; {}", losses.join(", "))
}

fn frames(summary: &CaptureSummary, style: &Style) -> String {
    let mut table = Table::section("Frames", &[]);
    let lasting = Cell::left(format!("for {}", time(summary.duration_s * 1e9))).paint(Paint::Dim);
    let number = |packets: u64| Cell::right(count(packets));
    let rate = Cell::right(pps(summary.rate_rx_pps));
    table.item("came", [number(summary.ledger.entered)]);
    table.item("received", [number(summary.received), rate, lasting]);
    table.item("captured", [number(summary.captured)]);
    if summary.late > 0 {
        table.item("  out of order", [bad(summary.late)]);
    }
    balance::charges(&summary.ledger, &mut table);
    table.render(style)
}

/// What was asked for, and whose clock stamped the packets.
fn settings(summary: &CaptureSummary) -> Sheet<(&'static str, String)> {
    let clocks: BTreeSet<&str> = summary.stamped_by.values().map(String::as_str).collect();
    let clocks: Vec<&str> = clocks.into_iter().collect();
    let all = [
        ("filter", summary.filter.clone()),
        (
            "sample",
            summary
                .sampled_one_in
                .map(|flows| format!("1 of {} flows", count(flows))),
        ),
        (
            "stamped by",
            Some(clocks.join(", ")).filter(|clocks| !clocks.is_empty()),
        ),
    ];
    Sheet::of(all.into_iter().filter_map(|(name, value)| Some((name, value?))))
        .name("setting", |(name, _)| (*name).to_owned())
        .words("value", |(_, value)| value.clone())
        .short("")
}

fn consumers(summary: &CaptureSummary) -> Sheet<&ConsumerSummary> {
    Sheet::of(&summary.consumers)
        .name("consumer", |consumer| {
            let kind = if consumer.lossless { "lossless" } else { "lossy" };
            let believed = if consumer.implausible {
                ", not believed"
            } else {
                ""
            };
            format!("{} ({kind}{believed})", consumer.name)
        })
        .number("offered", |consumer| count(consumer.offered))
        .number("taken", |consumer| count(consumer.taken))
        .cell("lost", |consumer| bad(consumer.lost))
        .number("left", |consumer| count(consumer.left))
        .number("most segments behind", |consumer| count(consumer.behind_max))
}

/// What is in files, a line each.
fn files(summary: &CaptureSummary) -> Vec<String> {
    let Some(files) = &summary.files else {
        return Vec::new();
    };
    let kept = match files.kept {
        1 if files.files > 1 => ", of which the last one is kept:".to_owned(),
        kept if (1..files.files).contains(&kept) => format!(", of which the last {kept} are kept:"),
        _ => ",".to_owned(),
    };
    let names = if files.kept > 1 {
        format!("{} to {}", files.oldest, files.path)
    } else {
        files.path.clone()
    };
    let mut lines = vec![format!(
        "{} in {}{kept} {names}",
        counted(files.packets, "packet"),
        counted(files.files, "file"),
    )];
    if files.compressed > 0 {
        lines.push(format!(
            "{} compressed: {} of {} bytes",
            counted(files.compressed, "file"),
            count(files.compressed_bytes),
            count(files.bytes)
        ));
    }
    lines
}

fn takers(summary: &CaptureSummary, style: &Style) -> String {
    let lines: Vec<String> = files(summary).iter().map(|line| format!("  {line}\n")).collect();
    consumers(summary).terminal("Consumers", style) + &lines.concat()
}

fn takers_html(summary: &CaptureSummary) -> Markup {
    html! {
        (consumers(summary).html("Whoever took packets out of the ring; each line adds up by itself"))
        @for line in files(summary) { p { (line) } }
    }
}

/// Where each frame went; as far as its end, where one consumer was there all the time.
fn of_capture(summary: &CaptureSummary) -> Flow {
    let source = node("came", summary.ledger.entered, End::Plain, "frames");
    let left = node("captured", summary.captured, End::Good, "in the ring");
    let further = match summary.consumers.as_slice() {
        [only] if only.offered == summary.captured => vec![
            node("taken", only.taken, End::Good, &format!("by {}", only.name)),
            node("lost", only.lost, End::Lost, &format!("by {}", only.name)),
            node("left", only.left, End::Plain, &format!("by {}", only.name)),
        ],
        _ => Vec::new(),
    };
    Flow {
        further,
        ..balance::flow(&summary.ledger, source, left, "lost")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::Validity;

    use crate::terminal::painted;

    fn consumer(name: &str, (taken, lost): (u64, u64)) -> ConsumerSummary {
        ConsumerSummary {
            name: name.into(),
            offered: taken + lost,
            taken,
            lost,
            ..ConsumerSummary::default()
        }
    }

    /// 100 frames of which 60 are in the ring.
    fn lossy(consumers: Vec<ConsumerSummary>) -> CaptureSummary {
        CaptureSummary {
            verdict: Validity::Valid,
            captured: 60,
            ledger: measure::Balance::of(100, 60, [(measure::Place::named("rx_missed"), 40)]),
            consumers,
            ..CaptureSummary::default()
        }
    }

    #[test]
    fn what_is_lost_before_the_ring_and_by_a_consumer_is_told_apart() {
        let said = |consumers: &[(&str, u64)]| {
            let all = consumers
                .iter()
                .map(|(name, lost)| consumer(name, (60 - lost, *lost)));
            outcome(&lossy(all.collect()))
        };
        let came = "100 frames came, 60 captured, 40 lost before the ring";
        assert_eq!(said(&[("files", 0)]), came);
        assert_eq!(
            said(&[("files", 0), ("count", 7)]),
            format!("{came}; count lost 7")
        );
        assert_eq!(
            said(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]),
            format!("{came}; e lost 5, d lost 4, c lost 3, and 2 others lost some")
        );
        let whole = CaptureSummary {
            captured: 100,
            ledger: measure::Balance::of(100, 100, []),
            ..lossy(vec![consumer("count", (90, 10))])
        };
        assert_eq!(
            outcome(&whole),
            "100 frames came, 100 captured, none lost before the ring; count lost 10"
        );
        assert_eq!(whole.exit_code(), 1, "somebody did not get all");
    }

    #[test]
    fn the_page_has_who_took_packets_and_what_was_asked_for() {
        let files = measure::FileSummary {
            path: "a/b_4.pcapng".into(),
            files: 4,
            kept: 2,
            oldest: "a/b_3.pcapng".into(),
            packets: 50,
            ..measure::FileSummary::default()
        };
        let summary = CaptureSummary {
            filter: Some("udp and <odd>".into()),
            sampled_one_in: Some(10),
            stamped_by: [("ring".to_owned(), "tsc".to_owned())].into(),
            files: Some(files),
            ..lossy(vec![consumer("files", (50, 10))])
        };
        let page = summary.page("", "flow").into_string();
        for words in [
            "files (lossy)",
            "udp and &lt;odd&gt;",
            "1 of 10 flows",
            ">tsc<",
            "50 packets in 4 files, of which the last 2 are kept: a/b_3.pcapng to a/b_4.pcapng",
            "by files",
        ] {
            assert!(page.contains(words), "no {words} in {page}");
        }
        let text = summary.terminal(&Style::plain());
        let numbers = text
            .split("Frames")
            .nth(1)
            .and_then(|text| text.split("Consumers").next());
        assert!(
            !numbers.unwrap().contains("tsc"),
            "settings are no numbers: {text}"
        );
    }

    #[test]
    fn what_failed_an_expectation_is_not_painted_as_good() {
        let style = Style {
            color: true,
            ..Style::plain()
        };
        let with = |met: bool| CaptureSummary {
            verdict: Validity::Valid,
            expectations: vec![ExpectationResult {
                met,
                ..ExpectationResult::default()
            }],
            ..CaptureSummary::default()
        };
        let is_painted = |summary: &CaptureSummary, paint: Paint| {
            let line = painted(&format!("VALID: {}", outcome(summary)), paint, &style);
            summary.headline(&style).starts_with(&line)
        };
        assert!(is_painted(&with(true), Paint::Good));
        assert!(is_painted(&with(false), Paint::Warn));
    }
}
