//! When the port had sent what its driver took: a queue below it may hold that for longer than the driver needed.

use std::time::Duration;

use measure::verdict::OFFERED_TOLERANCE;
use measure::{Clock, Note, Ticks};
use report::number::count;

use super::clock::now;
use super::control::Look;
use super::open::OpenPort;
use super::workers::STALL_NS;

/// Control looks once in this part of the time that it has lasted: no rate is wrong by more.
const LOOKS: u32 = 1000;
/// And no more often.
pub const LOOK_MIN: Duration = Duration::from_millis(1);

/// What is known of when packets left.
#[derive(Default)]
pub struct Departure {
    /// When they were seen to have left, or last to have not.
    at: Option<Ticks>,
    /// When they were last seen to have not: that they left later than this is the port's doing, and what is beyond may be that
    /// nobody looked.
    still: Option<Ticks>,
    is_over: bool,
    /// Packets that count as sent and that had not left when nobody waited any more.
    pub waiting: u64,
    /// As far as that matters, there was room for so many in a queue, and the port does not say when they left it.
    untold: Option<u64>,
}

impl Departure {
    /// One look more, when the driver has taken `taken`, `all` of which are.
    pub fn look(&mut self, ports: &[OpenPort<'_>], taken: u64, all: bool) -> bool {
        let (mut gone, mut refused) = (0, 0);
        self.waiting = 0;
        for open in ports {
            // What could not be sent does not wait either.
            gone += open.summary().tx_packets + open.tx_errors();
            self.waiting += open.waiting_below();
            refused += open.waiting_above();
        }
        self.note(all && gone >= taken && self.waiting + refused == 0, now());
        self.is_over
    }

    /// One look more at what waits below the ports, when the drivers have taken `all` that they will take.
    pub fn look_below(&mut self, ports: &[OpenPort<'_>], all: bool) -> bool {
        if !self.is_over {
            let waits = |open: &OpenPort<'_>| open.waiting_below() + open.waiting_above();
            self.waiting = ports.iter().map(waits).sum();
            let is_sending = ports.iter().any(OpenPort::is_sending);
            if all || is_sending {
                self.note(!is_sending, now());
            }
        }
        self.is_over
    }

    /// Whether nothing waited at the last look.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    fn note(&mut self, is_over: bool, at: Ticks) {
        if !self.is_over {
            (self.is_over, self.at) = (is_over, Some(at));
            self.still = if is_over { self.still } else { Some(at) };
        }
    }

    /// Nobody waits any more for what is left of `taken`.
    pub fn end(&mut self, ports: &[OpenPort<'_>], taken: u64) {
        self.look(ports, taken, true);
        if !ports.iter().any(OpenPort::tells_departure) {
            (self.at, self.still) = (None, None);
            let room = ports.iter().map(OpenPort::tx_room).sum();
            let is_below = ports.iter().any(OpenPort::sends_by_interface);
            // What still lay in it when the driver had taken the last one is in the rate all the same.
            let is_told = |room: u64| room as f64 <= taken as f64 * OFFERED_TOLERANCE;
            self.untold = Some(room).filter(|room| is_below && !is_told(*room));
        }
    }

    /// When what was seen to wait had left, or was last seen to have not.
    pub fn left_at(&self) -> Option<Ticks> {
        self.still.and(self.at)
    }

    /// When something waited for sure.
    pub const fn held_until(&self) -> Option<Ticks> {
        self.still
    }

    /// For how long after the driver had needed `took_ns` something waited in the port for sure, ns.
    pub fn held_ns(&self, took_ns: u64, first: Ticks, clock: &Clock) -> u64 {
        let still_ns = self.still.map_or(0, |at| clock.ns_from_ticks(at.since(first)));
        still_ns.saturating_sub(took_ns)
    }

    /// From when `first` was taken until the last one had left, ns, where the driver needed `took_ns`: as control looks no more
    /// often, a little later is nothing to speak of.
    pub fn lasted_ns(&self, took_ns: u64, first: Ticks, clock: &Clock) -> u64 {
        let least_ns = STALL_NS.min((took_ns as f64 * OFFERED_TOLERANCE) as u64);
        let left_ns = self.at.map_or(0, |at| clock.ns_from_ticks(at.since(first)));
        if left_ns > took_ns + least_ns {
            left_ns
        } else {
            took_ns
        }
    }

    /// That there is no better rate than that at which the driver took them.
    pub fn untold(&self) -> Option<Note> {
        let room = self.untold?;
        let text = format!(
            "the rate is that at which the driver took the packets: its queue has room for {}, and does not tell when they left it; send more of them (--loop) for a rate of the interface",
            count(room)
        );
        Some(Note::new("rate_as_taken", text))
    }
}

/// When the next look is due of one that has sent for so long.
pub fn next_look(lasted: Duration, look: &Look<'_, '_>) -> Ticks {
    let step = (lasted / LOOKS).max(LOOK_MIN);
    now().after(look.clock.ticks_from_ns(step.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_lasts_until_the_last_packet_has_left() {
        let clock = Clock::from_calibration(0, 0, 1e9);
        let lasted = |took_ns, seen: &[(bool, u64)]| {
            let mut departure = Departure::default();
            for (is_over, at) in seen {
                departure.note(*is_over, Ticks(*at));
            }
            departure.lasted_ns(took_ns, Ticks(1000), &clock)
        };
        let (us, ms) = (1_000, 1_000_000);
        assert_eq!(lasted(500 * us, &[]), 500 * us, "the port says nothing");
        let queued = [
            (false, ms),
            (false, 2 * ms),
            (true, 500 * ms + 1000),
            (true, 900 * ms),
        ];
        assert_eq!(lasted(500 * us, &queued), 500 * ms);
        // Nobody waits for what leaves later than that.
        assert_eq!(lasted(500 * us, &queued[..2]), 2 * ms - 1000);
        // As late as control looks.
        assert_eq!(lasted(1000 * ms, &[(true, 1001 * ms)]), 1000 * ms);
        assert_eq!(lasted(1000 * ms, &[(true, 1001 * ms + 1001)]), 1001 * ms + 1);
    }

    #[test]
    fn what_left_while_nobody_looked_was_not_held() {
        let clock = Clock::from_calibration(0, 0, 1e9);
        let held = |seen: &[(bool, u64)]| {
            let mut departure = Departure::default();
            for (is_over, at) in seen {
                departure.note(*is_over, Ticks(*at));
            }
            departure.held_ns(500, Ticks(1000), &clock)
        };
        assert_eq!(held(&[(false, 1400), (true, 90_000)]), 0);
        assert_eq!(held(&[(false, 1400), (false, 2500), (true, 90_000)]), 1000);
    }
}
