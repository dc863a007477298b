//! The verdict in words, and the few figures everybody asks for first.

use super::super::element::{escape, prose};
use crate::kind::{Tile, Verdict};
use crate::load::Loaded;

/// What the run came to, in a frame.
pub fn block(run: &Loaded, is_named: bool) -> String {
    let Verdict {
        standing,
        words,
        reasons,
        ..
    } = run.result.verdict();
    let name = is_named.then(|| format!("<p class=dim>{}</p>", escape(&run.name)));
    let name = name.unwrap_or_default();
    let mut more: String = reasons
        .iter()
        .map(|reason| format!("<li>{}</li>", prose(reason)))
        .collect();
    for missing in &run.missing {
        more += &format!("<li>{}</li>", escape(missing));
    }
    for expectation in run.result.expectations() {
        let word = if expectation.met { "met" } else { "FAILED" };
        more += &format!("<li>expectation {} {word}</li>", escape(&expectation.text));
    }
    let more = if more.is_empty() {
        more
    } else {
        format!("<ul>{more}</ul>")
    };
    format!(
        "<section class=\"verdict {}\" aria-label=verdict>{name}<p class=words>{}</p>{more}</section>\n",
        standing.class(),
        prose(&words)
    )
}

/// The first figures of one run.
pub fn tiles(run: &Loaded) -> String {
    let tiles: String = run.result.tiles().iter().map(Tile::html).collect();
    if tiles.is_empty() {
        return tiles;
    }
    format!("<dl class=tiles>{tiles}</dl>\n")
}
