//! Which XDP program an interface runs: asked of the kernel by rtnetlink(7), for no file tells.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use crate::Sys;
use crate::interface;

/// Of `linux/rtnetlink.h` and `linux/if_link.h`.
const RTM_GETLINK: u16 = 18;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
/// The high bits of an attribute's type are flags.
const NLA_TYPE_MASK: u16 = 0x3FFF;
/// `struct nlmsghdr` and `struct ifinfomsg`.
const HEADERS: usize = 32;
/// A killed process takes a moment to let go of its program.
const PATIENCE: Duration = Duration::from_secs(1);

/// The id of the program on interface `name`; `None` where there is none, or nobody can say.
pub fn program(sys: &Sys, name: &str) -> Option<u32> {
    let index = interface::index(sys, name).filter(|_| sys.is_live())?;
    let link = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )
    .ok()?;
    let mut request = Vec::with_capacity(HEADERS);
    request.extend((HEADERS as u32).to_ne_bytes());
    request.extend(RTM_GETLINK.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 12]);
    request.extend(index.to_ne_bytes());
    request.extend([0; 8]);
    send(link.as_raw_fd(), &request, MsgFlags::empty()).ok()?;
    let mut room = vec![0; 64 << 10];
    let length = recv(link.as_raw_fd(), &mut room, MsgFlags::empty()).ok()?;
    let message = room.get(..length)?;
    let kind = u16::from_ne_bytes(*message.get(4..)?.first_chunk()?);
    if kind != RTM_NEWLINK {
        return None;
    }
    let xdp = attribute(message.get(HEADERS..)?, IFLA_XDP)?;
    // Programs of several modes have no common id.
    let id = attribute(xdp, IFLA_XDP_PROG_ID).and_then(|id| id.first_chunk());
    let is_attached = attribute(xdp, IFLA_XDP_ATTACHED)?.first() != Some(&0);
    is_attached.then(|| id.map_or(0, |id| u32::from_ne_bytes(*id)))
}

/// Waits for a moment until the interface has no program; else its id.
pub fn wait_until_free(sys: &Sys, name: &str) -> Result<(), u32> {
    let begun = Instant::now();
    while let Some(id) = program(sys, name) {
        if begun.elapsed() > PATIENCE {
            return Err(id);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The value of the first attribute of this type: length 2, type 2, value, padded to 4.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & NLA_TYPE_MASK;
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_found_behind_padding() {
        let bytes = [
            &[5, 0, 1, 0, 9, 0, 0, 0][..],
            &[8, 0, IFLA_XDP as u8, 0x80, 7, 0, 0, 0],
        ]
        .concat();
        assert_eq!(attribute(&bytes, IFLA_XDP), Some(&[7, 0, 0, 0][..]));
        assert_eq!(attribute(&bytes, 2), None);
    }

    proptest! {
        #[test]
        fn no_answer_is_too_broken(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = attribute(&bytes, IFLA_XDP);
        }
    }
}
