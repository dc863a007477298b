//! The general ledger of any job: what entered, what left, and which places what is missing is charged to.

use serde::{Deserialize, Serialize};

use crate::place::{Owner, Place, Precision};

/// What one place counted, and how much of that is missing packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Charge {
    /// The place.
    pub place: String,
    /// Whose it is.
    pub owner: Owner,
    /// How much it knows.
    pub precision: Precision,
    /// What it counted.
    pub counted: u64,
    /// Missing packets charged to it, at most what it counted.
    pub charged: u64,
}

/// The general ledger of any job: `entered = left + sum(charged) + unexplained`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Balance {
    /// Packets that entered.
    pub entered: u64,
    /// Packets that left as they should.
    pub left: u64,
    /// Every place that counted any, in the order in which they were charged.
    pub places: Vec<Charge>,
    /// Missing packets that no place accounts for.
    pub unexplained: u64,
}

impl Charge {
    /// All that `place` counted, of a result that allotted nothing.
    pub(crate) fn whole(place: Place, count: u64) -> Self {
        Self {
            place: place.name.into_owned(),
            owner: place.owner,
            precision: place.precision,
            counted: count,
            charged: count,
        }
    }
}

impl Balance {
    /// Allots what is missing to the places, each at most what it counted.
    pub fn of(entered: u64, left: u64, counted: impl IntoIterator<Item = (Place, u64)>) -> Self {
        let mut counted: Vec<(Place, u64)> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
        counted.sort_by(|(one, _), (other, _)| (one.rank(), &one.name).cmp(&(other.rank(), &other.name)));
        let mut missing = entered.saturating_sub(left);
        let charge = |(place, counted): (Place, u64)| {
            let charged = counted.min(missing);
            missing -= charged;
            Charge {
                charged,
                ..Charge::whole(place, counted)
            }
        };
        let places = counted.into_iter().map(charge).collect();
        Self {
            entered,
            left,
            places,
            unexplained: missing,
        }
    }

    /// Of a result of before there was one.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Packets that did not leave, although nobody asked for that.
    pub fn lost(&self) -> u64 {
        let on_purpose = self.places.iter().filter(|charge| charge.owner == Owner::Purpose);
        let missing = self.entered.saturating_sub(self.left);
        on_purpose.fold(missing, |lost, charge| lost.saturating_sub(charge.charged))
    }

    /// What of the missing packets this place was charged with.
    pub fn charged(&self, place: &str) -> u64 {
        let mut places = self.places.iter();
        let found = places.find(|charge| charge.place == place);
        found.map_or(0, |charge| charge.charged)
    }

    /// A part of what entered (0 to 1); `None` when nothing did.
    pub fn share(&self, packets: u64) -> Option<f64> {
        (self.entered > 0).then(|| packets as f64 / self.entered as f64)
    }

    /// Packets that left or were counted by places that saw them, beyond those that entered: of a job that counts both
    /// itself there are none.
    pub fn surplus(&self) -> u64 {
        let exact = self
            .places
            .iter()
            .filter(|charge| charge.precision == Precision::Exact);
        exact
            .fold(self.left, |sum, charge| sum.saturating_add(charge.counted))
            .saturating_sub(self.entered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charged(balance: &Balance) -> Vec<(&str, u64)> {
        balance
            .places
            .iter()
            .map(|charge| (&*charge.place, charge.charged))
            .collect()
    }

    #[test]
    fn what_saw_the_packets_is_charged_before_what_counted_frames() {
        let counted =
            ["rx_missed", "too_old", "reflector_tx_full", "fault_drop"].map(|name| (Place::named(name), 10));
        let balance = Balance::of(100, 75, counted);
        let expected = [
            ("fault_drop", 10),
            ("reflector_tx_full", 10),
            ("too_old", 5),
            ("rx_missed", 0),
        ];
        assert_eq!(charged(&balance), expected);
        assert_eq!((balance.unexplained, balance.surplus()), (0, 0));
    }

    #[test]
    fn what_nobody_counted_is_unexplained_and_what_is_too_much_is_a_surplus() {
        let balance = Balance::of(10, 4, [(Place::of_job("not_ip"), 1)]);
        assert_eq!((balance.unexplained, balance.surplus()), (5, 0));
        let balance = Balance::of(10, 9, [(Place::of_job("not_ip"), 3)]);
        assert_eq!((balance.unexplained, balance.surplus()), (0, 2));
        assert_eq!(charged(&balance), [("not_ip", 1)]);
    }
}
