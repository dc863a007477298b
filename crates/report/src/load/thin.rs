//! Makes a few thousand points of any number of rows while they are read, so that memory is bounded and no extreme is lost.

/// Points that two can become one of, the later behind the earlier.
pub trait Merge {
    /// Takes `later` in.
    fn merge(&mut self, later: Self);
}

/// All of `points` as one; nothing where there is none.
pub fn merged<T: Merge + Clone>(points: &[T]) -> Option<T> {
    points.iter().cloned().reduce(|mut one, next| {
        one.merge(next);
        one
    })
}

/// Points made of equally many rows each. When there are too many, each two neighbours become one.
#[derive(Clone, Debug)]
pub struct Thinned<T> {
    points: Vec<T>,
    points_max: usize,
    rows_a_point: u64,
    in_last: u64,
}

impl<T: Merge> Thinned<T> {
    /// At the end there are at most `points_max` points, and more than half of that where there are that many rows.
    pub fn new(points_max: usize) -> Self {
        Self {
            points: Vec::new(),
            points_max: points_max.max(2),
            rows_a_point: 1,
            in_last: 0,
        }
    }

    /// Adds one row.
    pub fn push(&mut self, row: T) {
        match self.points.last_mut() {
            Some(last) if self.in_last < self.rows_a_point => {
                last.merge(row);
                self.in_last += 1;
            }
            _ => {
                if self.points.len() >= self.points_max {
                    self.halve();
                    return self.push(row);
                }
                self.points.push(row);
                self.in_last = 1;
            }
        }
    }

    fn halve(&mut self) {
        let old = std::mem::take(&mut self.points);
        let is_odd = old.len() % 2 == 1;
        let mut rows = old.into_iter();
        while let Some(mut first) = rows.next() {
            if let Some(second) = rows.next() {
                first.merge(second);
            }
            self.points.push(first);
        }
        if !is_odd {
            self.in_last += self.rows_a_point;
        }
        self.rows_a_point *= 2;
    }

    /// The points so far.
    pub fn points(&self) -> &[T] {
        &self.points
    }

    /// Rows that went into each point but the last.
    pub fn rows_a_point(&self) -> u64 {
        self.rows_a_point
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Extremes(u64, u64, u64);

    impl Merge for Extremes {
        fn merge(&mut self, later: Self) {
            *self = Self(self.0.min(later.0), self.1.max(later.1), self.2 + later.2);
        }
    }

    proptest! {
        /// No row is lost, none is counted twice, the largest and the smallest are there, and the bound holds.
        #[test]
        fn nothing_is_hidden(rows in prop::collection::vec(0_u64..1000, 0..400), points_max in 2_usize..40) {
            let mut thinned = Thinned::new(points_max);
            for &value in &rows {
                thinned.push(Extremes(value, value, 1));
            }
            let points = thinned.points();
            prop_assert!(points.len() <= points_max);
            prop_assert!(rows.len() < points_max || points.len() * 2 >= points_max - 1);
            prop_assert_eq!(points.iter().map(|point| point.2).sum::<u64>(), rows.len() as u64);
            prop_assert_eq!(points.iter().map(|point| point.0).min(), rows.iter().copied().min());
            prop_assert_eq!(points.iter().map(|point| point.1).max(), rows.iter().copied().max());
            if let Some((_, whole)) = points.split_last() {
                prop_assert!(whole.iter().all(|point| point.2 == thinned.rows_a_point()));
            }
        }
    }
}
