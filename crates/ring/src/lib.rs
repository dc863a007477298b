//! A ring of segments in shared memory: one producer, any number of consumers in other processes.
//!
//! The producer never waits. A *lossless* consumer keeps what it has not released from being overwritten, and the producer
//! is told that the ring is full; a *lossy* one reads what is there, learns what was overwritten, and holds nobody up.
//! [`layout`] has every byte, [`pcapng`] what lies in the segments.
//!
//! Who only wants to read joins the ring of another process and takes what comes:
//!
//! ```no_run
//! # use ring::share::{Joined, door_at};
//! # fn main() -> Result<(), ring::RingError> {
//! let mut joined = Joined::new(&door_at("uplink".as_ref()), "my reader", true)?;
//! while let Some(packets) = joined.consumer.packets()? {
//!     for packet in packets.iter() {
//!         println!("{} bytes", packet?.data.len());
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod consumer;
pub mod layout;
mod memory;
pub mod pcapng;
mod producer;
mod protocol;
pub mod share;
pub mod socket;

pub use consumer::{Consumer, Packet, Packets, Segment};
pub use producer::{Full, Producer, Ring, Seat, longest_packet};

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use layout::{CONSUMER_MAGIC, Geometry, VERSION};
use memory::Memory;
use thiserror::Error;

/// What is wrong with a ring.
#[derive(Debug, Error)]
pub enum RingError {
    /// Memory could not be had or mapped.
    #[error("shared memory for the ring: {0}")]
    Memory(nix::Error),
    /// Sizes that no ring has.
    #[error("a ring of {} segments of {} bytes cannot be: segments are multiples of 4096 bytes from {} on, and two at least", .0.segments, .0.segment_len, layout::SEGMENT_MIN)]
    Geometry(Geometry),
    /// It is no ring, or not whole.
    #[error("this is no ring of dropless, or not all of it: {0}")]
    NotARing(&'static str),
    /// It was made by another version.
    #[error(
        "the ring has version {0}, this program reads version {VERSION}: use the same version of dropless on both sides"
    )]
    Version(u32),
    /// Who wants to join was made by another version.
    #[error(
        "the ring has version {VERSION}, who wants to join it reads version {0}: use the same version of dropless on both sides"
    )]
    Joiner(u32),
    /// Too many consumers at once.
    #[error("the ring has no seat for another consumer now: end one of those that read it")]
    Crowded,
    /// Nobody lets in at that place.
    #[error("no ring at {place}: {cause}; is a capture with --ring running?", place = .0.display(), cause = .1)]
    Door(PathBuf, io::Error),
    /// The producer refused.
    #[error("the ring refused: {0}")]
    Refused(String),
    /// It contradicts itself.
    #[error("the ring is damaged: {0}")]
    Damaged(&'static str),
}

/// A page for a new consumer.
fn consumer_page(is_lossless: bool) -> nix::Result<(OwnedFd, Memory)> {
    use layout::consumer;
    let file = memory::shared("dropless-consumer", consumer::LEN)?;
    let page = Memory::map(&file, consumer::LEN, true)?;
    // SAFETY: nobody else knows the page yet.
    unsafe { page.room(0, CONSUMER_MAGIC.len()) }.copy_from_slice(&CONSUMER_MAGIC);
    page.put(consumer::VERSION, VERSION);
    page.put(consumer::LOSSLESS, u32::from(is_lossless));
    Ok((file, page))
}
