//! When a port lost its link: of one that does so again and again the first times, the last ones, and those between as one.

use std::collections::VecDeque;

use measure::verdict::LinkLoss;

/// So many are told one by one from the beginning of a run, and so many from its end: what a run keeps does not grow with it.
const TOLD: usize = 16;

/// The losses of one port's link.
#[derive(Default)]
pub struct LinkLosses {
    first: Vec<LinkLoss>,
    between: Option<LinkLoss>,
    last: VecDeque<LinkLoss>,
}

impl LinkLosses {
    /// One more, which is later than all others.
    pub fn push(&mut self, loss: LinkLoss) {
        if self.first.len() < TOLD {
            return self.first.push(loss);
        }
        self.last.push_back(loss);
        if self.last.len() <= TOLD {
            return;
        }
        let Some(loss) = self.last.pop_front() else { return };
        match &mut self.between {
            None => self.between = Some(loss),
            Some(between) => {
                between.more += 1;
                // Each is over: a later one has begun since.
                let down_ns = between
                    .down_ns
                    .unwrap_or(0)
                    .saturating_add(loss.down_ns.unwrap_or(0));
                between.down_ns = Some(down_ns);
            }
        }
    }

    /// When the one that is not over began, ns after the start.
    pub fn down_since(&self) -> Option<u64> {
        let newest = self.last.back().or(self.first.last());
        newest
            .filter(|loss| loss.down_ns.is_none())
            .map(|loss| loss.at_ns)
    }

    /// The link is back.
    pub fn end(&mut self, at_ns: u64) {
        if let Some(loss) = self.last.back_mut().or(self.first.last_mut()) {
            loss.down_ns = Some(at_ns.saturating_sub(loss.at_ns));
        }
    }

    /// All of them, in their order.
    pub fn told(&self) -> impl Iterator<Item = &LinkLoss> {
        self.first.iter().chain(&self.between).chain(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_the_first_and_the_last_are_told_and_none_is_forgotten() {
        let mut losses = LinkLosses::default();
        let count: u64 = 10_000;
        for at_ns in (0..count).map(|number| number * 100) {
            assert_eq!(losses.down_since(), None);
            losses.push(LinkLoss {
                port: "memif:m".into(),
                at_ns,
                ..LinkLoss::default()
            });
            assert_eq!(losses.down_since(), Some(at_ns));
            if at_ns < (count - 1) * 100 {
                losses.end(at_ns + 7);
            }
        }
        let told: Vec<&LinkLoss> = losses.told().collect();
        assert_eq!(told.len(), 2 * TOLD + 1);
        assert!(told.is_sorted_by_key(|loss| loss.at_ns));
        assert_eq!(told.iter().map(|loss| loss.more + 1).sum::<u64>(), count);
        let down_ns = told.iter().filter_map(|loss| loss.down_ns).sum::<u64>();
        assert_eq!((down_ns, told[2 * TOLD].down_ns), ((count - 1) * 7, None));
        assert_eq!(
            (told[TOLD].at_ns, told[TOLD].more),
            (1600, count - 2 * TOLD as u64 - 1)
        );
    }
}
