//! The published file: one line with magic, version and length, then the state as JSON.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

use super::State;
use crate::input;

/// Version of the format; a reader refuses later ones.
pub const VERSION: u32 = 2;
/// The first word of the file.
const MAGIC: &str = "dropless-live";
/// No state is nearly as long, bytes.
pub const BYTES_MAX: usize = 8 << 20;
/// The longest first line: magic, version and length, bytes.
const HEAD_MAX: usize = 64;

/// Why a published file was not taken. One line.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is no file of ours.
    #[error("is not what a dropless run publishes")]
    Foreign,
    /// A later dropless wrote it.
    #[error("has version {0}, and this dropless knows up to {VERSION}; use the dropless that runs there")]
    Newer(u32),
    /// It is shorter or longer than it says: the bytes that there are, and those that it says.
    #[error("holds {0} bytes after its first line, and says {1}")]
    Length(usize, usize),
    /// It is no state.
    #[error("is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// The bytes of the file.
pub fn encode(state: &State) -> Result<Vec<u8>, serde_json::Error> {
    let body = serde_json::to_vec(state)?;
    let mut bytes = format!("{MAGIC} {VERSION} {}\n", body.len()).into_bytes();
    bytes.extend(body);
    Ok(bytes)
}

/// The state in the bytes of a file, in which no text can move the cursor.
pub fn decode(bytes: &[u8]) -> Result<State, Refusal> {
    let head = &bytes[..bytes.len().min(HEAD_MAX)];
    let end = head
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or(Refusal::Foreign)?;
    let line = std::str::from_utf8(&head[..end]).map_err(|_| Refusal::Foreign)?;
    let mut words = line.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(Refusal::Foreign);
    }
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
    // The version first: what follows it in a later one is not known here.
    let version = number().ok_or(Refusal::Foreign)?;
    if version > VERSION {
        return Err(Refusal::Newer(version));
    }
    let said = number().ok_or(Refusal::Foreign)? as usize;
    let body = &bytes[end + 1..];
    if body.len() != said {
        return Err(Refusal::Length(body.len(), said));
    }
    let mut state = serde_json::from_slice(body)?;
    input::scrub(&mut state);
    Ok(serde_json::from_value(state)?)
}

/// Whether the file `path` is one that a run publishes; where it `may_be_cut`, one that it has begun to write.
pub(super) fn is_published(path: &Path, may_be_cut: bool) -> bool {
    let begin = |path: &Path| -> io::Result<Vec<u8>> {
        let mut begin = Vec::new();
        open(path)?.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
        Ok(begin)
    };
    begin(path).is_ok_and(|begin| {
        let is_whole = begin.len() == MAGIC.len();
        MAGIC.as_bytes().starts_with(&begin) && (is_whole || may_be_cut)
    })
}

/// Opens a regular file: no link is followed, no pipe waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

/// Reads a published file, whatever may lie there in its stead.
pub fn read(path: &Path) -> Result<State, Refusal> {
    let mut bytes = Vec::new();
    open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > BYTES_MAX {
        return Err(Refusal::Foreign);
    }
    decode(&bytes)
}
