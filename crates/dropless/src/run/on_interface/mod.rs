//! What every command needs that puts rules onto an interface: why it may not, whom they would cut off, and what the
//! interface counts itself.

pub mod lockout;
pub mod received;
pub mod refusals;
pub mod tags;

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use measure::{Judged, Note};
use report::published::State;
use rules::Totals;
use xdp::{AttachError, Kept, Mode};

use super::privileges;
use super::signals::Interrupt;

/// Why rules on an interface are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Their time is over.
    Planned,
    /// Somebody asked for it.
    Asked,
    /// Somebody took them off the interface, or that has gone.
    Displaced,
}

impl End {
    /// Of rules that are in force for so long, out of the planned time; `None` while they go on.
    pub fn of(
        kept: &Kept,
        interrupt: &Interrupt,
        (elapsed, planned): (Duration, Option<Duration>),
    ) -> Option<Self> {
        if !kept.is_in_force() {
            Some(Self::Displaced)
        } else if interrupt.is_set() {
            Some(Self::Asked)
        } else if planned.is_some_and(|planned| elapsed >= planned) {
            Some(Self::Planned)
        } else {
            None
        }
    }
}

/// Takes rules off their interface, which are over by this `end`, and says what they met to the last packet. Where that does not
/// go as it should, they have met what can be read: with a reason to believe nothing, or a note.
pub fn take_off(kept: &mut Kept, interface: &str, end: End) -> Result<(Totals, Result<Option<Note>, Note>)> {
    let (totals, said) = match kept.detach() {
        Ok(totals) => return Ok((totals, Ok(None))),
        // Somebody else took them off, and that is told: these counts are final, too.
        Err(_) if end == End::Displaced => (kept.totals(), Ok(None)),
        Err(error) => {
            let said = not_taken_off(&error, interface, kept.is_in_force());
            (kept.totals(), said)
        }
    };
    let totals = totals.map_err(|error| anyhow!("the last counts cannot be read: {error}"))?;
    Ok((totals, said))
}

/// What is to be said of rules that were not taken off in order, where they are still in force or not.
fn not_taken_off(error: &AttachError, interface: &str, is_in_force: bool) -> Result<Option<Note>, Note> {
    if is_in_force {
        let text = format!(
            "the rules could not be taken off {interface} ({error}): they judge until this process has ended, and what they meet until then is not counted"
        );
        return Err(Note::new("not_taken_off", text));
    }
    let text = format!(
        "the rules are off {interface}, but this did not go as it should ({error}): what they met last may not be counted"
    );
    Ok(Some(Note::new("last_not_counted", text)))
}

/// Gives up what root may and rules on `interface` do not need once they are in force: what is done from here on is what is
/// done at an AF_XDP port, programs are loaded and put onto interfaces.
pub fn drop_rights(interface: &str) -> Option<Note> {
    let port = format!("xdp:{interface}").parse().ok()?;
    privileges::Kept::with(&[port], false).drop_the_rest()
}

/// Where packets really meet the rules, as the kernel says and not as was wanted.
pub fn mode_in_force(kept: &Kept) -> Result<&'static str> {
    let found = kept
        .in_force()
        .context("the kernel does not say what is in force")?;
    Ok(found.and_then(|found| found.mode).map_or("unknown", Mode::name))
}

/// The reason to believe nothing of rules that were taken off, s after they came into force.
pub fn displaced(interface: &str, after_s: f64) -> Note {
    let text = format!(
        "the rules were taken off {interface} after {after_s:.1} s by somebody else, or the interface has gone: what arrived since was not judged"
    );
    Note::new("displaced", text)
}

/// What was judged came in, what was allowed went on: of this run, where it took over what others had judged `before`.
pub fn total(state: &mut State, judged: &Judged, before: &Judged) {
    let bytes = |judged: &Judged| judged.allowed_bytes + judged.denied_bytes;
    state.total.received = judged.packets().saturating_sub(before.packets());
    state.total.received_bytes = bytes(judged).saturating_sub(bytes(before));
    state.total.sent = judged.allowed.saturating_sub(before.allowed);
    state.total.sent_bytes = Some(judged.allowed_bytes.saturating_sub(before.allowed_bytes));
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

#[cfg(test)]
mod tests {
    use measure::InterfaceCheck;

    use super::*;

    #[test]
    fn rules_that_could_not_be_taken_off_are_told() {
        let error = || AttachError::Other(std::io::Error::from_raw_os_error(1));
        let reason = not_taken_off(&error(), "eth1", true).expect_err("they judge still");
        assert_eq!(reason.code, "not_taken_off");
        assert!(
            reason.text.contains("eth1") && reason.text.contains("not permitted"),
            "{}",
            reason.text
        );
        let note = not_taken_off(&error(), "eth1", false).expect("they are off");
        assert!(note.is_some_and(|note| note.code == "last_not_counted"));
    }

    #[test]
    fn counts_that_the_interface_denies_are_a_reason_to_believe_nothing() {
        let judged = |judged| {
            let check = InterfaceCheck {
                judged,
                at_least: 10,
                at_most: 12,
            };
            judge(Some(check), "eth1", "native")
        };
        for within in [10, 12] {
            assert_eq!(judged(within), Ok(None));
        }
        for without in [9, 13] {
            let reason = judged(without).expect_err("both cannot be true");
            assert_eq!(reason.code, "counters_disagree");
            assert!(
                reason.text.starts_with(&format!("{without} judged")),
                "{}",
                reason.text
            );
        }
        let unknown = judge(None, "eth1", "generic").expect("no reason");
        assert!(unknown.is_some_and(|note| note.code == "counts_not_checked"));
    }
}
