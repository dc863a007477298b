//! What was measured, as tables, and as an exit code.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::classify::Cost;
use crate::contest::{Contest, Filter};
use crate::flooded::Flooded;
use crate::guarded::Guarded;
use crate::machine::{Machine, stolen, stolen_share};
use crate::reload::Reload;
use crate::rounds::Rounds;
use crate::statistics::median;
use crate::tables::layout;

mod tables;

/// To xdp-filter, packets a second and core; and to the smallest program, where that does not run.
const TO_XDP_FILTER: f64 = 1.2;
const TO_HASH: f64 = 0.9;
/// To nftables and iptables with 50 rules.
const TO_NETFILTER: f64 = 3.0;
/// To the time of one rule.
const TO_ONE: [(&str, f64); 3] = [
    ("50 prefixes", 1.5),
    ("10,000 prefixes", 2.0),
    ("500,000 prefixes", 4.0),
];
/// What a reload of half a million prefixes may take, and cost in any tenth of a second.
const RELOAD_S: f64 = 2.0;
const DIP: f64 = 0.05;
/// From the first packet of a flood to its drop.
const GUARD_S: f64 = 1.0;

/// Rows of the wire.
pub const ONE_DENY: &str = "1 rule, all dropped";
pub const ONE_ALLOW: &str = "1 rule, all pass";
pub const LAST: &str = "50 rules, the last one meets";
pub const RANDOM: &str = "50 rules, any one meets";
pub const PREFIXES: [&str; 4] = ["1 rule", TO_ONE[0].0, TO_ONE[1].0, TO_ONE[2].0];

/// Everything that was measured.
pub struct Results {
    rounds: u32,
    /// On the wire.
    pub contests: Vec<Contest>,
    /// Beside testpmd.
    pub forward: Vec<Rounds>,
    /// In user space.
    pub costs: Vec<Cost>,
    pub reloads: Vec<Reload>,
    pub guards: Vec<Guarded>,
    pub floods: Vec<Flooded>,
    /// What could not be measured, and why.
    pub failed: Vec<(String, String)>,
    stolen_before: (u64, u64),
}

/// A target: what it is, what was reached, what was asked for, and whether that was met.
struct Target {
    name: String,
    reached: String,
    asked: String,
    met: &'static str,
}

impl Results {
    /// Nothing yet.
    pub fn new(rounds: u32) -> Self {
        Self {
            rounds,
            contests: Vec::new(),
            forward: Vec::new(),
            costs: Vec::new(),
            reloads: Vec::new(),
            guards: Vec::new(),
            floods: Vec::new(),
            failed: Vec::new(),
            stolen_before: stolen(),
        }
    }

    /// Something could not be measured.
    pub fn fail(&mut self, what: &str, reason: &str) {
        let first = reason.lines().next().unwrap_or_default();
        eprintln!("bench: {what}: {reason}");
        self.failed.push((what.into(), first.chars().take(300).collect()));
    }

    /// Everything, for programs.
    pub fn json(&self, machine: &Machine) -> Value {
        json!({
            "version": 1, "rounds": self.rounds, "machine": machine.json(), "contests": self.contests, "forward": self.forward,
            "tables": self.costs, "reloads": self.reloads, "guards": self.guards, "floods": self.floods, "failed": self.failed,
        })
    }

    fn of(&self, row: &str, filter: Filter, figure: impl Fn(&Contest) -> Option<f64>) -> Option<f64> {
        let all = self
            .contests
            .iter()
            .filter(|contest| contest.row == row && contest.filter == filter);
        median(&all.filter_map(figure).collect::<Vec<_>>())
    }

    fn per_core(&self, row: &str, filter: Filter) -> Option<f64> {
        self.of(row, filter, |contest| Some(contest.flood.per_core()))
    }

    fn factor(&self, row: &str, to: Filter) -> Option<f64> {
        Some(self.per_core(row, Filter::Dropless)? / self.per_core(row, to)?)
    }

    /// The fastest of these.
    fn fastest(&self, row: &str, of: impl Fn(Filter) -> bool) -> Option<Filter> {
        let all = self
            .contests
            .iter()
            .filter(|contest| contest.row == row && of(contest.filter));
        let all = all.filter_map(|contest| Some((contest.filter, self.per_core(row, contest.filter)?)));
        all.max_by(|one, other| one.1.total_cmp(&other.1))
            .map(|(filter, _)| filter)
    }

