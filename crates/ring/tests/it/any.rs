//! Any bytes as a ring, as what somebody says who joins one, and as what he is answered. The fuzz targets call these
//! functions, and `damaged.rs` calls them over cases of its own.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use ring::layout::{Geometry, SEGMENT_MIN, VERSION, header};
use ring::pcapng::{self, ENTRY, PacketHead};
use ring::share::{Door, JOIN, Joined};
use ring::socket;
use ring::{Consumer, Producer, Ring, RingError};

pub const PACKETS: u64 = 700;
const SEGMENTS: u32 = 4;
/// Bytes of a change: its kind, where it is, and eight bytes.
const CHANGE: usize = 13;
/// Bytes of a name, and of all that who joins says.
const NAME: usize = 64;
const JOIN_LEN: usize = 16 + NAME;

/// The bytes of a ring, and of a consumer's page.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub ring: Vec<u8>,
    pub page: Vec<u8>,
}

/// Where the first byte of a change is.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Header(usize),
    Slot(usize),
    /// An entry of a worklist.
    Entry(u64, usize),
    /// Somewhere in a segment.
    Segment(u64, usize),
    Page(usize),
}

impl Place {
    /// The place that five bytes name: a kind, and where.
    fn named(kind: u8, at: u32) -> Self {
        let (segment, within) = (u64::from(at >> 24), (at & 0xFF_FFFF) as usize);
        match kind % 5 {
            0 => Self::Header(at as usize % 160),
            1 => Self::Slot(at as usize % 256),
            2 => Self::Entry(segment % u64::from(SEGMENTS), within % 200),
            3 => Self::Segment(segment % u64::from(SEGMENTS), within % (SEGMENT_MIN as usize - 8)),
            _ => Self::Page(at as usize % 96),
        }
    }

    /// The five bytes that name it.
    fn name(self) -> [u8; 5] {
        let (kind, at) = match self {
            Self::Header(at) => (0, at as u32),
            Self::Slot(at) => (1, at as u32),
            Self::Entry(segment, entry) => (2, (segment as u32) << 24 | entry as u32),
            Self::Segment(segment, at) => (3, (segment as u32) << 24 | at as u32),
            Self::Page(at) => (4, at as u32),
        };
        let at = at.to_le_bytes();
        [kind, at[0], at[1], at[2], at[3]]
    }
}

impl Image {
    /// A ring of four segments of which some were overwritten, as a consumer of this kind finds it.
    pub fn sound(is_lossless: bool) -> Self {
        let (mut producer, ring) = own_ring();
        let (_seat, page) = ring.seat(is_lossless).unwrap();
        producer.commit();
        for number in 0..PACKETS {
            let frame = vec![number as u8; 60 + (number * 37 % 1400) as usize];
            let head = PacketHead {
                time_ns: number,
                ..PacketHead::default()
            };
            if producer.push(&head, frame.len(), [&frame[..]]).is_err() {
                break;
            }
            producer.commit();
        }
        Self {
            ring: contents(ring.file()),
            page: contents(page.as_fd()),
        }
    }

    pub fn change(&mut self, changes: &[(Place, u64)]) {
        let geometry = Geometry {
            segments: SEGMENTS,
            segment_len: SEGMENT_MIN,
            preamble_len: 4096,
        };
        for (place, value) in changes {
            let value = value.to_ne_bytes();
            let (bytes, at) = match place {
                Place::Header(at) => (&mut self.ring, *at),
                Place::Slot(at) => (&mut self.ring, header::LEN + at),
                Place::Entry(segment, entry) => {
                    let end = geometry.segment_at(*segment) + geometry.segment_len as usize - 4;
                    (&mut self.ring, end - (entry + 1) * ENTRY)
                }
                Place::Segment(segment, at) => (&mut self.ring, geometry.segment_at(*segment) + at),
                Place::Page(at) => (&mut self.page, *at),
            };
            bytes[at..at + 8].copy_from_slice(&value);
        }
    }

    /// Reads it to its end: packets, the sum of their bytes, and whether an error ended it.
    pub fn read(&self) -> (u64, u64, bool) {
        let (mut count, mut sum) = (0, 0);
        let mut go = || {
            let mut consumer = Consumer::new(sealed(&self.ring), sealed(&self.page))?;
            consumer.preamble();
            while let Some(packets) = consumer.packets()? {
                for packet in packets.iter() {
                    let packet = packet?;
                    count += 1;
                    sum += packet.data.iter().map(|byte| u64::from(*byte)).sum::<u64>();
                }
            }
            Ok::<(), RingError>(())
        };
        let is_wrong = go().is_err();
        (count, sum, is_wrong)
    }

