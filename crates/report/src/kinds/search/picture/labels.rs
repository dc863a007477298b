//! The numbers of the trials beside their points: only where there is room.

use maud::Markup;

use super::super::SearchedTrial;
use super::{Axes, LEFT, RIGHT, text};

/// More trials in one place are told by the first and the last.
const NUMBERS_MAX: usize = 4;
/// Points closer than this stand in one place.
const ONE_PLACE: f64 = 9.0;
/// Width of a character and height of a line, of the style's `number`.
const CHARACTER: f64 = 6.6;
const LINE: f64 = 12.0;
/// From the middle of a point to where nothing is drawn of it.
const POINT: f64 = 7.0;

/// A rectangle of the drawing: left, top, right, bottom.
#[derive(Clone, Copy)]
struct Space(f64, f64, f64, f64);

impl Space {
    fn overlaps(&self, other: &Self) -> bool {
        self.0 < other.2 && other.0 < self.2 && self.1 < other.3 && other.1 < self.3
    }
}

struct Place {
    x: f64,
    y: f64,
    numbers: Vec<u64>,
}

/// Writes what has room; the others are told by the points' titles and by the table.
pub fn write(shapes: &mut Vec<Markup>, axes: &Axes, trials: &[&SearchedTrial]) {
    let places = places(axes, trials);
    let mut taken: Vec<Space> = places
        .iter()
        .map(|place| Space(place.x - POINT, place.y - POINT, place.x + POINT, place.y + POINT))
        .collect();
    for place in &places {
        let words = words(&place.numbers);
        let width = words.len() as f64 * CHARACTER;
        let right = place.x + POINT;
        let left = place.x - POINT - width;
        let (above, beside, below) = (place.y - LINE - 2.0, place.y - LINE / 2.0, place.y + 2.0);
        let room = [
            (right, above),
            (left, above),
            (right, below),
            (left, below),
            (right, beside),
            (left, beside),
        ]
        .map(|(x, y)| Space(x, y, x + width, y + LINE))
        .into_iter()
        .find(|space| {
            space.0 >= LEFT && space.2 <= RIGHT && !taken.iter().any(|other| space.overlaps(other))
        });
        let Some(space) = room else { continue };
        taken.push(space);
        shapes.push(text("number start", space.0, space.3 - 2.0, &words));
    }
}

fn places(axes: &Axes, trials: &[&SearchedTrial]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for one in trials {
        let (x, y) = (axes.x(one.trial.ask.rate_pps), axes.y(one.trial.loss_ratio()));
        match places
            .iter_mut()
            .find(|place| (place.x - x).abs() < ONE_PLACE && (place.y - y).abs() < ONE_PLACE)
        {
            Some(place) => place.numbers.push(one.number),
            None => places.push(Place {
                x,
                y,
                numbers: vec![one.number],
            }),
        }
    }
    places
}

fn words(numbers: &[u64]) -> String {
    match numbers {
        [first, .., last] if numbers.len() > NUMBERS_MAX => {
            format!("{first} .. {last} ({} trials)", numbers.len())
        }
        all => all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
