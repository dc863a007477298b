//! Whether packets really move: a process that is up is not healthy for that alone.

use std::time::{Duration, Instant};

use report::published::{Health, Phase, State};

/// Packets that do not move for longer than this have stopped, unless they come more rarely by plan.
const STOPPED: Duration = Duration::from_secs(2);

/// What should move.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected {
    /// Nothing comes back by plan.
    pub one_way: bool,
    /// The time from one packet to the next by plan, where there is one.
    pub gap: Option<Duration>,
}

/// A count, and when it last rose.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    count: u64,
    rose: Option<Instant>,
}

impl Mark {
    fn look(&mut self, now: Instant, count: u64) {
        if count != self.count {
            *self = Self {
                count,
                rose: Some(now),
            };
        }
    }

    /// What is wrong with it, if it has not risen lately.
    fn trouble(&self, now: Instant, limit: Duration, what: &str) -> Option<String> {
        match self.rose {
            None => Some(format!("no packet has been {what} yet")),
            Some(at) if now.duration_since(at) > limit => Some(format!(
                "no packet has been {what} for {:.1} s",
                now.duration_since(at).as_secs_f64()
            )),
            Some(_) => None,
        }
    }
}

/// Judges a run by what its counters do.
#[derive(Debug, Clone, Copy, Default)]
pub struct HealthCheck {
    expected: Expected,
    sent: Mark,
    received: Mark,
    /// Packets were awaited when sending was looked at last, and none had come for too long.
    is_deaf: bool,
}

impl HealthCheck {
    /// For a run that should do what is `expected`.
    pub fn new(expected: Expected) -> Self {
        Self {
            expected,
            ..Self::default()
        }
    }

    /// From now on it should do what is `expected`.
    pub fn expect(&mut self, expected: Expected) {
        self.expected = expected;
    }

    pub fn judge(&mut self, now: Instant, state: &State) -> Health {
        self.sent.look(now, state.total.sent);
        self.received.look(now, state.total.received);
        if state.phase == Phase::Sending {
            self.is_deaf = self.deafness(now).is_some();
        } else if self.received.rose == Some(now) {
            self.is_deaf = false;
        }
        let trouble = match state.phase {
            Phase::Sending | Phase::Reflecting | Phase::Forwarding | Phase::Capturing => {
                self.trouble(now, state)
            }
            // A capture may pause for as long as it likes.
            Phase::Replaying => match lost_link(state).or_else(|| refused(state)) {
                None if self.sent.rose.is_some() => return well("packets are sent when they are due"),
                trouble => trouble.or_else(|| Some("no packet has been sent yet".into())),
            },
            // Where nothing came back any more, the wait for the last of it heals nothing.
            Phase::Draining if self.is_deaf => {
                self.deafness(now).map(|reason| format!("draining, and {reason}"))
            }
            Phase::Draining if lost_link(state).is_some() => lost_link(state),
            Phase::Draining => {
                return well("draining: sending is over, the last packets are waited for, by plan");
            }
            Phase::Idle => return well("idle by plan"),
            Phase::Filtering => match failed(state) {
                None => return well("the rules are in force"),
                trouble => trouble,
            },
            Phase::Watching => return well("polling without packets, by plan"),
            Phase::Starting => Some("starting: no packet has been sent or received yet".into()),
            Phase::Ended | Phase::Other => Some("the run has ended".into()),
        };
        trouble.map_or_else(|| well("packets move"), unhealthy)
    }

    fn trouble(&self, now: Instant, state: &State) -> Option<String> {
        let sent = |what| self.sent.trouble(now, self.patience(), what);
        lost_link(state).or_else(|| match state.phase {
            Phase::Reflecting => self.deafness(now).or_else(|| sent("returned")),
            // Rules may let nothing pass.
            Phase::Forwarding => failed(state).or_else(|| self.deafness(now)),
            Phase::Capturing => self.deafness(now),
            _ => sent("sent").or_else(|| self.deafness(now)),
        })
    }

    /// Of a slow schedule three packets in a row must be missing.
    fn patience(&self) -> Duration {
        self.expected.gap.map_or(STOPPED, |gap| STOPPED.max(gap * 3))
    }

    /// What is wrong with what should come back.
    fn deafness(&self, now: Instant) -> Option<String> {
        let is_awaited = !self.expected.one_way;
        is_awaited
            .then(|| self.received.trouble(now, self.patience(), "received"))
            .flatten()
    }
}

fn refused(state: &State) -> Option<String> {
    let lasts_s = state.refused_s?;
    Some(format!("the port has taken nothing for {lasts_s:.1} s"))
}

fn failed(state: &State) -> Option<String> {
    let failed = state.rules.as_ref()?.failed.as_ref()?;
    Some(format!("rules are not in force that should be: {failed}"))
}

fn lost_link(state: &State) -> Option<String> {
    let port = state.ports.iter().find(|port| !port.link.up)?;
    Some(format!("port {} has no link", port.uri))
}

/// What is not as it should be, and why.
pub fn unhealthy(reason: impl Into<String>) -> Health {
    Health {
        healthy: false,
        reason: reason.into(),
    }
}

