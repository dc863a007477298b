//! What `compare.json` holds.

use serde::{Deserialize, Serialize};

use super::firewall::FirewallCost;
use super::method::Method;
use crate::note::Note;
use crate::result::Percentiles;
use crate::search::{GoalResult, Limit};
use crate::verdict::OFFERED_TOLERANCE;

/// The whole comparison.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Comparison {
    /// Version of this format.
    pub version: u32,
    /// Always `compare`.
    pub command: String,
    /// Where the run directory is.
    pub run: String,
    /// What was between the two ends.
    pub link: String,
    /// Bytes of a frame with FCS.
    pub size: usize,
    /// How long each trial sent, s.
    pub duration_s: f64,
    /// The rate that the user needs.
    pub wanted_pps: Option<f64>,
    /// Firewall rules on the kernel's path.
    pub firewall_rules: u32,
    /// Cores of the sender and of the reflector.
    pub cores: Vec<usize>,
    /// Every way, also those that were not possible.
    pub methods: Vec<MethodResult>,
    /// What to take.
    pub recommendation: Recommendation,
    /// Somebody ended it early.
    pub interrupted: bool,
    /// What else is to be known.
    pub notes: Vec<Note>,
}

impl Comparison {
    /// How much of a core an end had that had the least. Whoever polls has its core all the time, unless somebody else
    /// had it, or both ends share one.
    pub fn own_share(&self, shares_a_core: bool) -> f64 {
        let share = if shares_a_core { 0.5 } else { 1.0 };
        self.methods
            .iter()
            .filter_map(|method| method.at_lossless.as_ref()?.cpu.as_ref())
            .flat_map(|cpu| [Some(cpu.near_cores), cpu.far_cores])
            .flatten()
            .filter(|cores| *cores > 0.0)
            .map(|cores| cores / share)
            .fold(1.0, f64::min)
    }

    /// What was compared over what, in a line.
    pub fn setting(&self) -> String {
        let rules = match self.firewall_rules {
            0 => String::new(),
            rules => format!(", {rules} firewall rules on the kernel's path"),
        };
        format!(
            "Compared over {}, {}-byte frames, {:.1} s a trial{rules}",
            self.link, self.size, self.duration_s
        )
    }
}

/// One way.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct MethodResult {
    /// Its word.
    pub name: String,
    /// What it is.
    pub words: String,
    /// The sender's port.
    pub near: String,
    /// The reflector's port.
    pub far: String,
    /// Why it was not tried, or did not work.
    pub missing: Option<String>,
    /// The highest rate that came back whole, with no lower one that did not, packets/s.
    pub lossless_pps: Option<f64>,
    /// Who was the limit at the rate above it.
    pub limit: Limit,
    /// The trial at that rate.
    pub at_lossless: Option<Trial>,
    /// The trial without a rate: what gets through when nobody holds back.
    pub flood: Option<Trial>,
    /// The trials at the rates asked for.
    pub at_rates: Vec<Trial>,
    /// The trials that looked for the highest rate without loss, in their order.
    pub search: Vec<Trial>,
    /// The trial that latency was measured in.
    pub latency: Option<Trial>,
    /// CPU time of both processes and the kernel's helper threads, for a packet sent and returned, at `lossless_pps`.
    pub cpu_ns_per_packet: Option<f64>,
    /// What the firewall rules cost; absent where there were none on its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall: Option<FirewallCost>,
    /// Why that is not known, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall_missing: Option<String>,
}

impl MethodResult {
    /// Whether it was measured, and reaches a network.
    pub fn has_measured_a_network(&self) -> bool {
        let method = self.name.parse::<Method>();
        self.missing.is_none() && method.is_ok_and(Method::reaches_a_network)
    }

    /// Whether the path may carry more: the limit was an end of ours or its port, or was not looked for to the end.
    pub fn may_carry_more(&self) -> bool {
        matches!(
            self.limit,
            Limit::Sender | Limit::Port | Limit::Receiver | Limit::Unknown
        )
    }

    /// Whether the limit was an end of ours.
    pub fn is_limited_by_us(&self) -> bool {
        matches!(self.limit, Limit::Sender | Limit::Receiver)
    }

