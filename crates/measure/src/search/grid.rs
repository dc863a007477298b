//! The rates that a search tries: evenly spaced in relative terms, so that a width is a whole number of steps.

/// A rate by its place on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Load(pub i64);

/// All rates of one search, from the lowest to the highest.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    min_pps: f64,
    max_pps: f64,
    steps: i64,
}

impl Grid {
    /// A grid on which one step is at most `width`, the narrowest of all goals.
    pub fn new(min_pps: f64, max_pps: f64, width: f64) -> Grid {
        let span = (max_pps / min_pps).ln();
        Grid {
            min_pps,
            max_pps,
            steps: (span / log_width(width)).ceil().max(1.0) as i64,
        }
    }

    #[allow(clippy::unused_self, reason = "it is this grid's end, as max() is")]
    pub fn min(&self) -> Load {
        Load(0)
    }

    pub fn max(&self) -> Load {
        Load(self.steps)
    }

    /// Steps within `width`; at least one.
    pub fn steps_in(&self, width: f64) -> i64 {
        let step = (self.max_pps / self.min_pps).ln() / self.steps as f64;
        // A hair of rounding must not cost a whole step.
        ((log_width(width) / step) * (1.0 + 1e-9)).floor().max(1.0) as i64
    }

    pub fn rate_pps(&self, load: Load) -> f64 {
        if load >= self.max() {
            return self.max_pps;
        }
        if load <= self.min() {
            return self.min_pps;
        }
        let part = load.0 as f64 / self.steps as f64;
        let rate = self.min_pps * (self.max_pps / self.min_pps).powf(part);
        // A whole number reads better, and where steps are hundreds of packets it is the same rate.
        let step = rate * ((self.max_pps / self.min_pps).ln() / self.steps as f64);
        if step >= 100.0 { rate.round() } else { rate }
    }

    /// The highest rate of the grid at or below `rate_pps`, within the grid.
    pub fn at_or_below(&self, rate_pps: f64) -> Load {
        if rate_pps.is_nan() || rate_pps <= self.min_pps {
            return self.min();
        }
        let part = (rate_pps / self.min_pps).ln() / (self.max_pps / self.min_pps).ln();
        Load(((part * self.steps as f64) + 1e-9).floor() as i64).min(self.max())
    }
}

/// A width as the distance of logarithms: so it adds up.
fn log_width(width: f64) -> f64 {
    -(-width).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_never_wider_than_asked() {
        for width in [0.5 - 1e-9, 0.1, 0.005, 0.000_01] {
            let grid = Grid::new(1e3, 14.88e6, width);
            for place in [0, grid.steps / 3, grid.steps - 1] {
                let (low, high) = (grid.rate_pps(Load(place)), grid.rate_pps(Load(place + 1)));
                // Rounding to whole packets moves a rate by a half, where a step is a hundred or more.
                assert!(
                    high > low && (high - low) / high <= width * 1.01,
                    "{low} {high} {width}"
                );
            }
        }
    }

    #[test]
    fn rates_find_their_place() {
        let grid = Grid::new(1e4, 1e6, 0.005);
        assert_eq!(grid.at_or_below(1e9), grid.max());
        assert_eq!(grid.at_or_below(0.0), grid.min());
        assert_eq!(grid.at_or_below(f64::NAN), grid.min());
        let place = grid.at_or_below(123_456.0);
        assert!(grid.rate_pps(place) <= 123_457.0 && grid.rate_pps(Load(place.0 + 1)) > 123_456.0);
    }

    #[test]
    fn a_range_of_one_rate_is_a_grid_too() {
        let grid = Grid::new(1e4, 1e4, 0.005);
        assert_eq!((grid.rate_pps(grid.min()), grid.rate_pps(grid.max())), (1e4, 1e4));
    }
}
