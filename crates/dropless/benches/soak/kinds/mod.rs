//! The kinds of rounds: each starts its processes, does to them what the plan says, and adds up their results.

mod chain;
mod disk;
mod filtered;
mod killed;
mod pair;
mod path;

use crate::balance::Account;
use crate::plan::Kind;
use crate::round::Round;

/// Plays a round; a process that hangs, or says nothing that can be read, panics.
pub fn play(round: &Round<'_>) -> Account {
    match round.plan.kind {
        Kind::Ring | Kind::LongRing => pair::inside(round),
        Kind::Null => pair::swallowed(round),
        Kind::Memif | Kind::Veth | Kind::LongMemif => pair::reflected(round),
        Kind::Thief => pair::robbed(round),
        Kind::Stop => pair::stopped(round),
        Kind::Forward => chain::reloaded(round),
        Kind::Capture => disk::captured(round),
        Kind::Kill => killed::killed(round),
        Kind::Filter => filtered::reloaded(round),
    }
}
