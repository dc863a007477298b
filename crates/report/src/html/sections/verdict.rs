//! The verdict in words, and the few figures everybody asks for first.

use super::super::element::{escape, prose};
use super::made;
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
    let name = is_named.then(|| {
        format!(
            "<p class=dim><b>{}</b> {}</p>",
            escape(&run.name),
            escape(&run.folder)
        )
    });
    let name = name.unwrap_or_default();
    let mut more: Vec<String> = reasons.iter().map(|reason| prose(reason)).collect();
    more.extend(run.missing.iter().map(|missing| escape(missing)));
    more.extend(run.result.expectations().iter().map(|expectation| {
        let word = if expectation.met { "met" } else { "FAILED" };
        format!("expectation {} {word}", escape(&expectation.text))
    }));
    let more = match more.as_slice() {
        [] => String::new(),
        lines => format!("<ul><li>{}</li></ul>", lines.join("</li><li>")),
    };
    let strip = if is_named { made::strip(run) } else { String::new() };
    format!(
        "<section class=\"verdict {}\" aria-label=verdict>{name}<p class=words>{}</p>{more}{strip}</section>\n",
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
