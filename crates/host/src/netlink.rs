//! Questions that the kernel answers by netlink(7) alone.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// `struct nlmsghdr`.
pub const HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x10;
pub(crate) const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The high bits of an attribute's type are flags.
pub const NLA_F_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3FFF;

/// The answer to a request of this type and with these flags, whose parts are `parts`: the first is a header of its own, if
/// there is one.
pub fn ask(protocol: SockProtocol, kind: (u16, u16), parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let link = request(protocol, kind, &parts.concat())?;
    let mut room = vec![0; 64 << 10];
    let length = recv(link.as_raw_fd(), &mut room, MsgFlags::empty())?;
    room.truncate(length);
    Ok(room)
}

/// Asks by a socket of its own, which is answered.
fn request(protocol: SockProtocol, (kind, flags): (u16, u16), parts: &[u8]) -> io::Result<OwnedFd> {
    let link = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )?;
    let mut request = Vec::with_capacity(HEADER + parts.len());
    request.extend(((HEADER + parts.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    request.extend([0; 8]);
    request.extend(parts);
    send(link.as_raw_fd(), &request, MsgFlags::empty())?;
    Ok(link)
}

/// All answers to a request for a list, of this type; `head` is a header of its own, and what comes after it.
pub fn list(protocol: SockProtocol, kind: u16, head: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let link = request(protocol, (kind, NLM_F_DUMP), head)?;
    let (mut room, mut answers) = (vec![0; 64 << 10], Vec::new());
    loop {
        let length = recv(link.as_raw_fd(), &mut room, MsgFlags::empty())?;
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut found = messages(&room[..length]).peekable();
        found.peek().ok_or_else(broken)?;
        for message in found {
            let flags = message.get(6..).and_then(|flags| flags.first_chunk());
            // The list has changed while it was made: something may be missing.
            if flags.is_none_or(|flags| u16::from_ne_bytes(*flags) & NLM_F_DUMP_INTR != 0) {
                return Err(broken());
            }
            match (self::kind(message), message.get(HEADER..)) {
                (Some(NLMSG_DONE), None | Some([] | [0, 0, 0, 0, ..])) => return Ok(answers),
                (Some(NLMSG_DONE | NLMSG_ERROR), _) => return Err(broken()),
                _ => answers.push(message.to_vec()),
            }
        }
    }
}

/// The messages of a datagram, each as long as its first word says, padded to 4.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let message = bytes.get(..length).filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// What a message is.
pub fn kind(message: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(*message.get(4..)?.first_chunk()?))
}

/// An attribute that is a number.
pub fn numbered(kind: u16, value: u32) -> Vec<u8> {
    valued(kind, &value.to_ne_bytes())
}

/// An attribute of these bytes, padded.
pub fn valued(kind: u16, value: &[u8]) -> Vec<u8> {
    let head = [((value.len() + 4) as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
    let mut bytes = [&head[..], value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of this type.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    let (_, value) = attributes(bytes).find(|(kind, _)| *kind == wanted)?;
    Some(value)
}

/// All attributes, by type and value: length 2, type 2, value, padded to 4.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & NLA_TYPE_MASK;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_found_behind_padding() {
        let bytes = [&[5, 0, 1, 0, 9, 0, 0, 0][..], &[8, 0, 43, 0x80, 7, 0, 0, 0]].concat();
        assert_eq!(attribute(&bytes, 43), Some(&[7, 0, 0, 0][..]));
        assert_eq!(attribute(&bytes, 2), None);
    }

    proptest! {
        #[test]
        fn no_answer_is_too_broken(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = attribute(&bytes, 43);
            let _ = attributes(&bytes).count();
            let _ = messages(&bytes).count();
        }
    }
}
