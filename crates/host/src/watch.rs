//! What becomes of an interface while nobody looks: the kernel tells each change to whoever has asked for it (rtnetlink(7)).

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, setsockopt, socket,
};

use crate::link::{HEADERS, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, ask};
use crate::netlink::{HEADER, kind};
use crate::xdp::{program_in, says_program};

/// Of `linux/rtnetlink.h` and `linux/if.h`.
const RTMGRP_LINK: u32 = 1;
const IFF_UP: u32 = 1;
const AF_UNSPEC: u8 = 0;
/// Room for what is told while a process is stopped: some thousand messages.
const ROOM: usize = 4 << 20;

/// An interface that is watched.
#[derive(Debug)]
pub struct LinkWatch {
    told: OwnedFd,
    index: u32,
    needs_program: bool,
    program: Cell<Option<u32>>,
    serves: Cell<bool>,
    losses: Cell<u64>,
}

impl LinkWatch {
    /// Watches the interface with this number from now on, and the XDP program that it has, where one is needed.
    pub fn begin(index: u32, needs_program: bool) -> io::Result<Self> {
        let told = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkRoute,
        )?;
        // Without rights it has what everybody has.
        let _ = setsockopt(&told, RcvBufForce, &ROOM);
        bind(told.as_raw_fd(), &NetlinkAddr::new(0, RTMGRP_LINK))?;
        let watch = Self {
            told,
            index,
            needs_program,
            program: Cell::new(None),
            serves: Cell::new(false),
            losses: Cell::new(0),
        };
        watch.see(&ask(RTM_GETLINK, 0, index, &[])?);
        Ok(watch)
    }

    /// How often it was set down, or had not the program that it had before, also for less time than lies between two looks.
    /// What was told and found no room may have been that.
    pub fn losses(&self) -> u64 {
        let mut room = [0; 16 << 10];
        loop {
            match recv(self.told.as_raw_fd(), &mut room, MsgFlags::empty()) {
                Ok(length) => self.see(&room[..length]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return self.losses.get(),
                Err(cause) => {
                    self.losses.set(self.losses.get() + 1);
                    self.serves.set(false);
                    match ask(RTM_GETLINK, 0, self.index, &[]) {
                        Ok(message) if cause == Errno::ENOBUFS => self.see(&message),
                        _ => return self.losses.get(),
                    }
                }
            }
        }
    }

    /// Takes in what the kernel says of an interface: `struct ifinfomsg` has its number and flags at these places.
    fn see(&self, message: &[u8]) {
        let number = |at: usize| Some(u32::from_ne_bytes(*message.get(HEADER + at..)?.first_chunk()?));
        let is_known = matches!(kind(message), Some(RTM_NEWLINK | RTM_DELLINK));
        // What a bridge says of its ports is of another family, and comes by the same way.
        let is_own = message.get(HEADER) == Some(&AF_UNSPEC) && number(4) == Some(self.index);
        if !is_known || !is_own {
            return;
        }
        let is_up = kind(message) == Some(RTM_NEWLINK) && number(8).is_some_and(|flags| flags & IFF_UP != 0);
        let before = self.program.get();
        let attributes = message.get(HEADERS..).unwrap_or_default();
        // Some messages say nothing of it.
        let found = if says_program(attributes) {
            program_in(attributes)
        } else {
            before
        };
        self.program.set(found);
        let serves = is_up && !(self.needs_program && found.is_none());
        let is_same = !self.needs_program || found == before;
        if self.serves.replace(serves) && !(serves && is_same) {
            self.losses.set(self.losses.get() + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{numbered, valued};

    /// What the kernel says of interface 7: whether it is up, and its XDP program.
    fn told(kind: u16, is_up: bool, program: Option<u32>) -> Vec<u8> {
        let mut message = [&[0; 4], &kind.to_ne_bytes()[..], &[0; 14]].concat();
        message.extend(7_u32.to_ne_bytes());
        message.extend(u32::from(is_up).to_ne_bytes());
        message.extend([0; 4]);
        let attached = valued(2, &[u8::from(program.is_some())]);
        let id = program.map_or(Vec::new(), |id| numbered(4, id));
        message.extend(valued(43, &[attached, id].concat()));
        message
    }

    #[test]
    fn whatever_takes_it_away_for_a_moment_is_counted_once() {
        let after = |needs_program: bool, messages: &[(u16, bool, Option<u32>)]| {
            // There is none of that number, and so it serves from its first message on.
            let watch = LinkWatch {
                index: 7,
                ..LinkWatch::begin(u32::MAX >> 1, needs_program).unwrap()
            };
            for (kind, is_up, program) in messages {
                watch.see(&told(*kind, *is_up, *program));
            }
            watch.losses()
        };
        let (new, gone) = (RTM_NEWLINK, RTM_DELLINK);
        let (up, down) = ((new, true, Some(5)), (new, false, Some(5)));
        assert_eq!(after(false, &[up, down, down, up, up, down]), 2);
        assert_eq!(after(true, &[up, down, up]), 1);
        assert_eq!(after(false, &[up, (gone, true, None)]), 1);
        // A program that was taken off, and put there again, and another one in its place.
        let (none, other) = ((new, true, None), (new, true, Some(6)));
        assert_eq!(after(true, &[none, up, none, up, other, other]), 2);
        assert_eq!(after(false, &[none, up, none, up, other]), 0);
        let of_bridge = |mut message: Vec<u8>| {
            message[HEADER] = 7;
            message
        };
        let watch = LinkWatch::begin(1, true).unwrap();
        let watch = LinkWatch { index: 7, ..watch };
        watch.see(&told(new, true, Some(5)));
        watch.see(&of_bridge(told(gone, false, None)));
        watch.see(&told(new, true, None)[..HEADERS]);
        assert_eq!(watch.losses(), 0, "said of something else");
        for length in 0..52 {
            let watch = LinkWatch::begin(1, true).unwrap();
            watch.see(&told(new, true, Some(5))[..length]);
        }
    }
}
