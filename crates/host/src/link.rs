//! Links by the number that the kernel gave them, and what rtnetlink(7) tells of them that no file does.

use std::io;

use nix::sys::socket::SockProtocol;

use crate::Sys;
use crate::netlink::{self, HEADER, attribute, kind};

/// Of `linux/rtnetlink.h` and `linux/if_link.h`.
pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_DELLINK: u16 = 17;
pub(crate) const RTM_GETLINK: u16 = 18;
pub(crate) const RTM_SETLINK: u16 = 19;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
/// `struct nlmsghdr` with `struct ifinfomsg`.
pub(crate) const HEADERS: usize = HEADER + 16;

/// The kernel's number of the interface.
pub fn index(sys: &Sys, name: &str) -> Option<u32> {
    sys.number(format!("/sys/class/net/{name}/ifindex"))
}

/// What kind of virtual interface `name` is, as `ip link` says it: veth, vlan, bridge.
pub fn virtual_kind(sys: &Sys, name: &str) -> Option<String> {
    if !sys.is_live() {
        return sys.kinds.get(name).cloned();
    }
    let message = ask(RTM_GETLINK, 0, index(sys, name)?, &[]).ok()?;
    if kind(&message)? != RTM_NEWLINK {
        return None;
    }
    let info = attribute(message.get(HEADERS..)?, IFLA_LINKINFO)?;
    let name = attribute(info, IFLA_INFO_KIND)?;
    let text = String::from_utf8_lossy(name);
    Some(text.trim_end_matches('\0').to_owned())
}

/// The answer to a request about one interface.
pub(crate) fn ask(kind: u16, flags: u16, index: u32, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let about = [&[0; 4], &index.to_ne_bytes()[..], &[0; 8]].concat();
    netlink::ask(SockProtocol::NetlinkRoute, (kind, flags), &[&about, attributes])
}