    /// Says what all trials of it come to, where the search among them came to `found`.
    pub fn conclude(&mut self, found: Option<&GoalResult>) {
        let carried = found.and_then(|goal| goal.throughput_pps).unwrap_or(0.0);
        // Of a search that did not come to its end nobody knows what was above.
        let ended = found.filter(|goal| goal.complete);
        self.limit = ended.map_or(Limit::Unknown, |goal| goal.limit);
        let one_each = self.flood.iter().chain(&self.latency);
        let tried = self.search.iter().chain(&self.at_rates).chain(one_each);
        let best = highest_without_loss(tried.clone()).cloned();
        self.lossless_pps = best.as_ref().map(Trial::rate_pps);
        if self.lossless_pps.unwrap_or(0.0) < carried
            && tried
                .clone()
                .any(|trial| trial.lost > 0 && trial.rate_pps() <= carried)
        {
            // What failed twice at a lower rate was lost on the way.
            self.limit = Limit::Path;
        }
        self.cpu_ns_per_packet = best.as_ref().and_then(Trial::ns_per_packet);
        self.at_lossless = best;
    }

    /// The trial at `pps`, if there was one.
    pub fn at(&self, pps: f64) -> Option<&Trial> {
        self.at_rates.iter().find(|trial| {
            trial
                .asked_pps
                .is_some_and(|asked| (asked / pps - 1.0).abs() < 1e-6)
        })
    }
}

/// One trial: a run of `dropless send` against a reflector.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Trial {
    /// The rate asked for; `None` for as fast as it goes.
    pub asked_pps: Option<f64>,
    /// The rate sent.
    pub sent_pps: f64,
    /// The rate that came back.
    pub received_pps: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets sent that did not come back.
    pub lost: u64,
    /// Packets that were due and that the sender could not send.
    pub unsent: u64,
    /// Round-trip times.
    pub latency_ns: Percentiles,
    /// What it took; `None` where that could not be measured.
    pub cpu: Option<Cpu>,
}

impl Trial {
    /// The cores that it took altogether.
    pub fn cores(&self) -> Option<f64> {
        self.cpu.as_ref().map(Cpu::cores)
    }

    /// Processor time of both ends for a packet that came back.
    pub fn ns_per_packet(&self) -> Option<f64> {
        let cores = self.cores().filter(|cores| *cores > 0.0)?;
        Some(cores * 1e9 / self.received_pps.max(1.0))
    }

    /// Whether the sender offered what was asked, within a thousandth, and in its time, as for the verdict of a run.
    pub fn is_offered(&self) -> bool {
        let in_time = |asked_pps| self.sent_pps >= asked_pps * (1.0 - 2.0 * OFFERED_TOLERANCE);
        self.has_sent_what_was_due() && self.asked_pps.is_none_or(in_time)
    }

    /// The same in whatever time it took.
    pub fn has_sent_what_was_due(&self) -> bool {
        self.unsent * 1000 <= self.sent + self.unsent
    }

    /// Whether every packet came back and what was asked was offered.
    pub fn is_lossless(&self) -> bool {
        self.is_whole() && self.is_offered()
    }

    /// Whether every packet that was sent came back.
    pub fn is_whole(&self) -> bool {
        self.sent > 0 && self.lost == 0
    }

    /// The rate that it is a trial of: the one asked for, or where the sender did not reach that, what it sent.
    pub fn rate_pps(&self) -> f64 {
        self.asked_pps
            .filter(|_| self.is_offered())
            .unwrap_or(self.sent_pps)
    }
}

/// The trial at the highest rate that lost nothing, with none at a lower rate that did.
pub fn highest_without_loss<'t>(trials: impl Iterator<Item = &'t Trial>) -> Option<&'t Trial> {
    let mut sorted: Vec<&Trial> = trials.collect();
    sorted.sort_by(|one, other| one.rate_pps().total_cmp(&other.rate_pps()));
    sorted.into_iter().take_while(|trial| trial.is_whole()).last()
}

