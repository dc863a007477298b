//! How a ring gets into other processes: over a Unix socket, which says by its end that the other side is gone.
//!
//! Who joins sends [`JOIN`], a version and whether it wants to be lossless (u32 each), and its name (64 bytes, the rest
//! zero). The answer is [`SEAT`], a version and 0 (u32 each), with two file descriptors (`SCM_RIGHTS`): the ring, and the
//! consumer's page; or a number that is not 0, and a sentence. The connection then stays open: the seat ends with it.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno::EMFILE;

use crate::layout::VERSION;
use crate::memory;
use crate::socket::{self, Listener};
use crate::{Consumer, Ring, RingError, Seat};

/// What a joiner's message begins with.
pub const JOIN: [u8; 8] = *b"DRPLJOIN";
/// What the answer begins with.
pub const SEAT: [u8; 8] = *b"DRPLSEAT";
/// Bytes of a name.
const NAME: usize = 64;
const JOIN_LEN: usize = 16 + NAME;
const SEAT_LEN: usize = 16;
/// How long either side waits for the other's message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the rings of this machine are.
pub const RINGS: &str = "/run/dropless";
/// Bytes of a socket's path, at most (`sun_path` of unix(7), with a zero behind them).
pub const DOOR_MAX: usize = 107;

/// The socket of a ring: a name alone is one of this machine's.
pub fn door_at(name: &Path) -> PathBuf {
    let mut parts = name.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(alone)), None) => {
            let mut file = alone.to_owned();
            file.push(".ring");
            Path::new(RINGS).join(file)
        }
        _ => name.to_owned(),
    }
}

/// Why a ring cannot be joined, and what to do.
pub(crate) fn cannot_join(door: &Path, error: &io::Error) -> String {
    use io::ErrorKind::{
        BrokenPipe, ConnectionReset, InvalidInput, PermissionDenied, UnexpectedEof, WouldBlock,
    };
    let place = door.display();
    match error.kind() {
        PermissionDenied => format!(
            "the ring at {place} is another user's; have its capture let your group in with --ring-group, or use sudo"
        ),
        WouldBlock => format!("whoever listens at {place} gives no answer; is that capture stopped?"),
        UnexpectedEof | ConnectionReset | BrokenPipe => {
            format!("whoever listens at {place} hung up without an answer; did that capture end?")
        }
        InvalidInput => format!(
            "{place}: the name is too long for a socket; its path may have {DOOR_MAX} bytes, and this one has {}",
            door.as_os_str().len()
        ),
        _ if error.raw_os_error() == Some(EMFILE as i32) => format!("{place}: {}", memory::words(EMFILE)),
        _ => format!("no ring at {place}: {error}; is a capture with --ring running?"),
    }
}

/// What is known of a guest's seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatState {
    /// Whether the producer knows it: before, nobody reads from it.
    pub is_taken: bool,
    /// Packets taken, and such as were overwritten before.
    pub counts: (u64, u64),
    /// The number of the first packet that it may take.
    pub first: u64,
    /// Segments below this number it does not need any more.
    pub released: u64,
}

/// Where a guest sits, or what it came to there: a seat is memory, of which a process can map only so much.
#[derive(Debug)]
enum Place {
    Seat(Arc<Seat>),
    Left(SeatState),
}

/// A consumer in another process.
#[derive(Debug)]
pub struct Guest {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub process: i32,
    /// Whether the ring keeps for it what it has not taken.
    pub is_lossless: bool,
    place: Place,
    /// Most segments that it was behind.
    pub behind_max: u64,
    /// Whether its process has left; what it had not taken by then is nobody's.
    pub is_gone: bool,
    page: Option<OwnedFd>,
    /// The connection, as long as it is there.
    stream: Option<UnixStream>,
}

/// Where others join a ring.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    guests: Vec<Guest>,
}

impl Door {
    /// Opens a socket at `path`, as [`Listener::open`] does.
    pub fn open(path: &Path, group: Option<u32>) -> io::Result<Self> {
        Ok(Self {
            listener: Listener::open(path, group)?,
            guests: Vec::new(),
        })
    }

    /// Everybody who has joined so far, but those that were given up ([`Door::shed`]).
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    /// Gives up all guests that have left but the newest `keep` of them: the list would grow for as long as others come and go.
    /// What each came to is its caller's to keep.
    pub fn shed(&mut self, keep: usize) -> Vec<Guest> {
        let left = self.guests.iter().filter(|guest| guest.has_left()).count();
        let mut more = left.saturating_sub(keep);
        if more == 0 {
            return Vec::new();
        }
        let guests = std::mem::take(&mut self.guests);
        let (shed, kept) = guests.into_iter().partition(|guest| {
            let goes = more > 0 && guest.has_left();
            more -= usize::from(goes);
            goes
        });
        self.guests = kept;
        shed
    }

    /// One look: lets in who came, hands over seats that the producer knows, and notices who left. Never waits.
    pub fn look(&mut self, ring: &Ring) {
        for (stream, asked) in self.listener.look(Asked::read) {
            self.let_in(ring, stream, asked);
        }
        let begun = ring.begun();
        for guest in &mut self.guests {
            guest.look(ring, begun);
        }
    }

