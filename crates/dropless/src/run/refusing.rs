//! Whether the ports take anything of what they are offered: a peer that takes nothing more is waited for, but not in silence.

use std::time::Duration;

use super::waiting::Waiting;

/// A port that was full for less has only been busy.
const STUCK: Duration = Duration::from_secs(2);

/// What was taken and refused, as it was looked at last.
#[derive(Default)]
pub struct Refusing {
    taken: u64,
    refused: u64,
    waiting: Option<Waiting>,
    lasts: Duration,
}

impl Refusing {
    /// One look more: `taken` packets by now, and `refused` offers. A worker that does not run is refused nothing.
    pub fn look(&mut self, taken: u64, refused: u64) {
        if taken != self.taken {
            *self = Self {
                taken,
                refused,
                ..Self::default()
            };
            return;
        }
        let is_refused = refused != self.refused;
        self.refused = refused;
        if is_refused {
            self.waiting.get_or_insert_with(Waiting::begin);
        }
        if let Some(waiting) = &mut self.waiting {
            self.lasts = waiting.look(is_refused);
        }
    }

    /// How long nothing was taken by now, s, where that is worth a word.
    pub fn lasts_s(&self) -> Option<f64> {
        (self.lasts >= STUCK).then_some(self.lasts.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_and_never_taken_is_refused() {
        let mut refusing = Refusing::default();
        refusing.look(5, 7);
        refusing.look(5, 7);
        assert!(refusing.waiting.is_none(), "nothing was offered");
        refusing.look(5, 8);
        assert!(refusing.waiting.is_some() && refusing.lasts_s().is_none());
        refusing.lasts = STUCK;
        assert_eq!(refusing.lasts_s(), Some(2.0));
        refusing.look(6, 9);
        assert!(
            refusing.waiting.is_none() && refusing.lasts_s().is_none(),
            "and on"
        );
    }
}
