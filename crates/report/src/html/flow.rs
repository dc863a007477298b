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
pub enum Kind {
    /// It came where it should.
    Good,
    /// It did not.
    Lost,
    /// Nobody knows where it went.
    Unknown,
    /// Neither.
    Plain,
}

impl Kind {
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
    pub kind: Kind,
    /// What it means.
    pub words: String,
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
    let start = bar(
        &mut drawing,
        &flow.source,
        columns[0],
        TOP,
        high(flow.source.packets).max(THINNEST),
        whole,
    );
    let mut bottom = start + high(flow.source.packets);
    let middle = split(
        &mut drawing,
        (columns[0], start),
        &flow.ends,
        columns[1],
        &high,
        whole,
    );
    bottom = bottom.max(middle.1);
    if let (Some(first), false) = (middle.0, flow.further.is_empty()) {
        bottom = bottom.max(
            split(
                &mut drawing,
                (columns[1], first),
                &flow.further,
                columns[2],
                &high,
                whole,
            )
            .1,
        );
    }
    let height = bottom + 24.0;
    let words = escape(&sentence(flow));
    format!(
        "<svg class=flow role=img aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {WIDTH} {height:.0}\">\
         <title id=\"{id}-t\">Where each packet went</title><desc id=\"{id}-d\">{words}</desc>\n{}{}</svg>\n",
        drawing.ribbons, drawing.nodes
    )
}

/// Draws `ends` in one column and the ribbons that lead there; gives the top of the first, and where all end.
fn split(
    drawing: &mut Drawing,
    from: (f64, f64),
    ends: &[Node],
    x: f64,
    high: &dyn Fn(u64) -> f64,
    whole: f64,
) -> (Option<f64>, f64) {
    let (mut leave, mut arrive, mut first) = (from.1, TOP, None);
    let shown = ends.iter().filter(|end| end.packets > 0);
    for end in shown {
        let height = high(end.packets);
        ribbon(drawing, (from.0 + BAR, leave), (x, arrive), height, end.kind);
        bar(drawing, end, x, arrive, height, whole);
        first = first.or(Some(arrive));
        leave += height;
        arrive += height.max(14.0) + APART;
    }
    (first, arrive)
}

fn ribbon(drawing: &mut Drawing, from: (f64, f64), to: (f64, f64), height: f64, kind: Kind) {
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

/// The bar of a node and its words; gives its top.
fn bar(drawing: &mut Drawing, node: &Node, x: f64, top: f64, height: f64, whole: f64) -> f64 {
    let (name, words) = (escape(&node.name), escape(&node.words));
    let packets = count(node.packets);
    let part = share(node.packets, whole as u64);
    let (left, line) = (x + BAR + 8.0, top + 11.0);
    let class = node.kind.class();
    let _ = writeln!(
        drawing.nodes,
        "<g><title>{name}: {packets} ({part}) {words}</title>\
         <rect class=\"node {class}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{BAR}\" height=\"{height:.2}\"/>\
         <text x=\"{left:.1}\" y=\"{line:.1}\"><tspan class=name>{name}</tspan> {packets} <tspan class=dim>{part}</tspan></text></g>",
    );
    top
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

    #[test]
    fn no_ribbon_covers_words() {
        let node = |name: &str, packets| Node {
            name: name.to_owned(),
            packets,
            kind: Kind::Plain,
            words: String::new(),
        };
        let flow = Flow {
            source: node("intended", 100),
            ends: vec![node("accepted", 60), node("unsent", 40)],
            further: vec![node("received", 50), node("lost", 10)],
        };
        let drawn = svg(&flow, "t");
        assert!(drawn.rfind("class=\"ribbon").unwrap_or(usize::MAX) < drawn.find("<text").unwrap_or(0));
    }
}
