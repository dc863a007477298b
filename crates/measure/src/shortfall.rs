//! Less was offered than asked: who kept the sender from it.

use serde::{Deserialize, Serialize};

use crate::units::format_duration;
use crate::verdict::Role;

/// Who kept a sender from offering what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// Its own core: it could do no more.
    Underoffered,
    /// Whoever had its core meanwhile, or that of the receiver which a peer waits for: it did not poll.
    SenderStalled,
    /// The link or the far side: the port's transmit queue was full.
    PortFull,
}

impl Shortfall {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Underoffered, Self::SenderStalled, Self::PortFull];

    /// The code of the reason that it is.
    pub fn code(self) -> &'static str {
        match self {
            Self::Underoffered => "underoffered",
            Self::SenderStalled => "sender_stalled",
            Self::PortFull => "port_full",
        }
    }

    /// What is to be done about it in a run of this role, where it lasted for so long.
    pub(crate) fn words(self, role: Role, lasted_ns: u64) -> String {
        let lasted = format_duration(lasted_ns);
        let is_replay = role == Role::Replay;
        match self {
            // Packets of a capture have one order, and one sender.
            Self::Underoffered if is_replay => "its worker could not keep up; ask for less with --rate, or give it a core that nothing else needs, with --cores".to_owned(),
            Self::SenderStalled if is_replay => format!("its worker did not poll for {lasted} of that time; --explain and `dropless noise` name who had its core"),
            Self::Underoffered => "the sender could not keep up; ask for less with --rate, or let more cores send, with --cores and --tx-queues".to_owned(),
            Self::SenderStalled => format!("a worker of ours did not poll for {lasted} of that time; --explain and `dropless noise` name who had its core, and a larger --backlog lets it catch up"),
            Self::PortFull => format!("the port took no more, its transmit queue was full for {lasted} of that time: the link or the far side was the limit, not the sender; ask for less with --rate"),
        }
    }
}

/// How long what kept a sender from sending, on average of its queues, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hindrance {
    /// Its worker, or one that a peer waits for, did not poll for longer than what is caught up on.
    pub stalled_ns: u64,
    /// Frames were offered, and the transmit queue was full. Stalls meanwhile are in it.
    pub full_ns: u64,
}

impl Hindrance {
    /// Who kept it from sending for `unsent_ns` in all, and for how long: somebody else only where that covers most of it.
    pub(crate) fn blame(self, unsent_ns: u64) -> (Shortfall, u64) {
        let most = unsent_ns / 2;
        // Nobody knows whether the queue was still full while nobody looked.
        let full_ns = self.full_ns.saturating_sub(self.stalled_ns);
        if self.stalled_ns > most && self.stalled_ns >= full_ns {
            (Shortfall::SenderStalled, self.stalled_ns)
        } else if full_ns > most {
            (Shortfall::PortFull, full_ns)
        } else {
            (Shortfall::Underoffered, unsent_ns)
        }
    }
}
