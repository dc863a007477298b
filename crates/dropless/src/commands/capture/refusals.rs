//! When the disk of a capture refuses to be written, and when it no longer does: a line each, however often it is tried.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// It is over when the disk has not refused for so long: it is tried every second.
const OVER: Duration = Duration::from_secs(3);

/// The thread that writes tells here.
pub struct Tell {
    refused: u64,
    sender: Sender<String>,
}

/// Control hears it here.
pub struct Refusals {
    receiver: Receiver<String>,
    /// When it refused last, as long as that is not over.
    last: Option<Instant>,
}

/// Both ends.
pub fn refusals() -> (Tell, Refusals) {
    let (sender, receiver) = channel();
    (Tell { refused: 0, sender }, Refusals { receiver, last: None })
}

impl Tell {
    /// It refused so often so far, and last for this reason.
    pub fn look(&mut self, (refused, why): (u64, Option<&str>)) {
        if refused > self.refused {
            self.refused = refused;
            // Control that has gone wants to hear nothing.
            let _ = self.sender.send(why.unwrap_or("no reason given").to_owned());
        }
    }
}

impl Refusals {
    /// What is to be said at `now`: the first refusal, and the end of them.
    pub fn line(&mut self, now: Instant) -> Option<String> {
        let heard = self.receiver.try_iter().last();
        match (heard, self.last) {
            (Some(why), last) => {
                self.last = Some(now);
                last.is_none().then(|| {
                    format!(
                        "the disk refuses to be written ({why}): the ring keeps what it can, what it cannot is lost (ring_full); tried again every second\n"
                    )
                })
            }
            (None, Some(last)) if now.duration_since(last) >= OVER => {
                self.last = None;
                Some("the disk takes packets again\n".to_owned())
            }
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_beginning_and_each_end_is_one_line() {
        let (mut tell, mut refusals) = refusals();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(refusals.line(at(0)), None, "nothing has happened");
        for times in 1..=3 {
            tell.look((times, Some("No space left")));
            tell.look((times, None));
            let line = refusals.line(at(times));
            assert_eq!(line.is_some(), times == 1, "{line:?}");
            assert!(line.is_none_or(|line| line.contains("No space left")));
        }
        assert_eq!(refusals.line(at(5)), None, "it may still refuse");
        let over = refusals.line(at(6));
        assert!(over.is_some_and(|line| line.contains("again")));
        assert_eq!(refusals.line(at(60)), None, "said once");
        tell.look((4, Some("No space left")));
        assert!(refusals.line(at(61)).is_some(), "another time");
    }
}