    fn targets(&self) -> Vec<Target> {
        let mut all = Vec::new();
        let mut judge = |name: String, reached: Option<f64>, (asked, most): (f64, bool), unit: &str| {
            let Some(reached) = reached else { return };
            let met = if most { reached <= asked } else { reached >= asked };
            let sign = if most { "<=" } else { ">=" };
            all.push(Target {
                name,
                reached: format!("{reached:.2}{unit}"),
                asked: format!("{sign} {asked}{unit}"),
                met: if met { "yes" } else { "NO" },
            });
        };
        let to_filter = self.factor(ONE_DENY, Filter::XdpTools);
        judge(
            "XDP, 1 rule, all dropped: packets a second and core, to xdp-filter".into(),
            to_filter,
            (TO_XDP_FILTER, false),
            "",
        );
        if to_filter.is_none() {
            let reached = self.factor(ONE_DENY, Filter::Hash);
            judge(
                "XDP, 1 rule, all dropped: to the smallest program".into(),
                reached,
                (TO_HASH, false),
                "",
            );
        }
        for row in [LAST, RANDOM] {
            for (what, of) in [
                ("nftables", Filter::is_nftables as fn(Filter) -> bool),
                ("iptables-nft", Filter::is_iptables),
            ] {
                let Some(fastest) = self.fastest(row, of) else {
                    continue;
                };
                let name = format!("XDP, {row}: to {what} at its fastest ({})", fastest.name());
                judge(name, self.factor(row, fastest), (TO_NETFILTER, false), "");
            }
        }
        let ns = |row| self.of(row, Filter::Dropless, |contest| Some(contest.flood.ns()));
        let alone = |row| self.of(row, Filter::Dropless, |contest| contest.program_ns);
        for (row, most) in TO_ONE {
            let ratio = |one: Option<f64>, many: Option<f64>| Some(many? / one?);
            judge(
                format!("XDP, {row}: the core's time of a packet, to that of 1 rule"),
                ratio(ns(PREFIXES[0]), ns(row)),
                (most, true),
                "",
            );
            judge(
                format!("XDP, {row}: of the program alone, to that of 1 rule"),
                ratio(alone(PREFIXES[0]), alone(row)),
                (most, true),
                "",
            );
        }
        for rounds in &self.forward {
            let name = format!("{}: to {}", rounds.row.work, rounds.row.beside);
            if let Some(target) = rounds.target {
                judge(name, rounds.ratio(), (target, false), "");
            }
        }
        for (what, is_xdp) in [("filter run", true), ("forward", false)] {
            let of = |figure: fn(&Reload) -> f64| {
                let all = self.reloads.iter().filter(|reload| reload.is_xdp == is_xdp);
                median(&all.map(figure).collect::<Vec<_>>())
            };
            judge(
                format!("{what}: a reload of 500,000 prefixes, command to in force"),
                of(|reload| reload.seconds),
                (RELOAD_S, true),
                " s",
            );
            judge(
                format!("{what}: the deepest dip of any 100 ms meanwhile"),
                of(|reload| reload.dip),
                (DIP, true),
                "",
            );
        }
        let guarded: Vec<f64> = self.guards.iter().map(|guarded| guarded.seconds).collect();
        let name = "guard: from the first packet of a flood to its drop".into();
        judge(name, median(&guarded), (GUARD_S, true), " s");
        // The worst of them: one packet is one too many.
        let lost = self.floods.iter().map(|flooded| flooded.lost() as f64);
        let name = "a flood: legitimate packets in it that did not arrive".into();
        judge(name, lost.reduce(f64::max), (0.0, true), "");
        all
    }

    /// The page's part.
    pub fn markdown(&self, machine: &Machine) -> String {
        let mut text = format!("`./dev bench filter`, medians of {} rounds.\n\n", self.rounds);
        let facts = machine
            .facts()
            .into_iter()
            .map(|(name, fact)| vec![name.to_owned(), fact]);
        text += &layout(&["machine", ""], facts.collect());
        let share = stolen_share(self.stolen_before) * 100.0;
        let _ = writeln!(
            text,
            "\nThe hypervisor gave {share:.1} % of the time of all cores to others meanwhile.\n"
        );
        let targets = self.targets().into_iter();
        let targets =
            targets.map(|target| vec![target.name, target.reached, target.asked, target.met.into()]);
        text += &layout(&["target", "reached", "asked", "met"], targets.collect());
        text += &self.wire_table();
        text += &self.prefix_table();
        text += &self.forward_table();
        text += &self.cost_table();
        text += &self.reload_table();
        text += &self.guard_table();
        text += &self.flood_table();
        for (what, reason) in &self.failed {
            let _ = writeln!(text, "\nNot measured: {what}: {reason}");
        }
        text
    }

    /// 2: something could not be measured; 1: a target was missed; 0: all is well.
    pub fn exit_code(&self) -> ExitCode {
        if !self.failed.is_empty() || self.forward.iter().any(|rounds| rounds.failed.is_some()) {
            return ExitCode::from(2);
        }
        ExitCode::from(u8::from(self.targets().iter().any(|target| target.met != "yes")))
    }
}
