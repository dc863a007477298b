//! The ledger as a picture: ribbons from what was due to where it ended, as wide as their packets are many.

use std::fmt::Write as _;

use super::element::escape;
use crate::number::{count, share};

/// Of the drawing, in its own units.
const WIDTH: f64 = 960.0;
/// The whole of the packets is this high.
const WHOLE: f64 = 220.0;
/// Thinner ribbons are drawn like this: what was lost must be seen, be it one packet in a million.
const THINNEST: f64 = 3.0;
/// Between two ends: room for two lines of words.
const APART: f64 = 18.0;
const BAR: f64 = 14.0;
const TOP: f64 = 34.0;

/// Whether an end is what was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It came where it should.
    Good,
    /// It did not.
    Lost,
    /// Nobody knows where it went.
    Unknown,
    /// Neither.
    Plain,
}

impl End {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
            Self::Plain => "plain",
        }
    }
}

/// Where packets end, or pass through.
pub struct Node {
    /// Its name.
    pub name: String,
    /// Packets.
    pub packets: u64,
    /// How good that is.
    pub kind: End,
    /// What it means.
    pub words: String,
}

/// An end of so many packets.
pub fn node(name: &str, packets: u64, kind: End, words: &str) -> Node {
    Node {
        name: name.to_owned(),
        packets,
        kind,
        words: words.to_owned(),
    }
}

/// `source` splits into `ends`; the first of these splits again into `further`, if there are any.
pub struct Flow {
    /// Where all begin.
    pub source: Node,
    /// Into what that splits.
    pub ends: Vec<Node>,
    /// Into what the first of these splits.
    pub further: Vec<Node>,
}

/// Ribbons lie below all bars and words, whichever is made first.
#[derive(Default)]
struct Drawing {
    ribbons: String,
    nodes: String,
}

/// The picture, and its text alternative.
pub fn svg(flow: &Flow, id: &str) -> String {
    let whole = flow.source.packets.max(1) as f64;
    let high = |packets: u64| {
        if packets == 0 {
            0.0
        } else {
            (packets as f64 / whole * WHOLE).max(THINNEST)
        }
    };
    let columns = if flow.further.is_empty() {
        [0.0, 430.0, 430.0]
    } else {
        [0.0, 250.0, 560.0]
    };
    let mut drawing = Drawing::default();
    let mut bottom = TOP + high(flow.source.packets).max(THINNEST);
    above(&mut drawing, &flow.source, columns[0], bottom - TOP, whole);
    let from = (columns[0], TOP);
    if flow.further.is_empty() {
        let end = split(&mut drawing, from, &flow.ends, (columns[1], TOP), &high, whole);
        bottom = bottom.max(end);
    } else if let Some((first, rest)) = flow.ends.split_first() {
        // What the first end splits into is drawn at its height, and the other ends below all of that: no ribbon runs
        // through their words.
        let height = high(first.packets);
        if first.packets > 0 {
            ribbon(
                &mut drawing,
                (from.0 + BAR, TOP),
                (columns[1], TOP),
                height,
                first.kind,
            );
            above(&mut drawing, first, columns[1], height, whole);
        }
        let from_first = (columns[1], TOP);
        let end = split(
            &mut drawing,
            from_first,
            &flow.further,
            (columns[2], TOP),
            &high,
            whole,
        );
        let below = end.max(TOP + height + APART);
        let end = split(
            &mut drawing,
            (from.0, TOP + height),
            rest,
            (columns[1], below),
            &high,
            whole,
        );
        bottom = bottom.max(end);
    }
    let height = bottom + 24.0;
    let words = escape(&sentence(flow));
    format!(
        "<div class=\"scroll drawing\"><svg class=flow role=img aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {WIDTH} {height:.0}\">\
         <title id=\"{id}-t\">Where each packet went</title><desc id=\"{id}-d\">{words}</desc>\n{}{}</svg></div>\n",
        drawing.ribbons, drawing.nodes
    )
}

/// Draws `ends` in one column from `to` down, and the ribbons that lead there from `from` down; gives where all end.
fn split(
    drawing: &mut Drawing,
    from: (f64, f64),
    ends: &[Node],
    to: (f64, f64),
    high: &dyn Fn(u64) -> f64,
    whole: f64,
) -> f64 {
    let (mut leave, mut arrive) = (from.1, to.1);
    for end in ends.iter().filter(|end| end.packets > 0) {
        let height = high(end.packets);
        ribbon(drawing, (from.0 + BAR, leave), (to.0, arrive), height, end.kind);
        bar(
            drawing,
            end,
            (to.0, arrive),
            height,
            (to.0 + BAR + 8.0, arrive + 11.0),
            whole,
        );
        leave += height;
        arrive += height.max(14.0) + APART;
    }
    arrive
}

