//! Asking over the very queues that the run will use, before it starts: for a neighbour's MAC address, by ARP or NDP, or for
//! anything else that a frame answers.

use std::net::IpAddr;

use measure::Ticks;
use wire::{Addresses, VlanTag, neighbour};

use crate::io::{Allocate, Frames, FreshFrames, Receive, Transmit};

/// Whom to ask for.
#[derive(Clone, Debug)]
pub struct NeighbourQuery {
    /// The asking side: its MAC and its address of the same family come first.
    pub me: Addresses,
    /// Tags that the request carries.
    pub vlans: Vec<VlanTag>,
    /// Whose MAC address is wanted.
    pub target: IpAddr,
}

/// A frame that somebody is to answer.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// What is sent.
    pub frame: &'q [u8],
    /// Who asks, and answers meanwhile.
    pub me: &'q Addresses,
    /// How long each time until it is asked again, or given up, ticks.
    pub waits: &'q [u64],
}

/// Asks until somebody's frame is an answer, `stop` says so, or the waits are over. Listens on every queue of `rx`, for
/// nobody knows where the answer arrives. Answers neighbours meanwhile, since a peer that has our request may itself ask for
/// us before it replies.
pub fn ask<R, T, A, V>(
    rx: &mut [R],
    (tx, buffers): (&mut T, &mut A),
    question: &Question<'_>,
    answer: &dyn Fn(&[u8]) -> Option<V>,
    tsc: fn() -> Ticks,
    stop: &dyn Fn() -> bool,
) -> Option<V>
where
    R: Receive,
    T: Transmit<Frames = R::Frames>,
    A: Allocate<Frames = R::Frames>,
{
    // A batch for each queue: what is freed goes back to where it was received.
    let mut batches: Vec<_> = rx.iter().map(Receive::batch).collect();
    for wait in question.waits {
        send(tx, buffers, question.frame);
        let asked = tsc();
        while tsc().0.saturating_sub(asked.0) < *wait {
            if stop() {
                return None;
            }
            let mut received = 0;
            for (queue, frames) in rx.iter_mut().zip(&mut batches) {
                received += queue.receive(frames, 32);
                for index in 0..frames.len() {
                    let frame = frames.bytes(index);
                    if let Some(value) = answer(frame) {
                        return Some(value);
                    }
                    let mut reply = frame.to_vec();
                    reply.resize(frame.len() + 32, 0);
                    if let Some(len) = wire::answer(&mut reply, frame.len(), question.me) {
                        send(tx, buffers, &reply[..len]);
                    }
                }
                frames.clear();
            }
            if received == 0 {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
    }
    None
}

/// The ARP request or neighbour solicitation; `None` if we have no address of the target's family.
pub fn request(question: &NeighbourQuery) -> Option<Vec<u8>> {
    let NeighbourQuery { me, vlans, target } = question;
    match *target {
        IpAddr::V4(target) => me.ips.iter().find_map(|ip| match ip {
            IpAddr::V4(ip) => Some(neighbour::arp_request(me.mac, *ip, target, vlans)),
            IpAddr::V6(_) => None,
        }),
        IpAddr::V6(target) => me.ips.iter().find_map(|ip| match ip {
            IpAddr::V6(ip) => Some(neighbour::neighbour_solicitation(me.mac, *ip, target, vlans)),
            IpAddr::V4(_) => None,
        }),
    }
}

/// Sends one frame outside a run.
pub fn send<T, A>(tx: &mut T, buffers: &mut A, frame: &[u8]) -> bool
where
    T: Transmit<Frames = A::Frames>,
    A: Allocate,
{
    let mut batch = buffers.batch();
    if buffers.allocate(&mut batch, 1) == 0 {
        return false;
    }
    let Some(room) = batch.write(0, frame.len()).get_mut(..frame.len()) else {
        return false;
    };
    room.copy_from_slice(frame);
    tx.transmit(&mut batch, 1) == 1
}