    /// Reads it as files are written: by whole segments.
    pub fn read_segments(&self) -> Result<(), RingError> {
        let mut consumer = Consumer::new(sealed(&self.ring), sealed(&self.page))?;
        loop {
            let number = consumer.next_segment();
            let Some(segment) = consumer.segment(number)? else {
                return Ok(());
            };
            let (packets, _) = (segment.packets as u64, segment.blocks.to_vec());
            consumer.release(number, packets);
        }
    }
}

/// Changes of a ring as bytes, for [`ring`].
pub fn changes(is_lossless: bool, changes: &[(Place, u64)]) -> Vec<u8> {
    let mut input = vec![u8::from(is_lossless)];
    for (place, value) in changes {
        input.extend(place.name());
        input.extend(value.to_le_bytes());
    }
    input
}

/// A sound ring of `[lossy, lossless]` with the changes that `input` names: the first byte says which ring.
pub fn damaged(sound: &[Image; 2], input: &[u8]) -> Image {
    let Some((kind, rest)) = input.split_first() else {
        return sound[0].clone();
    };
    let mut image = sound[usize::from(kind & 1)].clone();
    for change in rest.chunks_exact(CHANGE) {
        let (place, value) = change.split_at(5);
        let at = u32::from_le_bytes(place[1..].try_into().unwrap());
        let value = u64::from_le_bytes(value.try_into().unwrap());
        image.change(&[(Place::named(place[0], at), value)]);
    }
    image
}

/// Reads a damaged ring: no panic, and no more packets than there is room for. Whether an error ended it.
pub fn ring(sound: &[Image; 2], input: &[u8]) -> bool {
    let image = damaged(sound, input);
    let (count, sum, is_wrong) = image.read();
    assert!(
        count <= u64::from(SEGMENTS * SEGMENT_MIN) / ENTRY as u64,
        "{count}"
    );
    // Every packet lies in its segment, and entries may say so of the same bytes again and again.
    assert!(sum <= count * u64::from(SEGMENT_MIN) * 255, "{sum}");
    let _ = image.read_segments();
    is_wrong
}

/// What somebody says who joins a ring: only who says it right gets a seat.
pub fn joiner(message: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("door");
    let (mut producer, ring) = own_ring();
    let mut door = Door::open(&path, None).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    // Half of it comes later.
    let (first, rest) = message.split_at(message.len() / 2);
    for part in [first, rest] {
        let _ = stream.write_all(part);
        door.look(&ring);
        producer.commit();
    }
    door.look(&ring);
    let is_right =
        message.len() >= JOIN_LEN && message[..8] == JOIN && message[8..12] == VERSION.to_ne_bytes();
    assert_eq!(door.guests().len(), usize::from(is_right));
    for guest in door.guests() {
        // What is not UTF-8 becomes a character of three bytes.
        assert!(guest.name.len() <= 3 * NAME);
    }
    drop(stream);
    // Of what he says beside that each look takes a little, and a child of this process that another test is about to start
    // has the connection, too, until it is one.
    let begun = Instant::now();
    while !door.guests().iter().all(|guest| guest.is_gone) {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "who left is still there"
        );
        door.look(&ring);
    }
}

/// What who joins is answered: the first byte says whether a ring and a page come with it. Whether he has a ring to read.
pub fn answer(sound: &[Image; 2], input: &[u8]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("door");
    let listener = UnixListener::bind(&path).unwrap();
    let (first, message) = input.split_first().unwrap_or((&0, &[]));
    let image = &sound[usize::from(first & 1)];
    let (ring, page) = (sealed(&image.ring), sealed(&image.page));
    let has_files = first & 2 != 0 && !message.is_empty();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = if has_files {
                socket::send(&stream, message, [ring.as_fd(), page.as_fd()])
            } else {
                stream.write_all(message)
            };
        });
        let joined = Joined::new(&path, "fuzz", first & 4 != 0);
        assert!(has_files || joined.is_err());
        joined.is_ok()
    })
}

fn own_ring() -> (Producer, Ring) {
    Producer::new(SEGMENTS, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap()
}

/// Memory of these bytes that cannot shrink.
pub fn sealed(bytes: &[u8]) -> OwnedFd {
    let file = memfd_create("test", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    let file = std::fs::File::from(file);
    file.write_all_at(bytes, 0).unwrap();
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
    file.into()
}

/// All bytes of a file.
pub fn contents(file: impl AsFd) -> Vec<u8> {
    let file = std::fs::File::from(file.as_fd().try_clone_to_owned().unwrap());
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}
