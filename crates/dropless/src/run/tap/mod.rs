//! Taps into a run under way: another process asks at a socket beside the status board, and gets rings with copies of what
//! the queues receive and send. Nothing is made before somebody asks, and control alone looks at the socket.

pub mod message;

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use capture::pcapng::{self, Direction, Interface};
use capture::ring::layout::SEGMENT_MIN;
use capture::ring::socket::{self, Listener};
use capture::ring::{Producer, Ring};
use dataplane::tap::{Tap, TapPlan, TapSlot};
use measure::{Clock, Note};
use report::published::{Phase, Place, State, own_id, tap_socket};

use super::clock::now;
use super::control::Generations;
use super::preflight::memory_for;
use message::{Asked, Told};

/// Segments of a tap's ring.
const SEGMENTS: u32 = 4;
/// Bytes of each, where there are few taps.
const SEGMENT_LEN: u32 = 1 << 20;
/// Bytes of the rings of all taps together, at most.
const MEMORY: u64 = 256 << 20;
/// What a worker may spend on a tap at once: less than a stall that is told.
const BURST_NS: u64 = 15_000;

/// Whether this is a run that can be looked into, or may be one once it has begun.
pub fn can_be_looked_into(state: &State) -> bool {
    match state.process.command.as_str() {
        "send" | "reflect" | "replay" | "forward" => true,
        // One between two ports forwards; the others have none. Which it is, is told when it has begun.
        "guard" => !state.ports.is_empty() || state.phase == Phase::Starting,
        _ => false,
    }
}

/// A queue that may be looked into.
pub struct TapPlace {
    /// Index of its port.
    pub port: usize,
    pub queue: usize,
    pub direction: Direction,
    pub slot: Arc<TapSlot>,
}

/// The taps of a run.
pub struct Taps {
    places: Vec<TapPlace>,
    burst_ticks: u64,
    listener: Option<Listener>,
    guest: Option<Guest>,
    /// Why nobody can look into this run.
    pub note: Option<Note>,
}

/// Whoever looks into the run.
struct Guest {
    stream: UnixStream,
    process: i32,
    /// What the queues have found once all workers have acknowledged this generation.
    generation: u64,
    /// Rings on their way to it.
    rings: Vec<(usize, Ring, OwnedFd)>,
    taps: u32,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begins,
    Looks,
    Ends,
}

impl Taps {
    /// Opens the socket, where there is a queue to look into.
    pub fn open(places: Vec<TapPlace>, clock: &Clock) -> Self {
        let at = || tap_socket(&Place::own().file(own_id()));
        let opened = (!places.is_empty()).then(|| Listener::open(&at(), None));
        let (listener, note) = match opened.transpose() {
            Ok(listener) => (listener, None),
            Err(error) => {
                let text = format!("`dropless capture --attach` cannot look into this run: {error}");
                (None, Some(Note::new("not_attachable", text)))
            }
        };
        Self {
            places,
            burst_ticks: clock.ticks_from_ns(BURST_NS),
            listener,
            guest: None,
            note,
        }
    }

