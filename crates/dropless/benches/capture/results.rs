//! What was measured, as tables, and as an exit code.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::SIZES;
use crate::costs::Costs;
use crate::disk::Wrote;
use crate::flow::Flow;
use crate::machine::{Machine, stolen, stolen_share};
use crate::scattered::Reads;
use crate::statistics::{median, spread};
use crate::tables::{dash, layout, number};
use crate::tools::{Link, Reached};

/// To the known pipeline, by the core.
const TO_KNOWN: f64 = 2.0;
/// To the bare costs, at most.
const TO_BARE: f64 = 1.5;
/// Headers by the worklist, to headers out of buffers that lie anywhere.
const TO_SCATTERED: f64 = 2.5;
/// To a plain writer, and the share of a core that it may take.
const TO_PLAIN: f64 = 0.9;
const CORE_SHARE: f64 = 0.2;
/// `read`, to tcpdump.
const TO_TCPDUMP: f64 = 3.0;

/// Everything that was measured.
pub struct Results {
    /// Rounds asked for.
    pub rounds: u32,
    /// What a packet costs.
    pub costs: Vec<Costs>,
    /// What reading it costs.
    pub reads: Vec<Reads>,
    /// Highest rates from four ports.
    pub flows: Vec<Flow>,
    /// Ours, and the plain writer's.
    pub disk: Vec<(Wrote, Wrote)>,
    /// Highest rates.
    pub tools: Vec<(&'static str, Link, Reached)>,
    /// Seconds of ours, and of tcpdump.
    pub read: Vec<(f64, f64)>,
    /// What could not be measured, and why.
    pub failed: Vec<(&'static str, String)>,
    stolen_before: (u64, u64),
}

impl Results {
    /// Nothing yet.
    pub fn new(rounds: u32) -> Self {
        Self {
            rounds,
            costs: Vec::new(),
            reads: Vec::new(),
            flows: Vec::new(),
            disk: Vec::new(),
            tools: Vec::new(),
            read: Vec::new(),
            failed: Vec::new(),
            stolen_before: stolen(),
        }
    }

    /// Everything, for programs.
    pub fn json(&self, machine: &Machine) -> Value {
        json!({
            "version": 1, "rounds": self.rounds, "machine": machine.json(), "costs": self.costs, "reads": self.reads, "flows": self.flows,
            "disk": self.disk, "tools": self.tools, "read": self.read, "failed": self.failed,
        })
    }

    /// The median of a figure over all rounds at this size.
    fn cost(&self, size: usize, figure: fn(&Costs) -> f64) -> Option<f64> {
        let costs = self.costs.iter().filter(|costs| costs.size == size);
        median(&costs.map(figure).collect::<Vec<_>>())
    }

    fn reading(&self, size: usize, figure: fn(&Reads) -> f64) -> Option<f64> {
        let reads = self.reads.iter().filter(|reads| reads.size == size);
        median(&reads.map(figure).collect::<Vec<_>>())
    }

    /// The page's part.
    pub fn markdown(&self, machine: &Machine) -> String {
        let mut text = format!("`./dev bench capture`, medians of {} rounds.\n\n", self.rounds);
        let facts = machine.facts().into_iter();
        let facts = facts.map(|(name, fact)| vec![name.to_owned(), fact]);
        text += &layout(&["machine", ""], facts.collect());
        let _ = writeln!(
            text,
            "\nThe hypervisor gave {:.1} % of the time of all cores to others meanwhile.\n",
            stolen_share(self.stolen_before) * 100.0
        );
        text += &layout(&["target", "reached", "asked", "met"], self.targets());
        text += &self.cost_table();
        text += &self.flow_table();
        text += &self.read_table();
        text += &self.disk_table();
        text += &self.tool_table();
        for (name, reason) in &self.failed {
            let _ = writeln!(text, "\nNot measured: {name}: {reason}");
        }
        text
    }

    /// Every target: what it is, what was reached, what was asked for, and whether that was met.
    fn judged(&self) -> Vec<(&'static str, f64, String, bool)> {
        let mut all = Vec::new();
        let mut at_least = |name, reached: Option<f64>, least: f64| {
            all.extend(reached.map(|reached| (name, reached, format!(">= {least}"), reached >= least)));
        };
        at_least(
            "merge and copy of 4 queues, 64 bytes: packets a second and core, to the known pipeline",
            self.cost(64, |costs| costs.ours_per_core() / costs.known_per_core()),
            TO_KNOWN,
        );
        at_least(
            "headers by worklist, 64 bytes: to buffers that lie anywhere",
            self.reading(64, |reads| reads.shuffled / reads.worklist),
            TO_SCATTERED,
        );
        let disk =
            |figure: fn(&(Wrote, Wrote)) -> f64| median(&self.disk.iter().map(figure).collect::<Vec<_>>());
        at_least(
            "to disk: to a plain writer",
            disk(|(ours, plain)| ours.rate / plain.rate),
            TO_PLAIN,
        );
        let best = |link, ours: bool| {
            let all = self
                .tools
                .iter()
                .filter(|(name, over, _)| *over == link && name.starts_with("dropless") == ours);
            all.filter_map(|(_, _, reached)| reached.lossless)
                .reduce(f64::max)
        };
        for (link, name) in [
            (
                Link::Veth,
                "highest rate without loss over veth: to the best other tool",
            ),
            (
                Link::Memif,
                "highest rate without loss over memif: to the other tool",
            ),
        ] {
            at_least(
                name,
                best(link, true)
                    .zip(best(link, false))
                    .map(|(ours, theirs)| ours / theirs),
                1.0,
            );
        }
        let read: Vec<f64> = self.read.iter().map(|(ours, tcpdump)| tcpdump / ours).collect();
        at_least(
            "read, 10 million packets: to tcpdump -n -r",
            median(&read),
            TO_TCPDUMP,
        );
        let mut at_most = |name, reached: Option<f64>, most: f64| {
            all.extend(reached.map(|reached| (name, reached, format!("<= {most}"), reached <= most)));
        };
        at_most(
            "merge and copy, 64 bytes: to the bare merge and copy",
            self.cost(64, Costs::of_bare),
            TO_BARE,
        );
        at_most(
            "to disk: share of a core",
            disk(|(ours, _)| ours.core_share),
            CORE_SHARE,
        );
        all
    }

    fn targets(&self) -> Vec<Vec<String>> {
        let rows = self.judged().into_iter().map(|(name, reached, asked, met)| {
            let met = if met { "yes" } else { "NO" };
            vec![name.into(), format!("{reached:.2}"), asked, met.into()]
        });
        rows.collect()
    }

    fn cost_table(&self) -> String {
        if self.costs.is_empty() {
            return String::new();
        }
        let rows = SIZES.iter().map(|size| {
            let ns = |figure: fn(&Costs) -> f64| number(self.cost(*size, figure), 1);
            let mpps = |figure: fn(&Costs) -> f64| number(self.cost(*size, figure).map(|rate| rate / 1e6), 2);
            vec![
                size.to_string(),
                mpps(Costs::ours_per_core),
                mpps(Costs::known_per_core),
                mpps(Costs::known_summed),
                ns(|costs| costs.ours),
                ns(|costs| costs.receive),
                ns(Costs::merge_and_copy),
                ns(|costs| costs.bare_merge),
                ns(|costs| costs.bare_copy),
                format!(
                    "{} / {} / {}",
                    ns(|costs| costs.known_receive),
                    ns(|costs| costs.known_merge),
                    ns(|costs| costs.known_copy)
                ),
            ]
        });
        let head = [
            "bytes",
            "ours, Mpps a core",
            "known, Mpps a core",
            "known, all stages on one core",
            "ours, ns",
            "receive, ns",
            "merge and copy, ns",
            "bare merge, ns",
            "bare copy, ns",
            "known stages, ns",
        ];
        format!(
            "\n### What a packet costs, from four ports\n\n\
             Four ring ports with 32 frames each at every look; into a ring of 64 MiB. *Ours* receives, merges by the packet and lays\n\
             the packets into the ring as pcapng, on one core. The *known* pipeline is a receiving core a port, one that merges bursts,\n\
             and one that copies: its slowest stage decides, divided by its six cores; what handing over between cores costs is left\n\
             out in its favour. The *bare* costs are a choice of the earliest of four stamps a packet, and the copy of a received\n\
             frame with an entry in a list.\n\n{}",
            layout(&head, rows.collect())
        )
    }

    fn read_table(&self) -> String {
        if self.reads.is_empty() {
            return String::new();
        }
        let rows = SIZES.iter().map(|size| {
            let ns = |figure: fn(&Reads) -> f64| number(self.reading(*size, figure), 1);
            vec![
                size.to_string(),
                ns(|reads| reads.worklist),
                ns(|reads| reads.lengths),
                ns(|reads| reads.scattered),
                ns(|reads| reads.shuffled),
            ]
        });
        let head = [
            "bytes",
            "ring, by worklist",
            "ring, by lengths",
            "buffers, in order",
            "buffers, anywhere",
        ];
        format!(
            "\n### Does contiguous matter?\n\n\
             Nanoseconds to read a packet's first 42 bytes, out of 30,000 packets that no cache holds. *Anywhere* is the order that a\n\
             pool's buffers have after some use. This machine has one NUMA node.\n\n{}",
            layout(&head, rows.collect())
        )
    }

    fn flow_table(&self) -> String {
        if self.flows.is_empty() {
            return String::new();
        }
        let rows = SIZES.iter().filter_map(|size| {
            let of = || self.flows.iter().filter(|flow| flow.size == *size);
            let rates: Vec<f64> = of().map(|flow| flow.rate / 1e6).collect();
            let rate = median(&rates)?;
            let (low, high) = spread(&rates)?;
            let senders = of().filter(|flow| flow.is_sender).count();
            Some(vec![
                size.to_string(),
                format!("{rate:.2}"),
                format!("{low:.2} .. {high:.2}"),
                // On the wire each frame has 20 bytes more: preamble, start of frame, gap.
                format!("{:.1}", rate * (size + 20) as f64 * 8.0 / 1e3),
                if 2 * senders > of().count() {
                    "the sender".into()
                } else {
                    "the capture".into()
                },
            ])
        });
        let head = [
            "bytes",
            "without loss, Mpps",
            "range",
            "Gbit/s of Ethernet",
            "limited by",
        ];
        format!(
            "\n### The highest rate without loss, from four ports\n\n\
             One core sends to four ring ports with room for 4096 frames each, the other captures them into a ring of 64 MiB, by\n\
             the packet in the order of time: {} halvings of the range, a rate counts where two of three trials of a tenth of a second\n\
             lost nothing.\n\n{}",
            crate::flow::STEPS,
            layout(&head, rows.collect())
        )
    }

    fn disk_table(&self) -> String {
        if self.disk.is_empty() {
            return String::new();
        }
        let of =
            |figure: fn(&(Wrote, Wrote)) -> f64| median(&self.disk.iter().map(figure).collect::<Vec<_>>());
        let row = |name: &str, rate: Option<f64>, share: Option<f64>| {
            let share = share.map(|share| share * 100.0);
            vec![
                name.into(),
                number(rate.map(|rate| rate / 1e9), 2),
                number(share, 1),
            ]
        };
        let rows = vec![
            row(
                "files of a capture",
                of(|(ours, _)| ours.rate),
                of(|(ours, _)| ours.core_share),
            ),
            row("fio", of(|(_, fio)| fio.rate), of(|(_, fio)| fio.core_share)),
        ];
        format!(
            "\n### To disk\n\n2 GiB into a new file, past the page cache, by io_uring, without fsync: fio in writes of 1 MiB, 8 at once, into room that it keeps before (fallocate).\n\n{}",
            layout(&["writer", "GB/s", "% of a core"], rows)
        )
    }

    fn tool_table(&self) -> String {
        if self.tools.is_empty() {
            return String::new();
        }
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut names: Vec<&str> = self.tools.iter().map(|(name, _, _)| *name).collect();
        names.dedup();
        for name in names {
            let of = |figure: fn(&Reached) -> Option<f64>| {
                let all = self.tools.iter().filter(|(other, _, _)| *other == name);
                median(
                    &all.filter_map(|(_, _, reached)| figure(reached))
                        .collect::<Vec<_>>(),
                )
            };
            let mpps = |rate: Option<f64>| number(rate.map(|rate| rate / 1e6), 3);
            let lost =
                of(|reached| Some(reached.flood.lost as f64 / reached.flood.sent.max(1) as f64 * 100.0));
            let all: Vec<f64> = self
                .tools
                .iter()
                .filter(|(other, _, _)| *other == name)
                .filter_map(|(_, _, reached)| reached.lossless)
                .collect();
            let range = spread(&all).map_or_else(dash, |(low, high)| {
                format!("{:.3} .. {:.3}", low / 1e6, high / 1e6)
            });
            let is_sender = of(|reached| Some(f64::from(u8::from(reached.is_sender)))) > Some(0.5);
            rows.push(vec![
                name.into(),
                mpps(of(|reached| reached.lossless)),
                range,
                if is_sender {
                    "the sender".into()
                } else {
                    "the tool".into()
                },
                mpps(of(|reached| Some(reached.flood.rate))),
                number(lost, 2),
            ]);
        }
        let head = [
            "tool",
            "without loss, Mpps",
            "range",
            "limited by",
            "flood, Mpps",
            "lost in it, %",
        ];
        format!(
            "\n### Beside other tools\n\n64-byte frames for half a second, from one core into a file by another; the highest rate at which every frame is in\n\
             the file. tcpdump and netsniff-ng have 64 MiB of buffer, as dropless has.\n\n{}",
            layout(&head, rows)
        )
    }

    /// 2: something could not be measured; 1: a target was missed; 0: all is well.
    pub fn exit_code(&self) -> ExitCode {
        if !self.failed.is_empty() {
            return ExitCode::from(2);
        }
        ExitCode::from(u8::from(self.judged().iter().any(|(_, _, _, met)| !met)))
    }
}
