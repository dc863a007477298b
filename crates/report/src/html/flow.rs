//! The ledger as a picture: ribbons from what was due to where it ended, as wide as their packets are many.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::element::{drawing, tenths};
use crate::number::{count, share};

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
    ribbons: Vec<Markup>,
    nodes: Vec<Markup>,
}

/// A place of the drawing, from the left and from the top.
type Place = (f64, f64);

/// The picture, and its text alternative.
pub fn svg(flow: &Flow, id: &str) -> Markup {
    let mut drawn = Drawing {
        whole: flow.source.packets.max(1),
        ribbons: Vec::new(),
        nodes: Vec::new(),
    };
    let mut bottom = TOP + drawn.high(&flow.source).max(THINNEST);
    drawn.above(&flow.source, 0.0);
    if flow.further.is_empty() {
        bottom = bottom.max(drawn.split((0.0, TOP), &flow.ends, (430.0, TOP)));
    } else if let Some((first, rest)) = flow.ends.split_first() {
        // What the first end splits into is drawn at its height, and the other ends below all of that: no ribbon runs
        // through their words.
        let (middle, right) = (250.0, 560.0);
        let height = drawn.high(first);
        if first.packets > 0 {
            drawn.ribbon((BAR, TOP), (middle, TOP), first);
            drawn.above(first, middle);
        }
        let end = drawn.split((middle, TOP), &flow.further, (right, TOP));
        let below = end.max(TOP + height + APART);
        bottom = bottom.max(drawn.split((0.0, TOP + height), rest, (middle, below)));
    }
    let (words, shapes) = (sentence(flow), [drawn.ribbons, drawn.nodes].concat());
    let told = ["Where each packet went", &*words];
    html! { div.scroll.drawing { (drawing(id, "flow", bottom + 24.0, told, &shapes)) } }
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
        let line = format!(
            "M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}v{height:.2}\
             C{middle:.1} {end2:.1} {middle:.1} {end1:.1} {x1:.1} {end1:.1}z"
        );
        self.ribbons.push(html! { path.ribbon.(class) d=(line) {} });
    }

    /// The bar of a node, and its words at `label`.
    fn bar(&mut self, node: &Node, (x, top): Place, label: Place) {
        let (name, packets, part) = (&node.name, count(node.packets), share(node.packets, self.whole));
        let height = format!("{:.2}", self.high(node).max(THINNEST));
        self.nodes.push(html! {
            g {
                title { (name) ": " (packets) " (" (part) ") " (node.words) }
                rect.node.(node.kind.class()) x=(tenths(x)) y=(tenths(top)) width=(BAR) height=(height) {}
                text x=(tenths(label.0)) y=(tenths(label.1)) {
                    tspan.name { (name) } " " (packets) " " tspan.dim { (part) }
                }
            }
        });
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
            let drawn = svg(&flow, "t").into_string();
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
