//! Unix sockets over which memory changes hands: messages of a fixed length, file descriptors with them (`SCM_RIGHTS`),
//! and an end that says that the other side is gone, whatever it died of.

use std::fs::{File, Metadata, Permissions, remove_file, set_permissions, symlink_metadata};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, open};
use nix::libc;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, bind, getsockopt, listen,
    recvmsg, sendmsg, socket,
};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, fchownat, geteuid};

/// Connections that have not said yet what they want, at most.
const ASKING_MAX: usize = 64;
/// Bytes of a sentence, at most.
const SENTENCE_MAX: u64 = 1024;

/// Where others connect and say what they want. The socket is removed with it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// The device and the number of what we made there.
    made: (u64, u64),
    /// Connected, and have not said yet what they want.
    asking: Vec<UnixStream>,
}

impl Listener {
    /// Opens a socket at `path`, for its owner, and for the group `group` if there is one. A socket that a dead process
    /// left there is replaced; one of a living process, and anything else, is an error.
    pub fn open(path: &Path, group: Option<u32>) -> io::Result<Self> {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            answer => {
                let is_dead = answer.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
                match symlink_metadata(path)?.file_type().is_socket() {
                    true if is_dead => remove_file(path)?,
                    // Whoever does not let us in lives, for all we know.
                    true => return Err(ErrorKind::AddrInUse.into()),
                    false => return Err(ErrorKind::AlreadyExists.into()),
                }
            }
        }
        let socket = socket(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
        // By what it is, as its name may lead elsewhere already where the directory is another's; and before anybody is let in.
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let ours = File::from(open(path, flags, Mode::empty())?);
        let about = ours.metadata()?;
        if !about.file_type().is_socket() || about.uid() != geteuid().as_raw() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        give(&ours, group)?;
        listen(&socket, Backlog::MAXCONN)?;
        let listener = Self {
            socket: socket.into(),
            path: path.to_owned(),
            made: identity(&about),
            asking: Vec::new(),
        };
        listener.socket.set_nonblocking(true)?;
        Ok(listener)
    }

    /// One look, which never waits: those who have said what they want, which `read` finds out. Whoever `read` fails on
    /// is sent away; `None` is asked again at the next look.
    pub fn look<T>(
        &mut self,
        mut read: impl FnMut(&UnixStream) -> io::Result<Option<T>>,
    ) -> Vec<(UnixStream, T)> {
        while let Ok((stream, _)) = self.socket.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.asking.push(stream);
            }
        }
        // Who says nothing makes place for those that do.
        let silent = self.asking.len().saturating_sub(ASKING_MAX);
        self.asking.drain(..silent);
        let mut said = Vec::new();
        for stream in std::mem::take(&mut self.asking) {
            match read(&stream) {
                Ok(None) => self.asking.push(stream),
                Ok(Some(wanted)) => said.push((stream, wanted)),
                Err(_) => {}
            }
        }
        said
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let there = symlink_metadata(&self.path);
        // What is somebody else's by now stays.
        if there.is_ok_and(|there| identity(&there) == self.made) {
            let _ = remove_file(&self.path);
        }
    }
}

fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// Lets its owner have a socket that is open by `O_PATH`, and the group `group` if there is one.
fn give(socket: &File, group: Option<u32>) -> io::Result<()> {
    if let Some(group) = group {
        fchownat(
            socket,
            "",
            None,
            Some(Gid::from_raw(group)),
            AtFlags::AT_EMPTY_PATH,
        )?;
    }
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    set_permissions(
        format!("/proc/self/fd/{}", socket.as_raw_fd()),
        Permissions::from_mode(mode),
    )
}

/// The process and the user at the other end.
pub fn peer(stream: &UnixStream) -> io::Result<(i32, u32)> {
    let peer = getsockopt(stream, PeerCredentials)?;
    Ok((peer.pid(), peer.uid()))
}

/// Whether the other side of a stream that does not block is gone, or wants no more. It has nothing to say: what it says
/// is passed over.
pub fn has_ended(mut stream: &UnixStream) -> bool {
    match stream.read(&mut [0; 16]) {
        Ok(more) => more == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// The bytes of a message: what it begins with, and then numbers in the byte order of this machine.
pub fn message(magic: [u8; 8], words: &[u32]) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.to_ne_bytes());
    magic.into_iter().chain(words).collect()
}

