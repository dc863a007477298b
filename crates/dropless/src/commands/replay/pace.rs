//! How far a replay may be from its plan, and what is said of less than that.

use measure::Note;
use measure::units::{format_duration, format_rate};
use measure::verdict::OFFERED_TOLERANCE;

use crate::run::workers::STALL_NS;

/// The last packet may be this much later than planned, ns: a stall of the worker is none of the port's or the file's pace.
pub const BEHIND_NS: u64 = 100_000_000;

/// For how long a packet was missing at the end, ns, where nothing had come for `starved_ns`: the next one may have been due no
/// sooner than the others were.
pub fn silent(starved_ns: u64, planned_ns: Option<u64>, taken: u64) -> Option<u64> {
    let gap_ns = planned_ns.unwrap_or(0) / taken.saturating_sub(1).max(1);
    Some(starved_ns.saturating_sub(gap_ns)).filter(|silent| *silent > BEHIND_NS)
}

/// That it was so long, where nobody can say whether one was due.
pub fn silence(silent_ns: u64) -> Note {
    let text = format!(
        "the input gave nothing for the last {}, and had not ended",
        format_duration(silent_ns)
    );
    Note::new("input_silent", text)
}

/// A delay that no run is judged by, where it changed the rate of one that is short.
pub fn behind(sent: u64, planned_ns: u64, took_ns: u64) -> Option<Note> {
    let late_ns = took_ns.saturating_sub(planned_ns);
    let least_ns = STALL_NS.max((planned_ns as f64 * OFFERED_TOLERANCE) as u64);
    (planned_ns > 0 && late_ns > least_ns).then(|| {
        // Of a rate there is one gap less than there are packets.
        let rate = |ns: u64| format_rate(sent.saturating_sub(1) as f64 / (ns as f64 / 1e9));
        let text = format!(
            "the last packet was sent {} late: {} in the place of {}; no run is INVALID by less than {}",
            format_duration(late_ns),
            rate(took_ns),
            rate(planned_ns),
            format_duration(BEHIND_NS)
        );
        Note::new("behind", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_silent_once_its_next_packet_is_overdue() {
        let second = 1_000_000_000;
        assert_eq!(silent(second, None, 0), Some(second));
        assert_eq!(silent(BEHIND_NS, Some(0), 1), None);
        // One a second: the next was not due yet.
        assert_eq!(silent(second, Some(4 * second), 5), None);
        assert_eq!(silent(3 * second, Some(4 * second), 5), Some(2 * second));
    }

    #[test]
    fn a_short_run_that_was_behind_says_so() {
        let (ms, second) = (1_000_000, 1_000_000_000);
        let note = behind(10_001, ms, 10 * ms).expect("a note");
        assert_eq!(note.code, "behind");
        assert!(
            note.text.contains("1.000 Mpps in the place of 10.00 Mpps"),
            "{}",
            note.text
        );
        assert!(behind(10_001, second, second + 2 * ms).is_some());
        // A stall that nobody is told of, and a thousandth of the time.
        assert!(behind(10, ms, 2 * ms).is_none());
        assert!(behind(10_001, 10 * second, 10 * second + 9 * ms).is_none());
        assert!(behind(10_001, 0, second).is_none(), "no rate was planned");
    }
}
