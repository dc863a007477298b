//! The page of a run that has ended, in its own directory.

use measure::Note;
use report::out::Console;
use report::rundir::{RunDir, file};
use report::terminal::named;
use report::{html, load};
use serde::Serialize;

/// Prints what a run came to, for people as `text` and for programs as `result`, with what the user called it.
pub fn tell(dir: &RunDir, console: Console, text: &str, result: &impl Serialize) -> anyhow::Result<()> {
    console.human(&named(dir.label(), text, &console.style()))?;
    console.object(&dir.labelled(result))?;
    Ok(())
}

/// Says why a run is not to be believed where nothing else would.
pub fn tell_reason(console: Console, reasons: &[Note]) {
    let reason = reasons.first().filter(|_| console.quiet && !console.json);
    if let Some(reason) = reason {
        console.error(&format!("dropless: INVALID: {reason}"));
    }
}

/// Leaves the page of a run that has ended in its directory. Without one the run is as good: that is told, and no more.
pub fn leave(dir: &RunDir, console: Console) {
    if dir.note().is_some() {
        // Told already; a page would be drawn of half of it.
        return;
    }
    let drawn = load::load(dir.path())
        .map_err(anyhow::Error::from)
        .and_then(|run| Ok(html::write(&dir.file(file::REPORT), &[run])?));
    if let Err(error) = drawn {
        console.error(&format!("note: no {}: {error:#}", file::REPORT));
    }
}