fn well(reason: &str) -> Health {
    Health {
        healthy: true,
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::{LinkState, Note, PortSummary};
    use report::published::{RulesInForce, Totals};

    fn state(phase: Phase, sent: u64, received: u64, up: bool) -> State {
        State {
            phase,
            total: Totals {
                sent,
                received,
                ..Totals::default()
            },
            ports: vec![PortSummary {
                uri: "ring".into(),
                link: LinkState { up, speed_mbps: None },
                ..PortSummary::default()
            }],
            ..State::default()
        }
    }

    #[test]
    fn only_packets_that_move_make_it_healthy() {
        let (begun, mut pulse) = (Instant::now(), HealthCheck::default());
        let second = Duration::from_secs(1);
        let judged = |pulse: &mut HealthCheck, after: u32, state: &State| {
            let health = pulse.judge(begun + second * after, state);
            (health.healthy, health.reason)
        };
        let bad = |reason: &str| (false, reason.to_owned());
        let sending = |sent, received| state(Phase::Sending, sent, received, true);
        assert_eq!(
            judged(&mut pulse, 0, &sending(0, 0)),
            bad("no packet has been sent yet")
        );
        assert_eq!(
            judged(&mut pulse, 1, &sending(1, 0)),
            bad("no packet has been received yet")
        );
        assert!(judged(&mut pulse, 2, &sending(2, 1)).0);
        assert!(judged(&mut pulse, 4, &sending(3, 1)).0);
        assert_eq!(
            judged(&mut pulse, 5, &sending(4, 1)),
            bad("no packet has been received for 3.0 s")
        );
        assert!(judged(&mut pulse, 6, &sending(5, 2)).0, "and back");
        assert_eq!(
            judged(&mut pulse, 7, &state(Phase::Sending, 6, 3, false)),
            bad("port ring has no link")
        );
        assert!(judged(&mut pulse, 60, &state(Phase::Draining, 6, 3, true)).0);
        assert!(!judged(&mut pulse, 60, &state(Phase::Draining, 6, 3, false)).0);
        assert!(!judged(&mut pulse, 61, &state(Phase::Ended, 6, 3, true)).0);
    }

    #[test]
    fn draining_heals_nothing_that_was_silent_before() {
        let begun = Instant::now();
        let at = |second| begun + Duration::from_secs(second);
        let draining = |received| state(Phase::Draining, 6, received, true);
        for (received, words) in [
            (0, "draining, and no packet has been received yet"),
            (1, "draining, and no packet has been received for 5.0 s"),
        ] {
            let mut pulse = HealthCheck::default();
            pulse.judge(at(0), &state(Phase::Sending, 1, received, true));
            pulse.judge(at(4), &state(Phase::Sending, 6, received, true));
            let health = pulse.judge(at(5), &draining(received));
            assert_eq!((health.healthy, health.reason.as_str()), (false, words));
            let health = pulse.judge(at(6), &draining(received + 1));
            assert!(health.healthy, "and back: {}", health.reason);
            assert!(pulse.judge(at(60), &draining(received + 1)).healthy);
        }
    }

    #[test]
    fn a_capture_may_pause_but_a_replay_needs_its_link() {
        let begun = Instant::now();
        let at = |second| begun + Duration::from_secs(second);
        let mut pulse = HealthCheck::default();
        let sent = |count, up| state(Phase::Replaying, count, 0, up);
        assert!(!pulse.judge(at(0), &sent(0, true)).healthy, "nothing was sent");
        assert!(pulse.judge(at(1), &sent(1, true)).healthy);
        assert!(pulse.judge(at(3600), &sent(1, true)).healthy);
        let health = pulse.judge(at(3601), &sent(2, false));
        assert_eq!(
            (health.healthy, &*health.reason),
            (false, "port ring has no link")
        );
    }

    #[test]
    fn a_replay_may_pause_but_its_port_must_take_what_is_due() {
        let (begun, mut pulse) = (Instant::now(), HealthCheck::default());
        let mut state = state(Phase::Replaying, 1, 0, true);
        assert!(pulse.judge(begun, &state).healthy);
        state.refused_s = Some(2.5);
        let health = pulse.judge(begun + Duration::from_secs(1), &state);
        assert_eq!(
            (health.healthy, &*health.reason),
            (false, "the port has taken nothing for 2.5 s")
        );
    }

    #[test]
    fn a_guard_whose_rules_are_not_in_force_is_not_well() {
        for phase in [Phase::Filtering, Phase::Forwarding] {
            let mut state = state(phase, 1, 1, true);
            let rules = RulesInForce {
                failed: Some(Note::new("rules_failed", "no memory")),
                ..RulesInForce::default()
            };
            state.rules = Some(rules);
            let health = HealthCheck::default().judge(Instant::now(), &state);
            assert!(
                !health.healthy && health.reason.contains("no memory"),
                "{health:?}"
            );
            state.rules = Some(RulesInForce::default());
            assert!(HealthCheck::default().judge(Instant::now(), &state).healthy);
        }
    }

    #[test]
    fn a_slow_schedule_is_no_silence() {
        let begun = Instant::now();
        let mut pulse = HealthCheck::new(Expected {
            one_way: true,
            gap: Some(Duration::from_secs(10)),
        });
        let sent = |count| state(Phase::Sending, count, 0, true);
        assert!(pulse.judge(begun, &sent(1)).healthy);
        assert!(pulse.judge(begun + Duration::from_secs(29), &sent(1)).healthy);
        assert!(!pulse.judge(begun + Duration::from_secs(31), &sent(1)).healthy);
    }
}
