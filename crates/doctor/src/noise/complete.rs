//! Whether the trace saw everything: what it recorded, against what the kernel counted by itself.
//!
//! The two cannot be stopped at one moment, so the counters are read between two looks at the clock, at the beginning and
//! at the end: what was recorded between the inner looks must have been counted, and what was counted must have been
//! recorded between the outer ones.

use std::collections::BTreeMap;

use super::attribute::Stamped;
use super::cause::Cause;
use super::event::Event;
use host::Sys;
use host::cores::Core;
use host::interrupts::Interrupts;
use measure::InterruptLine;

/// The kernel's counters, and the times between which they were read.
#[derive(Debug, Clone, Default)]
pub struct Bracket {
    /// Before.
    pub from: u64,
    /// After.
    pub to: u64,
    /// The counters.
    pub read: Interrupts,
}

impl Bracket {
    /// Reads the counters.
    pub fn take(sys: &Sys, clock: fn() -> u64) -> Self {
        let from = clock();
        let read = Interrupts::read(sys);
        Self {
            from,
            to: clock(),
            read,
        }
    }
}

/// Lines that count no interrupts of their own: shootdowns are among `CAL`, polls and hypercalls interrupt nobody.
const NOT_THEIR_OWN: [&str; 3] = ["TLB", "MCP", "HYP"];

/// Compares what the kernel counted on `core` with what was recorded.
pub fn compare(core: Core, events: &[Stamped], before: &Bracket, after: &Bracket) -> Vec<InterruptLine> {
    let mut recorded: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for event in events {
        let Some(line) = line_of(&event.event) else {
            continue;
        };
        let (min, max) = recorded.entry(line).or_default();
        *min += u64::from(event.at > before.to && event.at < after.from);
        *max += u64::from(event.at >= before.from && event.at <= after.to);
    }
    let counted = after.read.since(&before.read, core);
    let counted = counted
        .into_iter()
        .filter(|delta| !NOT_THEIR_OWN.contains(&delta.line.as_str()))
        .map(|delta| {
            let (traced_min, traced_max) = recorded.get(&delta.line).copied().unwrap_or_default();
            // Handlers of a shared line are told apart by commas; each has an event, the interrupt is one.
            let shared = delta.name.contains(',') || delta.line == "NMI";
            InterruptLine {
                proven: delta.count <= traced_max && (shared || delta.count >= traced_min),
                line: delta.line,
                name: delta.name,
                counted: delta.count,
                traced_min,
                traced_max,
            }
        });
    counted.collect()
}

/// The line that counts an event.
fn line_of(event: &Event) -> Option<String> {
    let Event::Enter(cause) = event else { return None };
    Some(match cause {
        Cause::Irq { number, .. } => number.to_string(),
        Cause::Vector("local_timer") => "LOC".into(),
        Cause::Vector("reschedule") => "RES".into(),
        Cause::Vector("irq_work") => "IWI".into(),
        Cause::Vector("x86_platform_ipi") => "PLT".into(),
        Cause::Vector("thermal_apic") => "TRM".into(),
        Cause::Vector("threshold_apic") => "THR".into(),
        Cause::Vector("spurious_apic") => "SPU".into(),
        Cause::Call { .. } => "CAL".into(),
        Cause::Nmi => "NMI".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bracket(from: u64, to: u64, ticks: u64) -> Bracket {
        let text = format!("      CPU0 CPU1\nLOC:  0 {ticks}  Local timer interrupts\nTLB: 0 {ticks} x\n");
        Bracket {
            from,
            to,
            read: Interrupts::parse(&text),
        }
    }

    fn ticks(at: &[u64]) -> Vec<Stamped> {
        at.iter()
            .map(|at| Stamped {
                at: *at,
                event: Event::Enter(Cause::Vector("local_timer")),
            })
            .collect()
    }

    #[test]
    fn what_was_counted_lies_between_the_bounds() {
        let lines = |counted: u64, at: &[u64]| {
            compare(
                Core(1),
                &ticks(at),
                &bracket(10, 20, 100),
                &bracket(90, 99, 100 + counted),
            )
        };
        // Three inside for certain, one while the counters were read, one before.
        let at = [5, 15, 30, 40, 50];
        assert!(lines(3, &at)[0].proven && lines(4, &at)[0].proven);
        assert!(!lines(5, &at)[0].proven, "the trace missed one");
        assert!(!lines(2, &at)[0].proven, "the trace has one too many");
        assert_eq!(lines(3, &at).len(), 1, "shootdowns are among the calls");
    }
}
