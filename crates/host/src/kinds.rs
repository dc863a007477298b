//! What the kernel calls the kinds of interfaces that are made in software (`IFLA_INFO_KIND`): no file in /sys says it.

use std::collections::HashMap;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};
use std::os::fd::AsRawFd as _;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_GETLINK: u16 = 18;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const FLAGS: u16 = 0x301;
/// `struct nlmsghdr`, `struct ifinfomsg` and `struct rtattr` without what follows.
const HEAD: usize = 16;
const INFO: usize = 16;
const ATTRIBUTE: usize = 4;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
/// The kernel sends no more at once.
const ANSWER_MAX: usize = 32 << 10;

/// The kind of each interface of this network namespace that has one, by name; none where the kernel does not answer.
pub fn kinds() -> HashMap<String, String> {
    ask().unwrap_or_default()
}

fn ask() -> nix::Result<HashMap<String, String>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        flags,
        SockProtocol::NetlinkRoute,
    )?;
    let mut request = [0; HEAD + INFO];
    request[..4].copy_from_slice(&((HEAD + INFO) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    send(netlink.as_raw_fd(), &request, MsgFlags::empty())?;
    let (mut found, mut answer) = (HashMap::new(), vec![0; ANSWER_MAX]);
    loop {
        let len = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        if len == 0 || read(&answer[..len], &mut found) {
            return Ok(found);
        }
    }
}

/// Takes the links out of an answer; whether it is the last one.
fn read(mut answer: &[u8], found: &mut HashMap<String, String>) -> bool {
    while let Some((kind, message, rest)) = message(answer) {
        if kind == NLMSG_DONE || kind == NLMSG_ERROR {
            return true;
        }
        let attributes = message.get(INFO..).unwrap_or_default();
        let name = attribute(attributes, IFLA_IFNAME).and_then(text);
        let of_kind = attribute(attributes, IFLA_LINKINFO).and_then(|info| attribute(info, IFLA_INFO_KIND));
        if let (Some(name), Some(kind)) = (name, of_kind.and_then(text)) {
            found.insert(name, kind);
        }
        answer = rest;
    }
    false
}

/// The type of the first message, what it has, and the messages behind it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, bytes.get(HEAD..len)?, rest))
}

/// What the first attribute of this type has.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let len = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        // Two bits of the type are flags.
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3FFF;
        let value = bytes.get(ATTRIBUTE..len)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(len.next_multiple_of(4)..)?;
    }
}

fn text(value: &[u8]) -> Option<String> {
    let text = value.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = (ATTRIBUTE + value.len()) as u16;
        let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message_of(kind: u16, attributes: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEAD + INFO + attributes.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEAD + INFO, 0);
        bytes.extend(attributes);
        bytes
    }

    #[test]
    fn links_have_their_kinds_and_no_answer_is_too_short() {
        let link = |name: &[u8], info: &[u8]| {
            let attributes = [attribute_of(IFLA_IFNAME, name), info.to_vec()].concat();
            message_of(16, &attributes)
        };
        let veth = attribute_of(IFLA_LINKINFO, &attribute_of(IFLA_INFO_KIND, b"veth\0"));
        let all = [
            link(b"lo\0", &[]),
            link(b"near0\0", &veth),
            message_of(NLMSG_DONE, &[]),
        ]
        .concat();
        let mut found = HashMap::new();
        assert!(read(&all, &mut found));
        assert_eq!(found, HashMap::from([("near0".into(), "veth".into())]));
        for len in 0..all.len() {
            read(&all[..len], &mut HashMap::new());
        }
        for place in 0..all.len() {
            let mut damaged = all.clone();
            damaged[place] = 0xFF;
            read(&damaged, &mut HashMap::new());
            damaged[place] = 0;
            read(&damaged, &mut HashMap::new());
        }
    }

    #[test]
    fn the_kernel_answers() {
        assert!(ask().is_ok());
    }
}