/// A node at the top that ribbons leave to the right: its words stand above it.
fn above(drawing: &mut Drawing, end: &Node, x: f64, height: f64, whole: f64) {
    bar(drawing, end, (x, TOP), height, (x, TOP - 9.0), whole);
}

fn ribbon(drawing: &mut Drawing, from: (f64, f64), to: (f64, f64), height: f64, kind: End) {
    let middle = f64::midpoint(from.0, to.0);
    let ((x1, y1), (x2, y2)) = (from, to);
    // A `String` takes everything.
    let _ = writeln!(
        drawing.ribbons,
        "<path class=\"ribbon {}\" d=\"M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}v{height:.2}\
         C{middle:.1} {:.1} {middle:.1} {:.1} {x1:.1} {:.1}z\"/>",
        kind.class(),
        y2 + height,
        y1 + height,
        y1 + height,
    );
}

/// The bar of a node at `place`, and its words at `label`.
fn bar(drawing: &mut Drawing, node: &Node, place: (f64, f64), height: f64, label: (f64, f64), whole: f64) {
    let (name, words) = (escape(&node.name), escape(&node.words));
    let packets = count(node.packets);
    let part = share(node.packets, whole as u64);
    let ((x, top), (left, line)) = (place, label);
    let class = node.kind.class();
    let _ = writeln!(
        drawing.nodes,
        "<g><title>{name}: {packets} ({part}) {words}</title>\
         <rect class=\"node {class}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{BAR}\" height=\"{height:.2}\"/>\
         <text x=\"{left:.1}\" y=\"{line:.1}\"><tspan class=name>{name}</tspan> {packets} <tspan class=dim>{part}</tspan></text></g>",
    );
}

/// The same in words.
fn sentence(flow: &Flow) -> String {
    let list = |nodes: &[Node]| {
        let parts: Vec<String> = nodes
            .iter()
            .map(|node| format!("{} {}", count(node.packets), node.name))
            .collect();
        parts.join(", ")
    };
    let mut text = format!(
        "{} {}: {}.",
        count(flow.source.packets),
        flow.source.name,
        list(&flow.ends)
    );
    if let (Some(first), false) = (flow.ends.first(), flow.further.is_empty()) {
        let _ = write!(text, " Of those {}: {}.", first.name, list(&flow.further));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two numbers after each other, of what follows `start` in `part`.
    fn numbers(part: &str, start: &str, between: &str) -> (f64, f64) {
        let (one, rest) = part
            .split_once(start)
            .and_then(|(_, rest)| rest.split_once(between))
            .unwrap();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
        (one.parse().unwrap(), rest[..end].parse().unwrap())
    }

    /// However the packets are spread: where words stand, no ribbon goes from one column to the next.
    #[test]
    fn no_ribbon_runs_through_words() {
        let node = |name: &str, packets| Node {
            name: name.to_owned(),
            packets,
            kind: End::Plain,
            words: String::new(),
        };
        for (accepted, unsent, received) in [(60, 40, 50), (1, 99, 0), (100, 0, 98), (51, 49, 50)] {
            let further = vec![
                node("received", received),
                node("late", (accepted - received) / 2),
                node("lost", accepted - received - (accepted - received) / 2),
            ];
            let flow = Flow {
                source: node("intended", accepted + unsent),
                ends: vec![node("accepted", accepted), node("unsent", unsent)],
                further,
            };
            let drawn = svg(&flow, "t");
            for text in drawn.split("<text ").skip(1) {
                let (left, line) = numbers(text, "x=\"", "\" y=\"");
                for ribbon in drawn.split("class=\"ribbon").skip(1) {
                    let (x1, y1) = numbers(ribbon, "d=\"M", " ");
                    let curve = ribbon.split_once('C').unwrap().1;
                    let ends: Vec<&str> = curve.split_once('v').unwrap().0.split(' ').collect();
                    let (x2, y2): (f64, f64) = (ends[4].parse().unwrap(), ends[5].parse().unwrap());
                    let height = curve.split_once('v').unwrap().1.split_once('C').unwrap().0;
                    let bottom = y1.max(y2) + height.parse::<f64>().unwrap();
                    let is_beside = left >= x2 || left + 100.0 <= x1;
                    let is_apart = line <= y1.min(y2) || line - 11.0 >= bottom;
                    assert!(is_beside || is_apart, "{text} {ribbon}");
                }
            }
        }
    }
}
