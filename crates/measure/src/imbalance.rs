//! The ways in which the books of a run can fail to balance.

use thiserror::Error;

use crate::balance::Balance;

/// An identity of the ledger that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Imbalance {
    /// intended = accepted + unsent.
    #[error("{intended} packets were intended, but {accepted} accepted + {unsent} unsent make {}", u128::from(*accepted) + u128::from(*unsent))]
    Intended {
        /// Packets due.
        intended: u64,
        /// Packets the driver accepted.
        accepted: u64,
        /// Packets given up.
        unsent: u64,
    },
    /// accepted = received + lost + unexplained.
    #[error("{accepted} packets were accepted, but {received} received + {lost} lost + {unexplained} unexplained make {}", u128::from(*received) + u128::from(*lost) + u128::from(*unexplained))]
    Accepted {
        /// Packets the driver accepted.
        accepted: u64,
        /// Packets received.
        received: u64,
        /// Packets lost at named places.
        lost: u64,
        /// Packets unexplained.
        unexplained: u64,
    },
    /// entered = left + what the places counted, where all of them see the packets themselves.
    #[error("{entered} frames came in, {left} are accounted for")]
    Entered {
        /// Frames that came in.
        entered: u64,
        /// Frames that left or were counted by a place.
        left: u64,
    },
    /// Frames = the sum of their classes.
    #[error("{frames} frames arrived, but {classified} were classified")]
    Arrived {
        /// Frames handed over by the receive queues.
        frames: u64,
        /// Frames that were given a class.
        classified: u64,
    },
    /// The two counts of received packets differ.
    #[error("the ledger has {ledger} received packets, the receivers {arrived}")]
    Received {
        /// The ledger's count.
        ledger: u64,
        /// The receivers' count.
        arrived: u64,
    },
    /// More answered than there was to answer.
    #[error("{answered} requests were answered, but only {foreign} foreign frames arrived")]
    Answered {
        /// Answers.
        answered: u64,
        /// Foreign frames.
        foreign: u64,
    },
    /// What a queue handed over, or took, is what its port's driver counted.
    #[error("port {port} counted {port_count} {way} frames, its queues {queues}")]
    Port {
        /// The port as the user named it.
        port: String,
        /// `received` or `sent`.
        way: &'static str,
        /// The driver's count.
        port_count: u64,
        /// Ours.
        queues: u64,
    },
    /// Frames = what the rules met.
    #[error("{frames} frames were judged, but rules and default met {met}")]
    Judged {
        /// Frames that were received.
        frames: u64,
        /// Frames that rules met.
        met: u64,
    },
    /// Frames = those of all flows, of forgotten ones, and what is no flow.
    #[error("{frames} frames were received, but flows, evicted ones and what is no flow make {counted}")]
    Flows {
        /// Frames that were received.
        frames: u64,
        /// Frames that the flow tables counted.
        counted: u64,
    },
    /// A lane received more than it sent.
    #[error("lane {lane} received {received} distinct packets, but only {accepted} were sent")]
    Lane {
        /// The lane.
        lane: u16,
        /// Packets sent.
        accepted: u64,
        /// Packets received.
        received: u64,
    },
    /// A lane received a number that it had not sent.
    #[error(
        "lane {lane} received sequence number {sequence}, but only {accepted} packets were sent: a packet was forged, or damaged and not verified"
    )]
    Forged {
        /// The lane.
        lane: u16,
        /// Packets sent.
        accepted: u64,
        /// The highest number received.
        sequence: u64,
    },
    /// The lanes do not add up to the whole.
    #[error(
        "the lanes add up to {lanes_accepted} accepted and {lanes_received} received, the ledger has {accepted} and {received}"
    )]
    Lanes {
        /// The ledger's accepted.
        accepted: u64,
        /// The lanes' sum.
        lanes_accepted: u64,
        /// The ledger's received.
        received: u64,
        /// The lanes' sum.
        lanes_received: u64,
    },
}

impl Imbalance {
    /// What is wrong with the ledger of a job that counts all of its packets itself.
    pub fn of(balance: &Balance) -> Option<Self> {
        let (missing, surplus) = (balance.unexplained, balance.surplus());
        (missing > 0 || surplus > 0).then(|| Self::Entered {
            entered: balance.entered,
            left: (balance.entered - missing).saturating_add(surplus),
        })
    }
}
