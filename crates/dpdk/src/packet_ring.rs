//! The rings that the kernel shares with a packet socket, looked at beside DPDK's driver: what was not sent yet, and what the
//! driver does not tell of what came.

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::{io, ptr};

/// `TPACKET_V2` of `linux/if_packet.h`: what the driver asks for, and what is laid out as is said here.
const VERSION: i32 = 1;
/// The kernel has not taken it yet (`TP_STATUS_SEND_REQUEST`).
const SEND_REQUEST: u32 = 1;
/// It has, and has not let go of it: the frame waits in a queue of the interface, or for its hardware (`TP_STATUS_SENDING`).
const SENDING: u32 = 2;
/// The protocol of a tag that the kernel has taken out of a frame: 802.1ad (`ETH_P_8021AD`).
const SERVICE_TAG: u16 = 0x88A8;

/// How DPDK's driver was told to make the rings of each socket: as many for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRing {
    /// Frames that it holds.
    pub frames: usize,
    /// The room of each, bytes.
    pub frame_size: usize,
    /// The kernel's memory comes in pieces of this size, bytes: one frame or several.
    pub block_size: usize,
}

impl PacketRing {
    /// The bytes of one direction, as the driver rounds them.
    const fn length(self) -> usize {
        self.frames / (self.block_size / self.frame_size) * self.block_size
    }
}

/// The rings of one socket, mapped once more. They outlive the socket's descriptor.
#[derive(Debug)]
pub struct Mapped {
    start: *mut c_void,
    shape: PacketRing,
}

impl Mapped {
    /// Those of the socket `fd`, which speaks `version`.
    pub fn of(fd: i32, version: Option<i32>, shape: PacketRing) -> io::Result<Self> {
        let fits = shape.frames > 0 && (1..=shape.block_size).contains(&shape.frame_size);
        if version != Some(VERSION) || !fits {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The kernel refuses any length but that of both rings.
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                2 * shape.length(),
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, shape })
    }

    /// Frames that were given to the socket and that the kernel has not taken.
    pub fn unsent(&self) -> u64 {
        self.in_state(SEND_REQUEST)
    }

    /// Frames that the kernel has taken from the socket and that have not left yet.
    pub fn sending(&self) -> u64 {
        self.in_state(SENDING)
    }

    fn in_state(&self, state: u32) -> u64 {
        let sending = self.shape.length();
        let those = (0..self.shape.frames).filter(|frame| {
            // SAFETY: within the mapping, which is aligned to pages, as the kernel wants frames aligned to 16; the status comes
            // first in a `tpacket2_hdr`. Kernel and driver change it meanwhile: it is read as an atomic.
            let status = unsafe {
                let place = self.start.byte_add(sending + frame * self.shape.frame_size);
                &*place.cast::<AtomicU32>()
            };
            status.load(Ordering::Acquire) == state
        });
        those.count() as u64
    }
}

impl Mapped {
    /// Whether a frame that came had an 802.1ad tag: of those that lie, or lay last, in `count` places from the `first` on.
    pub fn has_service_tag(&self, first: usize, count: usize) -> bool {
        let (first, frames) = (first % self.shape.frames, self.shape.frames);
        let mut places = first..first + count.min(frames);
        places.any(|place| {
            let frame = place % frames;
            // SAFETY: within the mapping, and aligned, as above; all places begin with a `tpacket2_hdr`, which is zero before its
            // first frame.
            let protocol = unsafe {
                let place = self.start.byte_add(frame * self.shape.frame_size);
                &*place
                    .byte_add(offset_of!(libc::tpacket2_hdr, tp_vlan_tpid))
                    .cast::<AtomicU16>()
            };
            protocol.load(Ordering::Relaxed) == SERVICE_TAG
        })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody looks into any more.
        unsafe { libc::munmap(self.start, 2 * self.shape.length()) };
    }
}
