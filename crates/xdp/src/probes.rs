//! Keeps probes from the kernel's IP, which would route what a packet socket has read already.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::attach::number;
use crate::program::told;
use crate::{AttachError, Error};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probes.bpf.o"));
/// Addresses that the program has room for, and words of each.
const OWN_MAX: usize = 8;
const WORDS: usize = 4;

/// The probes of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbesOf {
    /// The run that they name.
    pub run: u8,
    /// The first of their lanes; the others follow, round 2^16.
    pub first_lane: u16,
    /// How many lanes there are, at least one.
    pub lanes: u32,
}

/// An interface whose probes to certain addresses end behind its packet sockets, as long as this lives: the link goes with
/// whoever holds it.
#[derive(Debug)]
pub struct ProbesEnd {
    _link: OwnedFd,
}

impl ProbesEnd {
    /// Ends those that come to the interface's MAC address and to `own`, the first eight of these: those of a run, or any. It
    /// takes Linux 6.6 (tcx), `CAP_BPF` and `CAP_NET_ADMIN`.
    pub fn on(interface: u32, own: &[IpAddr], of: Option<ProbesOf>) -> Result<Self, AttachError> {
        let object = load(own, of)?;
        let program = object.progs_mut().next().ok_or(Error::Missing("program"))?;
        let (program, interface) = (program.as_fd().as_raw_fd(), number(interface)?);
        let options = sys::bpf_link_create_opts {
            sz: size_of::<sys::bpf_link_create_opts>() as _,
            ..Default::default()
        };
        // SAFETY: `options` is as long as its `sz` says; all live through the call.
        let link =
            unsafe { sys::bpf_link_create(program, interface, sys::BPF_TCX_INGRESS, &raw const options) };
        if link < 0 {
            return Err(io::Error::from_raw_os_error(-link).into());
        }
        // SAFETY: the kernel just made this descriptor for us.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        Ok(Self { _link: link })
    }
}

/// The program, attached to nothing.
fn load(own: &[IpAddr], of: Option<ProbesOf>) -> Result<Object, Error> {
    // What it would print is in its errors, too.
    libbpf_rs::set_print(None);
    let mut object = ObjectBuilder::default()
        .open_memory(OBJECT)
        .map_err(told("the program for probes cannot be read"))?;
    lay(&mut object, own, of).ok_or(Error::Missing("room for addresses"))?;
    object
        .load()
        .map_err(told("the kernel refuses the program for probes"))
}

/// Tells the program the addresses.
fn lay(object: &mut OpenObject, own: &[IpAddr], of: Option<ProbesOf>) -> Option<()> {
    let mut maps = object.maps_mut();
    let mut map = maps.find(|map| map.name().to_string_lossy().ends_with(".rodata.own"))?;
    let (room, bytes) = (map.initial_value_mut()?, told_own(own, of));
    (room.len() == bytes.len()).then(|| room.copy_from_slice(&bytes))
}

/// `struct own`.
fn told_own(own: &[IpAddr], of: Option<ProbesOf>) -> Vec<u8> {
    let own = &own[..own.len().min(OWN_MAX)];
    let (run, first_lane, lanes) = of.map_or((0, 0, 0), |of| {
        (u32::from(of.run), u32::from(of.first_lane), of.lanes)
    });
    let head = [run, first_lane, lanes, own.len() as u32];
    let mut bytes: Vec<u8> = head.into_iter().flat_map(u32::to_ne_bytes).collect();
    for address in own {
        bytes.extend(match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        });
    }
    bytes.resize(size_of::<u32>() * (head.len() + OWN_MAX * WORDS), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ProgramInput;
    use wire::{BurstStamp, Template, TemplateSpec};

    use super::*;
    use crate::Why;

    /// `TC_ACT_SHOT`, and `TC_ACT_UNSPEC` as `BPF_PROG_TEST_RUN` returns it.
    const ENDS: u32 = 2;
    const PASSES: u32 = u32::MAX;

    /// A probe from `src` to `dst`, of this size.
    fn probe(src: &str, dst: &str, frame_size: usize) -> Vec<u8> {
        let spec = TemplateSpec {
            // That of the loopback interface, by which the kernel takes it for a test.
            dst_mac: [0; 6],
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            run: 7,
            ..TemplateSpec::plain(frame_size)
        };
        let template = Template::new(&spec).unwrap();
        let mut room = vec![0; template.room_needed()];
        template.write(&mut room, &BurstStamp::new(1, 0), 1, None);
        room.truncate(template.frame_len());
        room
    }

    /// The same, one byte of it another.
    fn changed(mut frame: Vec<u8>, at: usize, to: u8) -> Vec<u8> {
        frame[at] = to;
        frame
    }

    #[test]
    fn probes_to_own_addresses_end_and_nothing_else_does() {
        let own = ["10.0.0.1", "10.0.0.2", "2001:db8::2"].map(|own| own.parse().unwrap());
        let object = match load(&own, None) {
            // Of who may not load programs nothing can be said; tests/agree.rs says that it was skipped.
            Err(error) if error.why() == Why::NotAllowed => return,
            loaded => loaded.unwrap(),
        };
        let v4 = || probe("10.0.0.9:7", "10.0.0.2:7", 64);
        let v6 = || probe("[2001:db8::9]:7", "[2001:db8::2]:7", 84);
        for (what, frame, expected) in [
            ("IPv4", v4(), ENDS),
            ("IPv4, long", probe("10.0.0.9:7", "10.0.0.1:7", 1518), ENDS),
            ("IPv6", v6(), ENDS),
            ("IPv4 to others", probe("10.0.0.2:7", "10.0.0.3:7", 64), PASSES),
            (
                "IPv6 to others",
                probe("[2001:db8::2]:7", "[2001:db8::3]:7", 84),
                PASSES,
            ),
            (
                "an IPv4 address in one of IPv6",
                probe("[::9]:7", "[::10.0.0.2]:7", 84),
                PASSES,
            ),
            ("another MAC address", changed(v4(), 5, 1), PASSES),
            ("other UDP", changed(v4(), 42, 0), PASSES),
            ("another version", changed(v4(), 43, 2), PASSES),
            ("other UDP over IPv6", changed(v6(), 62, 0), PASSES),
            ("TCP", changed(v4(), 23, 6), PASSES),
            ("options", changed(v4(), 14, 0x46), PASSES),
            ("a first fragment", changed(v4(), 20, 0x20), PASSES),
            ("a later fragment", changed(v4(), 21, 1), PASSES),
            ("another next header", changed(v6(), 20, 0), PASSES),
            ("cut", v4()[..47].to_vec(), PASSES),
        ] {
            assert_eq!(said(&object, &frame), expected, "{what}");
        }
        // Of a run alone: run 7, lane 0.
        for (run, first_lane, lanes, expected) in [
            (7, 0, 1, ENDS),
            (7, 0xFFFE, 3, ENDS),
            (7, 0xFFFE, 2, PASSES),
            (7, 1, 9, PASSES),
            (8, 0, 1, PASSES),
            (7, 5, 0x1_0000, ENDS),
        ] {
            let of = ProbesOf {
                run,
                first_lane,
                lanes,
            };
            let object = load(&own, Some(of)).unwrap();
            for frame in [v4(), v6()] {
                assert_eq!(said(&object, &frame), expected, "{of:?}");
            }
        }
    }

    /// What the program says of a frame.
    fn said(object: &Object, frame: &[u8]) -> u32 {
        let program = object.progs_mut().next().unwrap();
        let input = ProgramInput {
            data_in: Some(frame),
            ..ProgramInput::default()
        };
        program.test_run(input).unwrap().return_value
    }
}
