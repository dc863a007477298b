//! The service manager that started this process (systemd, or what speaks as it does) is told when packets can move, that
//! they move, and that it ends: sd_notify(3).

use std::time::{Duration, Instant};

use report::published::{Phase, State};
use sd_notify::NotifyState;

use crate::run::parent;

/// New words are told this often at most: some of them count seconds.
const WORDS_EVERY: Duration = Duration::from_secs(1);

/// Who is told, as long as this process lives. Nothing needs to be open for it: a message goes to a socket that everybody
/// may write to, so that the rights which a run gives up are not missed.
#[derive(Debug)]
pub struct Manager {
    /// From one sign of life to the next, at most; none where nobody waits for them.
    every: Option<Duration>,
    fed: Option<Instant>,
    is_ready: bool,
    is_stopping: bool,
    words: String,
    is_healthy: bool,
    worded: Option<Instant>,
}

impl Manager {
    /// Who started this process, if it wants to be told. A trial of another dropless is not its to hear of.
    pub fn of_this_process() -> Option<Self> {
        let listens = std::env::var_os("NOTIFY_SOCKET").is_some() && !parent::is_another();
        listens.then(|| Self::new(sd_notify::watchdog_enabled()))
    }

    /// Who takes us for dead after this long without a sign of life.
    fn new(patience: Option<Duration>) -> Self {
        Self {
            // As sd_watchdog_enabled(3) advises.
            every: patience.map(|patience| patience / 2),
            fed: None,
            is_ready: false,
            is_stopping: false,
            words: String::new(),
            is_healthy: false,
            worded: None,
        }
    }

    /// From one sign of life to the next, at most.
    pub fn every(&self) -> Option<Duration> {
        self.every
    }

    /// Tells what is new in `state`. It moves packets once it has begun to do what it is for, and lives for as long as it
    /// is healthy: one that polls for ever and receives nothing gets no sign of life.
    pub fn tell(&mut self, now: Instant, state: &State) {
        let messages = self.messages(now, state);
        if !messages.is_empty() {
            // Nobody is there to be told that nobody listens.
            let _ = sd_notify::notify(&messages);
        }
    }

    /// It ends from here on.
    pub fn stopping(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            let _ = sd_notify::notify(&[NotifyState::Stopping]);
        }
    }

    fn messages<'s>(&mut self, now: Instant, state: &'s State) -> Vec<NotifyState<'s>> {
        let mut messages = Vec::new();
        let has_begun = !matches!(state.phase, Phase::Starting | Phase::Ended | Phase::Other);
        if has_begun && !self.is_ready && !self.is_stopping {
            self.is_ready = true;
            messages.push(NotifyState::Ready);
        }
        let (health, due) = (&state.health, |at: Option<Instant>, every| {
            at.is_none_or(|at| now.duration_since(at) >= every)
        });
        let has_turned = health.healthy != self.is_healthy;
        if health.reason != self.words && (has_turned || due(self.worded, WORDS_EVERY)) {
            (self.words, self.is_healthy) = (health.reason.clone(), health.healthy);
            self.worded = Some(now);
            messages.push(NotifyState::Status(&health.reason));
        }
        let is_waited_for = self.every.is_some_and(|every| due(self.fed, every));
        if self.is_ready && health.healthy && is_waited_for {
            self.fed = Some(now);
            messages.push(NotifyState::Watchdog);
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::published::Health;

    fn state(phase: Phase, healthy: bool, reason: &str) -> State {
        State {
            phase,
            health: Health {
                healthy,
                reason: reason.into(),
            },
            ..State::default()
        }
    }

    fn told(manager: &mut Manager, now: Instant, state: &State) -> Vec<String> {
        let messages = manager.messages(now, state);
        messages.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn signs_of_life_come_only_while_packets_move() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut manager = Manager::new(Some(Duration::from_secs(4)));
        let nothing: [&str; 0] = [];
        let starting = state(Phase::Starting, false, "starting");
        assert_eq!(told(&mut manager, at(0), &starting), ["STATUS=starting"]);
        let silent = state(Phase::Reflecting, false, "no packet");
        assert_eq!(
            told(&mut manager, at(1500), &silent),
            ["READY=1", "STATUS=no packet"]
        );
        assert_eq!(
            told(&mut manager, at(20_000), &silent),
            nothing,
            "polling is no life"
        );
        let moves = state(Phase::Reflecting, true, "packets move");
        assert_eq!(
            told(&mut manager, at(20_100), &moves),
            ["STATUS=packets move", "WATCHDOG=1"]
        );
        assert_eq!(
            told(&mut manager, at(22_000), &moves),
            nothing,
            "not before half of it"
        );
        assert_eq!(told(&mut manager, at(22_100), &moves), ["WATCHDOG=1"]);
        let silent = |seconds: u32| state(Phase::Reflecting, false, &format!("none for {seconds} s"));
        assert_eq!(
            told(&mut manager, at(26_000), &silent(2)),
            ["STATUS=none for 2 s"]
        );
        assert_eq!(
            told(&mut manager, at(26_100), &silent(3)),
            nothing,
            "words once a second"
        );
        assert_eq!(
            told(&mut manager, at(27_000), &silent(3)),
            ["STATUS=none for 3 s"]
        );
    }

    #[test]
    fn who_waits_for_no_sign_of_life_gets_none_and_an_end_is_not_ready() {
        let now = Instant::now();
        let moves = state(Phase::Sending, true, "packets move");
        let mut manager = Manager::new(None);
        assert_eq!(
            told(&mut manager, now, &moves),
            ["READY=1", "STATUS=packets move"]
        );
        let mut broken_off = Manager::new(None);
        let ended = state(Phase::Ended, false, "the run was aborted");
        assert_eq!(told(&mut broken_off, now, &ended), ["STATUS=the run was aborted"]);
    }
}
