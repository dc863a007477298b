//! What a send run tells while it goes, from counters that workers publish anyhow; and at its end, from its result.

use measure::Summary;
use measure::place::{CORRUPT, FAULT_DROP, LATE, TOO_OLD, of_reflector};
use report::published::{State, Totals};

use super::wiring::Wiring;
use crate::run;
use crate::run::reflector::{drops, fault_drops};

/// Counts, drops and queues now. What a far machine dropped is only asked for at the end.
pub fn state(wiring: &Wiring, judged_lost: u64, is_awaited: bool) -> State {
    let mut state = State {
        total: totals(wiring, judged_lost, is_awaited),
        queues: wiring.queues(),
        ..State::default()
    };
    let dropped = drops(&wiring.reflect).into_iter();
    state.add_places(dropped.map(|(name, count)| (of_reflector(&name), count)));
    state.add_places([
        (FAULT_DROP, fault_drops(&wiring.reflect)),
        (LATE, wiring.received(|counters| counters.late.get())),
        (TOO_OLD, wiring.received(|counters| counters.too_old.get())),
        (CORRUPT, wiring.received(|counters| counters.corrupt.get())),
    ]);
    state
}

fn totals(wiring: &Wiring, lost: u64, is_awaited: bool) -> Totals {
    // Received before sent: a look while packets fly must not show more back than out.
    let received = wiring.received(|counters| counters.received.get());
    let sent = wiring.sent(|counters| counters.accepted.get());
    let under_way = sent.saturating_sub(received.saturating_add(lost));
    Totals {
        intended: wiring.sent(|counters| counters.intended.get()),
        sent,
        under_way: if is_awaited { under_way } else { 0 },
        received,
        lost,
        unsent: wiring.sent(|counters| counters.abandoned.get()),
        duplicate: wiring.received(|counters| counters.duplicate.get()),
        reordered: wiring.received(|counters| counters.reordered.get()),
        corrupt: wiring.received(|counters| counters.corrupt.get()),
        late: wiring.received(|counters| counters.late.get()),
        sent_bytes: Some(wiring.sent(|counters| counters.bytes.get())),
        received_bytes: wiring.received(|counters| counters.bytes.get()),
        ..Totals::default()
    }
}

impl run::Summary for Summary {
    fn rated_s(&self) -> f64 {
        // As `rated_s` of the summary had it.
        if self.sent > 0 {
            self.sent as f64 / self.rate_tx_pps
        } else {
            self.duration_s
        }
    }

    fn total(&self, state: &mut State) {
        state.done = state.done.map(|done| done.max(1.0));
        state.total = Totals {
            intended: self.ledger.intended,
            sent: self.sent,
            received: self.received,
            lost: self.lost,
            under_way: 0,
            unsent: self.ledger.unsent,
            duplicate: self.duplicate,
            reordered: self.reordered,
            corrupt: self.corrupt,
            late: self.late,
            ..state.total
        };
        state.latency_ns = self.latency_ns;
        state.places.clone_from(&self.ledger.lost_at);
        state.add_places([("unexplained", self.unexplained)]);
    }
}