/// The numbers of a message that begins with `magic`; `None` where it does not, or is too short.
pub fn words<const N: usize>(magic: [u8; 8], message: &[u8]) -> Option<[u32; N]> {
    let rest = message.strip_prefix(&magic)?;
    let mut words = [0; N];
    for (index, word) in words.iter_mut().enumerate() {
        *word = u32::from_ne_bytes(*rest.get(index * 4..)?.first_chunk()?);
    }
    Some(words)
}

/// Reads a message, once all of it is there.
pub fn receive_whole<const N: usize>(mut stream: &UnixStream) -> io::Result<Option<[u8; N]>> {
    let mut message = [0; N];
    let mut bytes = [IoSliceMut::new(&mut message)];
    let came = match recvmsg::<()>(stream.as_raw_fd(), &mut bytes, None, MsgFlags::MSG_PEEK) {
        Ok(came) => came.bytes,
        Err(nix::Error::EAGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match came {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        came if came < N => Ok(None),
        _ => {
            stream.read_exact(&mut message)?;
            Ok(Some(message))
        }
    }
}

/// Sends bytes, and two file descriptors with them: a ring, and a consumer's page.
pub fn send(stream: &UnixStream, message: &[u8], files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let files = files.map(|file| file.as_raw_fd());
    let (bytes, rights) = ([IoSlice::new(message)], [ControlMessage::ScmRights(&files)]);
    sendmsg::<()>(stream.as_raw_fd(), &bytes, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Reads bytes and the file descriptors that come with them. A wait with an end is interrupted by signals, and also by being
/// stopped and continued (signal(7)): it `goes_on` or is an error.
pub fn receive(
    stream: &UnixStream,
    answer: &mut [u8],
    goes_on: impl Fn() -> bool,
) -> io::Result<Vec<OwnedFd>> {
    let expected = answer.len();
    let mut bytes = [IoSliceMut::new(answer)];
    let mut rights = nix::cmsg_space!([RawFd; 2]);
    let came = loop {
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(stream.as_raw_fd(), &mut bytes, Some(&mut rights), flags) {
            Err(nix::Error::EINTR) if goes_on() => {}
            other => break other?,
        }
    };
    let (came, is_cut) = (came.bytes, came.flags.contains(MsgFlags::MSG_CTRUNC));
    // First of all: none of them stays open, whatever else is wrong.
    let files = files_in(&rights);
    if is_cut {
        // There was room for two: this process may open no more, or more were sent.
        return Err(match files.len() {
            0 | 1 => nix::Error::EMFILE.into(),
            _ => ErrorKind::InvalidData.into(),
        });
    }
    if came < expected {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(files)
}

/// The files of the one control message that the kernel put here, zeros before; nix has none of them where others were cut
/// off, and they stayed open.
fn files_in(rights: &[u8]) -> Vec<OwnedFd> {
    let (len, rest) = rights.split_at(size_of::<usize>());
    let len = len.first_chunk().map_or(0, |len| usize::from_ne_bytes(*len));
    let kind = [libc::SOL_SOCKET, libc::SCM_RIGHTS].map(i32::to_ne_bytes);
    let Some(files) = rest.strip_prefix(kind.as_flattened()) else {
        return Vec::new();
    };
    let header = rights.len() - files.len();
    let files = files.get(..len.saturating_sub(header)).unwrap_or_default();
    let files = files.chunks_exact(size_of::<RawFd>());
    let numbers = files.filter_map(|file| Some(RawFd::from_ne_bytes(*file.first_chunk()?)));
    // SAFETY: the kernel just made them for us, and nobody else knows them.
    numbers
        .map(|file| unsafe { OwnedFd::from_raw_fd(file) })
        .collect()
}

/// The sentence that follows a refusal.
pub fn sentence(stream: &UnixStream) -> String {
    let mut why = String::new();
    let _ = stream.take(SENTENCE_MAX).read_to_string(&mut why);
    why
}
