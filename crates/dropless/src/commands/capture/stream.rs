//! A stream of pcapng to a reader who may be slow, stand still, or go away.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use capture::ring::Consumer;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// From one look at the ring to the next.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long one wait for the reader takes at most; ms.
const WAIT: u16 = 100;
/// A reader who takes nothing for so long after the end gets nothing more.
const QUIET: Duration = Duration::from_secs(3);

/// Why a stream ends early.
pub enum Stop {
    Reader(io::Error),
    Ring(anyhow::Error),
}

/// What ends the stream, once the producer has ended; waits for it for a moment.
pub fn ended(ends: &Receiver<Vec<u8>>) -> Option<Vec<u8>> {
    match ends.recv_timeout(LOOK_EVERY) {
        Ok(last) => Some(last),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Vec::new()),
    }
}

/// Writes the head, every packet's block as it comes, and the end; without the worklists, which only files need. `taken`
/// packets were written as a whole.
pub fn stream(
    sink: File,
    consumer: &mut Consumer,
    ends: &Receiver<Vec<u8>>,
    taken: &mut u64,
) -> Result<(), Stop> {
    let mut sink = Sink::new(sink, ends);
    sink.write(&consumer.preamble()).map_err(Stop::Reader)?;
    // What of the segment under way was written.
    let (mut packets, mut bytes) = (0, 0);
    loop {
        let number = consumer.next_segment();
        let segment = consumer
            .segment(number)
            .map_err(|error| Stop::Ring(error.into()))?;
        let Some(segment) = segment.filter(|segment| segment.blocks.len() > bytes || segment.whole.is_some())
        else {
            if let Some(last) = sink.last.clone() {
                return sink.write(&last).map_err(Stop::Reader);
            }
            sink.last = ended(ends);
            continue;
        };
        sink.write(&segment.blocks[bytes..]).map_err(Stop::Reader)?;
        *taken += (segment.packets - packets) as u64;
        (packets, bytes) = (segment.packets, segment.blocks.len());
        if segment.whole.is_some() {
            consumer.release(number, packets as u64);
            (packets, bytes) = (0, 0);
        }
    }
}

/// Where the stream goes: waited for as long as packets come, and no longer than [`QUIET`] at a time after that.
struct Sink<'e> {
    file: File,
    /// Bytes that are written at once. What is writable takes so many without waiting, where it is no file (pipe(7)): it
    /// need not be made non-blocking, which whoever else has it would notice.
    piece: usize,
    ends: &'e Receiver<Vec<u8>>,
    /// What ends the stream, once the producer has ended.
    last: Option<Vec<u8>>,
}

impl<'e> Sink<'e> {
    fn new(file: File, ends: &'e Receiver<Vec<u8>>) -> Self {
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        Self {
            file,
            piece: if is_file { usize::MAX } else { nix::libc::PIPE_BUF },
            ends,
            last: None,
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.wait()?;
            match self.file.write(&bytes[..bytes.len().min(self.piece)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until it takes something.
    fn wait(&mut self) -> io::Result<()> {
        let mut quiet: Option<Instant> = None;
        loop {
            let mut ready = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut ready, PollTimeout::from(WAIT)) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.last.is_none() {
                self.last = ended(self.ends);
            }
            if self.last.is_some() && quiet.get_or_insert_with(Instant::now).elapsed() > QUIET {
                let text = format!("its reader took nothing for {} s after the end", QUIET.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
        }
    }
}
