//! What every command needs that puts rules onto an interface: why it may not, whom they would cut off, and what the
//! interface counts itself.

pub mod lockout;
pub mod received;
pub mod refusals;

use measure::{Judged, Note};
use report::published::State;

/// What was judged came in, what was allowed went on: of this run, where it took over what others had judged `before`.
pub fn total(state: &mut State, judged: &Judged, before: &Judged) {
    let bytes = |judged: &Judged| judged.allowed_bytes + judged.denied_bytes;
    state.total.received = judged.packets().saturating_sub(before.packets());
    state.total.received_bytes = bytes(judged).saturating_sub(bytes(before));
    state.total.sent = judged.allowed.saturating_sub(before.allowed);
    state.total.sent_bytes = judged.allowed_bytes.saturating_sub(before.allowed_bytes);
}

/// What is to be said of counts that were held against the interface's own, or could not be: a reason to believe nothing,
/// or a note.
pub fn judge(
    check: Option<measure::InterfaceCheck>,
    interface: &str,
    mode: &str,
) -> Result<Option<Note>, Note> {
    match check {
        Some(check) if !check.holds() => {
            let text = format!(
                "{} judged, but {interface} received {} to {} meanwhile, by its own counter",
                check.judged, check.at_least, check.at_most
            );
            Err(Note::new("counters_disagree", text))
        }
        Some(_) => Ok(None),
        None => {
            let text = format!(
                "no other counter of {interface} could be held against these counts ({mode} mode; drivers differ in what they count as received)"
            );
            Ok(Some(Note::new("counts_not_checked", text)))
        }
    }
}
