//! The whole result of `dropless noise`, as `summary.json` and `--json` carry it.

use serde::{Deserialize, Serialize};

use crate::note::Note;
use crate::summary::{EXIT_CLEAN, EXIT_INVALID, EXIT_LOSS, nothing_yet};
use crate::verdict::Validity;

/// The result of a `noise` run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoiseSummary {
    /// Version of this format.
    pub version: u32,
    /// The subcommand, `noise`.
    pub command: String,
    /// The run directory; empty for a measurement that has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Why its numbers must not be believed; empty where they may be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Note>,
    /// Gaps are longer than this, ns.
    pub threshold_ns: u64,
    /// Receive descriptors that costs are worked out for.
    pub ring: u32,
    /// The rate that costs are worked out for, packets/s.
    pub rate_pps: Option<f64>,
    /// The rate at which a receiver empties a full ring, packets/s.
    pub service_pps: Option<f64>,
    /// Whether the kernel told the causes.
    pub causes_known: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes_missing: Option<String>,
    /// Core by core.
    pub cores: Vec<CoreNoise>,
    /// Whether somebody ended it early.
    pub interrupted: bool,
    /// What the user should know.
    pub notes: Vec<Note>,
}

nothing_yet! {
    NoiseSummary, "noise":
    run reasons threshold_ns ring rate_pps service_pps causes_known causes_missing cores interrupted notes
}

impl NoiseSummary {
    /// Whether its numbers may be believed.
    pub fn validity(&self) -> Validity {
        match self.reasons.as_slice() {
            [] => Validity::Valid,
            _ => Validity::Invalid,
        }
    }

    /// The process exit code: 1 where packets would have been lost at the given rate, 2 where nobody knows.
    pub fn exit_code(&self) -> u8 {
        let loses = |core: &CoreNoise| core.lost.is_some_and(|lost| lost >= 1.0);
        if self.validity() == Validity::Invalid {
            EXIT_INVALID
        } else if self.cores.iter().any(loses) {
            EXIT_LOSS
        } else {
            EXIT_CLEAN
        }
    }
}

/// One core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreNoise {
    /// The core.
    pub core: u32,
    /// How long it was watched, s.
    pub watched_s: f64,
    /// How often the loop read the clock.
    pub looks: u64,
    /// Gaps between two of its readings, longer than the threshold.
    pub gaps: u64,
    /// Gaps that found no room, and are in none of these numbers but this one.
    pub gaps_dropped: u64,
    /// Time in gaps, ns.
    pub taken_ns: f64,
    /// Their share of the time.
    pub taken_share: f64,
    /// The longest, ns.
    pub max_ns: f64,
    /// Share of the time in gaps whose cause the kernel named.
    pub named_share: Option<f64>,
    /// Whether every interrupt that the kernel counted was recorded: without that, nothing can be said to be outside it.
    pub complete: Option<bool>,
    /// Time that the hypervisor admits to have taken, ns.
    pub steal_ns: f64,
    /// Packets that would have been lost at the given rate.
    pub lost: Option<f64>,
    /// The highest rate at which an empty ring of the given size loses nothing in these gaps, packets/s: of a receiver that works
    /// it off as many times as fast as `service_pps` is above `rate_pps` (1.25 without them). Up to November 2026 it was that of
    /// the longest gap alone.
    pub lossless_pps: Option<f64>,
    /// By cause, the worst first.
    pub causes: Vec<CauseNoise>,
    /// Share of the time in gaps, in equal parts of the run.
    pub timeline: Vec<f64>,
    /// The kernel's own counts, and what was recorded.
    pub interrupts: Vec<InterruptLine>,
}

impl CoreNoise {
    /// Stalls that found no room, as a reason against all of its numbers.
    pub fn dropped(&self) -> Option<Note> {
        let Self {
            core, gaps_dropped, ..
        } = self;
        let text = format!(
            "core {core}: {gaps_dropped} stalls found no room, and are in none of its numbers; fix: a higher --threshold or a shorter --duration"
        );
        (*gaps_dropped > 0).then(|| Note::new("stalls_dropped", text))
    }

