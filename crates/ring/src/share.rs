//! How a ring gets into other processes: over a Unix socket, which says by its end that the other side is gone.
//!
//! Who joins sends [`JOIN`], a version and whether it wants to be lossless (u32 each), and its name (64 bytes, the rest
//! zero). The answer is [`SEAT`], a version and 0 (u32 each), with two file descriptors (`SCM_RIGHTS`): the ring, and the
//! consumer's page; or a number that is not 0, and a sentence. The connection then stays open: the seat ends with it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, sockopt::PeerCredentials,
};

use crate::layout::VERSION;
use crate::{Consumer, Ring, RingError, Seat};

/// What a joiner's message begins with.
pub const JOIN: [u8; 8] = *b"DRPLJOIN";
/// What the answer begins with.
pub const SEAT: [u8; 8] = *b"DRPLSEAT";
/// Bytes of a name.
const NAME: usize = 64;
const JOIN_LEN: usize = 16 + NAME;
const SEAT_LEN: usize = 16;
/// Connections that have not said yet what they want, at most.
const ASKING_MAX: usize = 64;
/// How long either side waits for the other's message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the rings of this machine are.
const RINGS: &str = "/run/dropless";

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

/// A consumer in another process.
#[derive(Debug)]
pub struct Guest {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub process: i32,
    /// Whether the ring keeps for it what it has not taken.
    pub is_lossless: bool,
    /// Its seat.
    pub seat: Arc<Seat>,
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
    listener: UnixListener,
    path: PathBuf,
    /// Connected, and have not said yet what they want.
    asking: Vec<UnixStream>,
    guests: Vec<Guest>,
}

impl Door {
    /// Opens a socket at `path`, for its owner, and for the group `group` if there is one. A socket that a dead process
    /// left there is replaced, one of a living process is an error.
    pub fn open(path: &Path, group: Option<u32>) -> io::Result<Self> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        match std::fs::symlink_metadata(path) {
            Ok(there) if std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => {
                std::fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        if group.is_some() {
            std::os::unix::fs::chown(path, None, group)?;
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            asking: Vec::new(),
            guests: Vec::new(),
        })
    }

    /// Everybody who has joined so far.
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    /// One look: lets in who came, hands over seats that the producer knows, and notices who left. Never waits.
    pub fn look(&mut self, ring: &Ring) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.asking.push(stream);
            }
        }
        // Who says nothing makes place for those that do.
        let silent = self.asking.len().saturating_sub(ASKING_MAX);
        self.asking.drain(..silent);
        for stream in std::mem::take(&mut self.asking) {
            match Asked::read(&stream) {
                Ok(None) => self.asking.push(stream),
                Ok(Some(asked)) => self.let_in(ring, stream, asked),
                Err(_) => {}
            }
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
                process: getsockopt(&stream, PeerCredentials).map_or(0, |peer| peer.pid()),
                is_lossless: asked.is_lossless,
                seat,
                behind_max: 0,
                is_gone: false,
                page: Some(page),
                stream: Some(stream),
            }),
            Err(error) => {
                let mut answer = answer(1).to_vec();
                answer.extend(error.to_string().bytes());
                let _ = (&stream).write_all(&answer);
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Guest {
    fn look(&mut self, ring: &Ring, begun: u64) {
        let Some(stream) = &self.stream else { return };
        let is_new = self.page.is_some() && self.seat.is_taken();
        let page = is_new.then(|| self.page.take()).flatten();
        let is_seated = page.is_none_or(|page| hand_over(stream, ring, &page).is_ok());
        // It sends nothing more: what can be read is its end.
        let is_there = match (&*stream).read(&mut [0; 16]) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(more) => more > 0,
        };
        if !is_seated || !is_there {
            self.leave();
        } else if self.is_lossless {
            self.behind_max = self.behind_max.max(begun.saturating_sub(self.seat.released()));
        }
    }

    fn leave(&mut self) {
        self.is_gone = true;
        self.seat.vacate();
        (self.page, self.stream) = (None, None);
    }
}

fn hand_over(stream: &UnixStream, ring: &Ring, page: &OwnedFd) -> io::Result<()> {
    send(stream, &answer(0), [ring.file(), page.as_fd()])
}

fn answer(code: u32) -> [u8; SEAT_LEN] {
    let mut answer = [0; SEAT_LEN];
    answer[..8].copy_from_slice(&SEAT);
    answer[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    answer[12..].copy_from_slice(&code.to_ne_bytes());
    answer
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
        let mut message = [0; JOIN_LEN];
        let mut bytes = [IoSliceMut::new(&mut message)];
        let came = match recvmsg::<()>(stream.as_raw_fd(), &mut bytes, None, MsgFlags::MSG_PEEK) {
            Ok(came) => came.bytes,
            Err(nix::Error::EAGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match came {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            JOIN_LEN => {}
            _ => return Ok(None),
        }
        let mut stream = stream;
        stream.read_exact(&mut message)?;
        let word =
            |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        if message[..8] != JOIN {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let name = message[16..].split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Some(Self {
            version: word(8),
            is_lossless: word(12) == 1,
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
        let mut message = [0; JOIN_LEN];
        message[..8].copy_from_slice(&JOIN);
        message[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        message[12..16].copy_from_slice(&u32::from(is_lossless).to_ne_bytes());
        let name = &name.as_bytes()[..name.len().min(NAME)];
        message[16..16 + name.len()].copy_from_slice(name);
        stream.write_all(&message).map_err(failed)?;
        let mut answer = [0; SEAT_LEN];
        let files = receive(&stream, &mut answer).map_err(failed)?;
        if answer[..8] != SEAT {
            return Err(RingError::NotARing("whoever listens there is no dropless"));
        }
        let [ring, page] = <[OwnedFd; 2]>::try_from(files).map_err(|_| {
            let mut why = String::new();
            let _ = (&stream).take(1024).read_to_string(&mut why);
            RingError::Refused(why)
        })?;
        Ok(Self {
            consumer: Consumer::new(ring, page)?,
            stream,
        })
    }

    /// Whether the producer's process is gone: what it committed is still there.
    pub fn is_alone(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let read = (&self.stream).read(&mut [0; 1]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Sends bytes, and a ring and a consumer's page with them.
pub fn send(stream: &UnixStream, message: &[u8], files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let files = files.map(|file| file.as_raw_fd());
    let (bytes, rights) = ([IoSlice::new(message)], [ControlMessage::ScmRights(&files)]);
    sendmsg::<()>(stream.as_raw_fd(), &bytes, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Reads bytes and the file descriptors that come with them.
pub fn receive(stream: &UnixStream, answer: &mut [u8]) -> io::Result<Vec<OwnedFd>> {
    let expected = answer.len();
    let mut bytes = [IoSliceMut::new(answer)];
    let mut rights = nix::cmsg_space!([RawFd; 2]);
    let came = recvmsg::<()>(
        stream.as_raw_fd(),
        &mut bytes,
        Some(&mut rights),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    // First of all: none of them stays open, whatever else is wrong.
    let mut files = Vec::new();
    for message in came.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = message {
            // SAFETY: the kernel just made them for us, and nobody else knows them.
            files.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    if came.bytes < expected {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(files)
}
