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
struct Drawing {
    /// All packets.
    whole: u64,
    ribbons: String,
    nodes: String,
}

/// A place of the drawing, from the left and from the top.
type Place = (f64, f64);

/// The picture, and its text alternative.
pub fn svg(flow: &Flow, id: &str) -> String {
    let mut drawing = Drawing {
        whole: flow.source.packets.max(1),
        ribbons: String::new(),
        nodes: String::new(),
    };
    let mut bottom = TOP + drawing.high(&flow.source).max(THINNEST);
    drawing.above(&flow.source, 0.0);
    if flow.further.is_empty() {
        bottom = bottom.max(drawing.split((0.0, TOP), &flow.ends, (430.0, TOP)));
    } else if let Some((first, rest)) = flow.ends.split_first() {
        // What the first end splits into is drawn at its height, and the other ends below all of that: no ribbon runs
        // through their words.
        let (middle, right) = (250.0, 560.0);
        let height = drawing.high(first);
        if first.packets > 0 {
            drawing.ribbon((BAR, TOP), (middle, TOP), first);
            drawing.above(first, middle);
        }
        let end = drawing.split((middle, TOP), &flow.further, (right, TOP));
        let below = end.max(TOP + height + APART);
        bottom = bottom.max(drawing.split((0.0, TOP + height), rest, (middle, below)));
    }
    let height = bottom + 24.0;
    let words = escape(&sentence(flow));
    format!(
        "<div class=\"scroll drawing\"><svg class=flow role=img aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {WIDTH} {height:.0}\">\
         <title id=\"{id}-t\">Where each packet went</title><desc id=\"{id}-d\">{words}</desc>\n{}{}</svg></div>\n",
        drawing.ribbons, drawing.nodes
    )
}

impl Drawing {
    fn high(&self, node: &Node) -> f64 {
        match node.packets {
            0 => 0.0,
            packets => (packets as f64 / self.whole as f64 * WHOLE).max(THINNEST),
        }
    }

    /// Draws `ends` in one column from `to` down, and the ribbons that lead there from `from` down; gives where all end.
    fn split(&mut self, from: Place, ends: &[Node], to: Place) -> f64 {
        let (mut leave, mut arrive) = (from.1, to.1);
        for end in ends.iter().filter(|end| end.packets > 0) {
            let height = self.high(end);
            self.ribbon((from.0 + BAR, leave), (to.0, arrive), end);
            self.bar(end, (to.0, arrive), (to.0 + BAR + 8.0, arrive + 11.0));
            leave += height;
            arrive += height.max(14.0) + APART;
        }
        arrive
    }

    /// A node at the top that ribbons leave to the right: its words stand above it.
    fn above(&mut self, node: &Node, x: f64) {
        self.bar(node, (x, TOP), (x, TOP - 9.0));
    }

    fn ribbon(&mut self, (x1, y1): Place, (x2, y2): Place, to: &Node) {
        let (middle, height) = (f64::midpoint(x1, x2), self.high(to));
        let (end1, end2, class) = (y1 + height, y2 + height, to.kind.class());
        // A `String` takes everything.
        let _ = writeln!(
            self.ribbons,
            "<path class=\"ribbon {class}\" d=\"M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}v{height:.2}\
             C{middle:.1} {end2:.1} {middle:.1} {end1:.1} {x1:.1} {end1:.1}z\"/>",
        );
    }

    /// The bar of a node, and its words at `label`.
    fn bar(&mut self, node: &Node, (x, top): Place, label: Place) {
        let (name, words) = (escape(&node.name), escape(&node.words));
        let (packets, part) = (count(node.packets), share(node.packets, self.whole));
        let (class, height) = (node.kind.class(), self.high(node).max(THINNEST));
        let (left, line) = label;
        let _ = writeln!(
            self.nodes,
            "<g><title>{name}: {packets} ({part}) {words}</title>\
             <rect class=\"node {class}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{BAR}\" height=\"{height:.2}\"/>\
             <text x=\"{left:.1}\" y=\"{line:.1}\"><tspan class=name>{name}</tspan> {packets} <tspan class=dim>{part}</tspan></text></g>",
        );
    }
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
