//! Which XDP program an interface runs, and whose it is: asked of the kernel by rtnetlink(7), for no file tells.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::Sys;
use crate::link::{HEADERS, RTM_GETLINK, RTM_NEWLINK, RTM_SETLINK, ask, index};
use crate::netlink::{HEADER, NLA_F_NESTED, NLMSG_ERROR, attribute, kind, numbered};

/// Of `linux/netlink.h` and `linux/if_link.h`.
const NLM_F_ACK: u16 = 4;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_FLAGS: u16 = 3;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_XDP_EXPECTED_FD: u16 = 8;
/// In the interface's driver, or above it (generic XDP); and only where the program is the expected one.
const XDP_FLAGS_MODES: [u32; 2] = [1 << 2, 1 << 1];
const XDP_FLAGS_REPLACE: u32 = 1 << 4;

/// The id of the program on interface `name`; `None` where there is none, or nobody can say.
pub fn program(sys: &Sys, name: &str) -> Option<u32> {
    let index = index(sys, name).filter(|_| sys.is_live())?;
    let message = ask(RTM_GETLINK, 0, index, &[]).ok()?;
    if kind(&message)? != RTM_NEWLINK {
        return None;
    }
    program_in(message.get(HEADERS..)?)
}

/// Whether what the kernel says of an interface says anything of its program.
pub(crate) fn says_program(attributes: &[u8]) -> bool {
    attribute(attributes, IFLA_XDP).is_some()
}

/// The program in what it says.
pub(crate) fn program_in(attributes: &[u8]) -> Option<u32> {
    let xdp = attribute(attributes, IFLA_XDP)?;
    // Programs of several modes have no common id.
    let id = attribute(xdp, IFLA_XDP_PROG_ID).and_then(|id| id.first_chunk());
    let is_attached = attribute(xdp, IFLA_XDP_ATTACHED)?.first() != Some(&0);
    is_attached.then(|| id.map_or(0, |id| u32::from_ne_bytes(*id)))
}

/// Takes `program` off the interface with this index, and none that came in its place.
pub fn detach(index: u32, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut last = io::ErrorKind::NotFound.into();
    for mode in XDP_FLAGS_MODES {
        let attributes = [
            numbered(IFLA_XDP_FD, u32::MAX),
            numbered(IFLA_XDP_FLAGS, XDP_FLAGS_REPLACE | mode),
            numbered(IFLA_XDP_EXPECTED_FD, program.as_raw_fd() as u32),
        ]
        .concat();
        let length = (attributes.len() + 4) as u16;
        let head = [length.to_ne_bytes(), (IFLA_XDP | NLA_F_NESTED).to_ne_bytes()];
        let answer = ask(
            RTM_SETLINK,
            NLM_F_ACK,
            index,
            &[&head.concat()[..], &attributes].concat(),
        )?;
        let code = answer.get(HEADER..).and_then(|code| code.first_chunk());
        match code.filter(|_| kind(&answer) == Some(NLMSG_ERROR)) {
            Some([0, 0, 0, 0]) => return Ok(()),
            Some(code) => last = io::Error::from_raw_os_error(-i32::from_ne_bytes(*code)),
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Err(last)
}

/// Whether a process other than this one has the program with this id open, as far as we may look.
pub fn is_held(sys: &Sys, id: u32) -> bool {
    holder(sys, id).is_some()
}

/// The process that has it open.
pub fn holder(sys: &Sys, id: u32) -> Option<u32> {
    let (own, line) = (sys.link_name("/proc/self"), format!("prog_id:\t{id}"));
    let holds = |process: &String| {
        let files = sys.names(format!("/proc/{process}/fdinfo"));
        let mut texts = files
            .iter()
            .filter_map(|file| sys.text(format!("/proc/{process}/fdinfo/{file}")));
        texts.any(|text| text.lines().any(|found| found == line))
    };
    let mut others = sys.processes().into_iter();
    let found = others.find(|process| Some(process) != own.as_ref() && holds(process));
    found?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_program_open_is_found_and_we_are_not() {
        let root = tempfile::tempdir().unwrap();
        let sys = Sys::at(root.path());
        let process = |id: &str, text: &str| {
            let files = root.path().join("proc").join(id).join("fdinfo");
            std::fs::create_dir_all(&files).unwrap();
            std::fs::write(files.join("3"), text).unwrap();
        };
        process("10", "pos:\t0\nprog_type:\t6\nprog_id:\t77\n");
        process("11", "pos:\t0\nmap_id:\t7\n");
        assert!(is_held(&sys, 77));
        assert!(!is_held(&sys, 7), "neither a map of that id, nor a longer number");
        std::os::unix::fs::symlink("10", root.path().join("proc/self")).unwrap();
        assert!(!is_held(&sys, 77));
    }
}