/// Processor time while a trial sent, in cores: 1.0 is one core all the time.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
#[allow(clippy::struct_field_names, reason = "the unit, last")]
pub struct Cpu {
    /// The sender, its system calls included.
    pub near_cores: f64,
    /// The reflector; `None` on another machine.
    pub far_cores: Option<f64>,
    /// The kernel's threads that finish what interrupts began (`ksoftirqd`).
    pub ksoftirqd_cores: f64,
    /// Of all cores together, what was spent in soft interrupts. Mostly part of the time above: on a virtual wire they
    /// run inside the sender's system calls.
    pub softirq_cores: f64,
}

impl Cpu {
    /// What it took altogether.
    pub fn cores(&self) -> f64 {
        self.near_cores + self.far_cores.unwrap_or(0.0) + self.ksoftirqd_cores
    }
}

/// What to take, and why.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Recommendation {
    /// The way to take; `None` where none will do.
    pub method: Option<String>,
    /// In plain words.
    pub sentences: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(rate: f64, lost: u64) -> Trial {
        Trial {
            asked_pps: Some(rate),
            sent_pps: rate,
            sent: 1000,
            lost,
            ..Trial::default()
        }
    }

    #[test]
    fn what_was_sent_after_its_time_was_not_offered() {
        let slow = Trial {
            sent_pps: 29.0,
            ..trial(30.0, 0)
        };
        assert!(!slow.is_offered() && trial(30.0, 0).is_offered());
        assert!((slow.rate_pps() - 29.0).abs() < 1e-9);
    }

    #[test]
    fn no_loss_up_to_a_rate_means_none_below_it_either() {
        let trials = [trial(30.0, 0), trial(10.0, 0), trial(20.0, 3), trial(15.0, 0)];
        let best = highest_without_loss(trials.iter());
        assert_eq!(best.and_then(|trial| trial.asked_pps), Some(15.0));
        assert!(highest_without_loss([trial(10.0, 1), trial(20.0, 0)].iter()).is_none());
    }

    /// The limit of a way, and up to where it lost nothing, where its search carried 30 and found this limit above.
    fn concluded(measured: MethodResult, complete: bool, limit: Limit) -> (Limit, Option<f64>) {
        let mut measured = measured;
        measured.conclude(Some(&GoalResult {
            name: "ndr".into(),
            loss_ratio: 0.0,
            complete,
            limit,
            throughput_pps: Some(30.0),
            conditional_throughput_pps: Some(30.0),
            lower: None,
            upper: None,
        }));
        (measured.limit, measured.lossless_pps)
    }

    #[test]
    fn a_search_that_did_not_end_found_no_limit() {
        let way = || MethodResult {
            search: vec![trial(30.0, 0), trial(50.0, 1)],
            ..MethodResult::default()
        };
        assert_eq!(concluded(way(), true, Limit::Path), (Limit::Path, Some(30.0)));
        assert_eq!(concluded(way(), false, Limit::Path), (Limit::Unknown, Some(30.0)));
    }

    #[test]
    fn the_path_is_the_limit_where_it_lost_something() {
        // The search takes what was sent a little late for offered.
        let late = Trial {
            sent_pps: 29.9,
            ..trial(30.0, 0)
        };
        let way = |at_rates| MethodResult {
            search: vec![late.clone()],
            at_rates,
            ..MethodResult::default()
        };
        let limit = Limit::Sender;
        assert_eq!(concluded(way(Vec::new()), true, limit), (limit, Some(29.9)));
        assert_eq!(
            concluded(way(vec![trial(50.0, 1)]), true, limit),
            (limit, Some(29.9))
        );
        let lossy = way(vec![trial(10.0, 0), trial(20.0, 1)]);
        assert_eq!(concluded(lossy, true, limit), (Limit::Path, Some(10.0)));
    }

    #[test]
    fn what_was_lost_where_latency_was_measured_counts() {
        let way = MethodResult {
            latency: Some(trial(10.0, 3)),
            search: vec![trial(30.0, 0)],
            ..MethodResult::default()
        };
        assert_eq!(concluded(way, true, Limit::Sender), (Limit::Path, None));
    }
}
