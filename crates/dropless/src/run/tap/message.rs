//! What is said over the socket of a run's taps, in the byte order of this machine. Both ends are the same program.
//!
//! Who asks sends [`ASK`], a version, what it wants (1 received, 2 sent, 3 both) and the bytes kept of each frame (u32 each),
//! and ends its side of the connection when it wants no more. The answer is a message for each tap: [`TELL`], a version, 0,
//! the number of taps, port, queue, and 1 (received) or 2 (sent) (u32 each), with two file descriptors: the tap's ring, and a
//! lossless consumer's page. A refusal has 1 in the place of the 0, and a sentence after it.

use std::io;
use std::os::unix::net::UnixStream;

use capture::pcapng::Direction;
use capture::ring::socket::{self, message, words};

const ASK: [u8; 8] = *b"DRPLTAP?";
const TELL: [u8; 8] = *b"DRPLTAP!";
const VERSION: u32 = 1;
const ASK_LEN: usize = 20;
/// Bytes of an answer.
pub const TELL_LEN: usize = 32;

/// What somebody wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    version: u32,
    ways: u32,
    /// Bytes kept of each frame.
    pub snap_len: u32,
}

impl Asked {
    /// Frames that go these ways.
    pub fn new(ways: &[Direction], snap_len: u32) -> Self {
        Self {
            version: VERSION,
            ways: ways.iter().map(|way| way_number(*way)).sum(),
            snap_len,
        }
    }

    /// Whether frames of this direction are wanted.
    pub fn wants(&self, direction: Direction) -> bool {
        self.ways & way_number(direction) != 0
    }

    /// Refuses what cannot be served.
    pub fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!(
                "it speaks version {VERSION} of its taps, and this program version {}: use the same dropless on both sides",
                self.version
            ));
        }
        if self.ways == 0 || self.ways > 3 {
            return Err("it was asked for nothing".into());
        }
        Ok(())
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        message(ASK, &[self.version, self.ways, self.snap_len])
    }

    /// Reads it, once all of it is there.
    pub fn read(stream: &UnixStream) -> io::Result<Option<Self>> {
        let Some(message) = socket::receive_whole::<ASK_LEN>(stream)? else {
            return Ok(None);
        };
        let [version, ways, snap_len] = words(ASK, &message).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Self {
            version,
            ways,
            snap_len,
        }))
    }
}

/// A tap that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// How many there are in all.
    pub taps: u32,
    /// Index of its port.
    pub port: u32,
    pub queue: u32,
    pub direction: Direction,
}

impl Told {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let words = [
            VERSION,
            0,
            self.taps,
            self.port,
            self.queue,
            way_number(self.direction),
        ];
        message(TELL, &words)
    }

    /// Which way its frames go, in a word.
    pub fn name(&self) -> &'static str {
        match self.direction {
            Direction::In => "rx",
            Direction::Out => "tx",
        }
    }

    /// What goes before a sentence that says why not.
    pub fn refusal() -> Vec<u8> {
        message(TELL, &[VERSION, 1, 0, 0, 0, 0])
    }

    /// Reads an answer of a run with so many ports; `None` is none of ours.
    pub fn decode(message: &[u8], ports: usize) -> Option<Answer> {
        let [version, code, taps, port, queue, way] = words(TELL, message)?;
        if code != 0 || version != VERSION {
            return Some(Answer::Refusal);
        }
        if port as usize >= ports {
            return None;
        }
        let direction = [Direction::In, Direction::Out]
            .into_iter()
            .find(|known| way_number(*known) == way)?;
        Some(Answer::Tap(Self {
            taps,
            port,
            queue,
            direction,
        }))
    }
}

/// What may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A tap, with its ring.
    Tap(Told),
    /// None: a sentence follows.
    Refusal,
}

fn way_number(direction: Direction) -> u32 {
    match direction {
        Direction::In => 1,
        Direction::Out => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let told = Told {
            taps: 3,
            port: 1,
            queue: 7,
            direction: Direction::Out,
        };
        assert_eq!(told.encode().len(), TELL_LEN);
        assert_eq!(Told::decode(&told.encode(), 2), Some(Answer::Tap(told)));
        assert_eq!(Told::decode(&told.encode(), 1), None, "it has one port, 0");
        assert_eq!(Told::decode(&Told::refusal(), 2), Some(Answer::Refusal));
        assert_eq!(Told::decode(b"HTTP/1.1 400", 2), None);
        let (here, there) = UnixStream::pair().unwrap();
        there.set_nonblocking(true).unwrap();
        let asked = Asked::new(&[Direction::In, Direction::Out], 96);
        let bytes = asked.encode();
        assert_eq!(bytes.len(), ASK_LEN);
        (&here).write_all(&bytes[..9]).unwrap();
        assert_eq!(
            Asked::read(&there).unwrap(),
            None,
            "half of it waits for the rest"
        );
        (&here).write_all(&bytes[9..]).unwrap();
        assert_eq!(Asked::read(&there).unwrap(), Some(asked));
        drop(here);
        assert!(Asked::read(&there).is_err(), "it has left");
    }

    #[test]
    fn another_version_and_nothing_are_refused() {
        let asked = Asked::new(&[Direction::In], 96);
        assert!(asked.check().is_ok() && asked.wants(Direction::In) && !asked.wants(Direction::Out));
        assert!(Asked::new(&[], 96).check().is_err());
        assert!(
            Asked { version: 2, ..asked }
                .check()
                .unwrap_err()
                .contains("version")
        );
    }
}