    fn let_in(&mut self, ring: &Ring, stream: UnixStream, asked: Asked) {
        let seated = match asked.version {
            VERSION => ring.seat(asked.is_lossless),
            other => Err(RingError::Joiner(other)),
        };
        match seated {
            Ok((seat, page)) => self.guests.push(Guest {
                name: asked.name,
                process: socket::peer(&stream).map_or(0, |(process, _)| process),
                is_lossless: asked.is_lossless,
                place: Place::Seat(seat),
                behind_max: 0,
                is_gone: false,
                page: Some(page),
                stream: Some(stream),
            }),
            Err(error) => {
                let mut answer = answer(1);
                answer.extend(error.to_string().bytes());
                let _ = (&stream).write_all(&answer);
            }
        }
    }
}

impl Guest {
    /// Its seat as it is now, or as it was when the guest left.
    pub fn seat(&self) -> SeatState {
        match &self.place {
            Place::Seat(seat) => SeatState {
                is_taken: seat.is_taken(),
                counts: seat.counts(),
                first: seat.first(),
                released: seat.released(),
            },
            Place::Left(state) => *state,
        }
    }

    fn look(&mut self, ring: &Ring, begun: u64) {
        let Some(stream) = &self.stream else {
            return self.let_go();
        };
        let is_new = self.page.is_some() && self.seat().is_taken;
        let page = is_new.then(|| self.page.take()).flatten();
        // It sends nothing more: what can be read is its end.
        let is_seated = page.is_none_or(|page| hand_over(stream, ring, &page).is_ok());
        if !is_seated || socket::has_ended(stream) {
            self.leave();
        } else if self.is_lossless {
            self.behind_max = self.behind_max.max(begun.saturating_sub(self.seat().released));
        }
    }

    /// The memory of a seat that was left goes as soon as the producer has let go of it, which must not unmap it itself.
    fn let_go(&mut self) {
        if matches!(&self.place, Place::Seat(seat) if Arc::strong_count(seat) == 1) {
            self.place = Place::Left(self.seat());
        }
    }

    /// Whether it has left, and the producer knows it: what it came to is its last word.
    fn has_left(&self) -> bool {
        matches!(self.place, Place::Left(_))
    }

    fn leave(&mut self) {
        self.is_gone = true;
        if let Place::Seat(seat) = &self.place {
            seat.vacate();
        }
        (self.page, self.stream) = (None, None);
    }
}

fn hand_over(stream: &UnixStream, ring: &Ring, page: &OwnedFd) -> io::Result<()> {
    socket::send(stream, &answer(0), [ring.file(), page.as_fd()])
}

fn answer(code: u32) -> Vec<u8> {
    socket::message(SEAT, &[VERSION, code])
}

/// What a joiner wants.
struct Asked {
    version: u32,
    is_lossless: bool,
    name: String,
}

impl Asked {
    /// Reads it, once all of it is there.
    fn read(stream: &UnixStream) -> io::Result<Option<Self>> {
        let Some(message) = socket::receive_whole::<JOIN_LEN>(stream)? else {
            return Ok(None);
        };
        let [version, lossless] = socket::words(JOIN, &message).ok_or(io::ErrorKind::InvalidData)?;
        let name = message[16..].split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Some(Self {
            version,
            is_lossless: lossless == 1,
            name: String::from_utf8_lossy(name).into_owned(),
        }))
    }
}

/// A consumer that joined a ring of another process, for as long as this lives.
#[derive(Debug)]
pub struct Joined {
    /// Reads the ring.
    pub consumer: Consumer,
    stream: UnixStream,
}

impl Joined {
    /// Joins the ring whose door is at `path`.
    pub fn new(path: &Path, name: &str, is_lossless: bool) -> Result<Self, RingError> {
        let failed = |error: io::Error| RingError::Door(path.to_owned(), error);
        let mut stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut message = socket::message(JOIN, &[VERSION, u32::from(is_lossless)]);
        message.extend(&name.as_bytes()[..name.len().min(NAME)]);
        message.resize(JOIN_LEN, 0);
        stream.write_all(&message).map_err(failed)?;
        let mut answer = [0; SEAT_LEN];
        let files = socket::receive(&stream, &mut answer, || true).map_err(failed)?;
        if socket::words::<2>(SEAT, &answer).is_none() {
            return Err(RingError::NotARing("whoever listens there is no dropless"));
        }
        let [ring, page] =
            <[OwnedFd; 2]>::try_from(files).map_err(|_| RingError::Refused(socket::sentence(&stream)))?;
        Ok(Self {
            consumer: Consumer::new(ring, page)?,
            stream,
        })
    }

    /// Whether the producer's process is gone: what it committed is still there.
    pub fn is_alone(&self) -> bool {
        self.stream.set_nonblocking(true).is_err() || socket::has_ended(&self.stream)
    }

    /// Whether the producer's process is gone, and never ended its ring: it was killed.
    pub fn has_died(&self) -> bool {
        // One that ended did so before it went.
        self.is_alone() && !self.consumer.is_ended()
    }
}