    /// That a look at the clock takes as long as the threshold, as a reason against all of its numbers: no thief takes a core
    /// between one look in twenty and the next.
    pub fn looks_are_stalls(&self) -> Option<Note> {
        let Self {
            core, looks, gaps, ..
        } = self;
        let gaps = gaps + self.gaps_dropped;
        let text = format!(
            "core {core}: {gaps} of {looks} looks at the clock took longer than --threshold, so that most of its stalls are \
             nobody's; fix: a higher --threshold"
        );
        (gaps * 20 > *looks).then(|| Note::new("threshold_too_low", text))
    }
}

/// One cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CauseNoise {
    /// In words.
    pub cause: String,
    /// Gaps that it is the largest part of.
    pub gaps: u64,
    /// All of its time, ns.
    pub total_ns: f64,
    /// 99 in a hundred of its gaps are no longer, ns.
    pub p99_ns: f64,
    /// The longest of its gaps, ns.
    pub max_ns: f64,
    /// Packets that its gaps would have cost at the given rate.
    pub lost: Option<f64>,
    /// From one of its gaps to the next, ns, where that is regular.
    pub period_ns: Option<f64>,
}

/// One line of `/proc/interrupts`, and what was recorded of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptLine {
    /// The line: a number, or `LOC`, `RES`, `CAL` and so on.
    pub line: String,
    /// What the kernel writes at its end.
    pub name: String,
    /// Interrupts that the kernel counted.
    pub counted: u64,
    /// Events that were certainly recorded in that time.
    pub traced_min: u64,
    /// Events that may have been.
    pub traced_max: u64,
    /// Whether they agree.
    pub proven: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_back_as_it_was() {
        let noise = NoiseSummary {
            run: "runs/1".into(),
            rate_pps: Some(1e6),
            cores: vec![CoreNoise {
                core: 3,
                lost: Some(1.5),
                causes: vec![CauseNoise::default()],
                interrupts: vec![InterruptLine::default()],
                ..CoreNoise::default()
            }],
            ..NoiseSummary::default()
        };
        let text = serde_json::to_string(&noise).unwrap();
        assert_eq!(serde_json::from_str::<NoiseSummary>(&text).unwrap(), noise);
        assert_eq!(noise.exit_code(), EXIT_LOSS);
    }

    #[test]
    fn a_threshold_that_every_look_takes_measures_the_looks() {
        let core = |gaps, gaps_dropped| CoreNoise {
            looks: 2000,
            gaps,
            gaps_dropped,
            ..CoreNoise::default()
        };
        assert_eq!(core(60, 40).looks_are_stalls(), None);
        let reason = core(60, 41).looks_are_stalls().unwrap();
        assert_eq!(reason.code, "threshold_too_low");
        assert!(reason.text.contains("101 of 2000 looks"), "{}", reason.text);
    }

    #[test]
    fn what_found_no_room_may_have_cost_anything() {
        let core = CoreNoise {
            gaps_dropped: 7,
            ..CoreNoise::default()
        };
        let mut noise = NoiseSummary::default();
        assert_eq!(noise.exit_code(), EXIT_CLEAN);
        noise.reasons.extend(core.dropped());
        assert_eq!((noise.reasons.len(), noise.exit_code()), (1, EXIT_INVALID));
        assert!(noise.reasons[0].text.contains("7 stalls found no room"));
    }

    #[test]
    fn a_result_without_a_field_still_loads() {
        let noise: NoiseSummary = serde_json::from_str(r#"{"cores":[{"core":2}]}"#).unwrap();
        assert_eq!((noise.cores[0].core, noise.exit_code()), (2, EXIT_CLEAN));
    }
}