    /// One look: who asks is let in, who left is forgotten. Never waits.
    pub fn look(&mut self, generations: Generations<'_>) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        let read = |stream: &UnixStream| match socket::peer(stream)? {
            (_, user) if is_ours(user) => Asked::read(stream),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        };
        for (stream, asked) in listener.look(read) {
            self.let_in(stream, &asked, generations);
        }
        let Some(guest) = &mut self.guest else { return };
        if guest.stage == Stage::Begins && generations.is_acknowledged(guest.generation) {
            guest.stage = Stage::Looks;
        }
        if guest.stage == Stage::Looks
            && (guest.hand_over(&self.places).is_err() || socket::has_ended(&guest.stream))
        {
            self.places.iter().for_each(|place| place.slot.leave(None));
            guest.generation = generations.publish();
            guest.stage = Stage::Ends;
        }
        if guest.stage == Stage::Ends && generations.is_acknowledged(guest.generation) {
            // Their rings end here, and their memory is given back.
            self.places.iter().for_each(|place| drop(place.slot.take_back()));
            self.guest = None;
        }
    }

    fn let_in(&mut self, stream: UnixStream, asked: &Asked, generations: Generations<'_>) {
        let let_in = match &self.guest {
            Some(guest) => Err(format!(
                "process {} looks into this run already, and only one can: end that one",
                guest.process
            )),
            None => self.tap(asked),
        };
        match let_in {
            Ok(rings) => {
                self.guest = Some(Guest {
                    process: socket::peer(&stream).map_or(0, |(process, _)| process),
                    stream,
                    generation: generations.publish(),
                    taps: rings.len() as u32,
                    rings,
                    stage: Stage::Begins,
                });
            }
            Err(why) => {
                let mut answer = Told::refusal();
                answer.extend(why.bytes());
                let _ = (&stream).write_all(&answer);
            }
        }
    }

    /// Makes the taps that are asked for, and leaves them for the workers.
    fn tap(&self, asked: &Asked) -> Result<Vec<(usize, Ring, OwnedFd)>, String> {
        asked.check()?;
        let wanted = |place: &&TapPlace| asked.wants(place.direction);
        let taps = self.places.iter().filter(wanted).count() as u64;
        let segment = segment_len(taps);
        let advice = "look in one direction (--direction), or end what takes the memory";
        let all = u64::from(segment) * u64::from(SEGMENTS) * taps;
        memory_for("its taps need", all, advice).map_err(|error| error.to_string())?;
        let (mut made, mut rings) = (Vec::new(), Vec::new());
        for (index, place) in self.places.iter().enumerate().filter(|(_, place)| wanted(place)) {
            let failed = |error: capture::ring::RingError| error.to_string();
            let preamble = pcapng::preamble("dropless", &[Interface::default()]);
            let (mut producer, ring) = Producer::new(SEGMENTS, segment, &preamble).map_err(failed)?;
            // It keeps what was not taken, so that nothing is overwritten: what has no room is not copied, and counted.
            let (_, page) = ring.seat(true).map_err(failed)?;
            producer.commit();
            let shares = |other: &&TapPlace| Arc::ptr_eq(other.slot.worker(), place.slot.worker());
            let plan = TapPlan {
                interface: place.port as u32,
                queue: place.queue as u32,
                direction: place.direction,
                snap_len: asked.snap_len as usize,
                taps: self.places.iter().filter(wanted).filter(shares).count() as u64,
                burst_ticks: self.burst_ticks,
                tsc: now,
            };
            made.push((place, Tap::new(producer, plan, Arc::clone(place.slot.worker()))));
            rings.push((index, ring, page));
        }
        for (place, tap) in made {
            place.slot.leave(Some(tap));
        }
        // The first one is handed over last.
        rings.reverse();
        Ok(rings)
    }
}

/// Bytes of a segment where there are so many taps.
fn segment_len(taps: u64) -> u32 {
    let segment = MEMORY / (taps.max(1) * u64::from(SEGMENTS)) / 4096 * 4096;
    segment.clamp(u64::from(SEGMENT_MIN), u64::from(SEGMENT_LEN)) as u32
}

impl Guest {
    /// Hands over what is there, as far as the socket takes it.
    fn hand_over(&mut self, places: &[TapPlace]) -> io::Result<()> {
        while let Some((index, ring, page)) = self.rings.last() {
            let place = &places[*index];
            let told = Told {
                taps: self.taps,
                port: place.port as u32,
                queue: place.queue as u32,
                direction: place.direction,
            };
            match socket::send(&self.stream, &told.encode(), [ring.file(), page.as_fd()]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                sent => sent?,
            }
            self.rings.pop();
        }
        Ok(())
    }
}

/// Whether this is our user, or root.
fn is_ours(user: u32) -> bool {
    user == 0 || user == nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_taps_take_no_more_memory_than_a_few() {
        assert_eq!([0, 64, 128].map(segment_len), [SEGMENT_LEN, 1 << 20, 1 << 19]);
        // No ring is smaller than its shortest segments, however many there are.
        assert_eq!(segment_len(4096), SEGMENT_MIN);
    }
}
