//! Files of pcap that a test makes.

use super::Lab;

/// A packet of a file that a test makes: its time, its bytes, and its length before it was cut.
#[derive(Clone)]
pub struct Made {
    pub at_ns: u64,
    pub bytes: Vec<u8>,
    pub original_len: usize,
}

impl Made {
    /// One of which nothing was cut.
    pub fn whole(at_ns: u64, bytes: Vec<u8>) -> Self {
        Self {
            at_ns,
            original_len: bytes.len(),
            bytes,
        }
    }
}

/// Frames that nobody answers, `gap_ns` apart, each of its own length and bytes.
pub fn frames(count: usize, gap_ns: u64) -> Vec<Made> {
    let made = |number: usize| {
        let len = 60 + number * 37 % 1455;
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB5];
        bytes.extend((14..len).map(|at| (at * 7 + number) as u8));
        Made::whole(1_700_000_000_000_000_000 + number as u64 * gap_ns, bytes)
    };
    (0..count).map(made).collect()
}

/// The kinds of pcap: nanoseconds or microseconds, in either byte order.
#[derive(Clone, Copy, Debug)]
pub struct Pcap {
    pub is_nano: bool,
    pub is_big: bool,
    pub link: u32,
}

pub const PLAIN: Pcap = Pcap {
    is_nano: true,
    is_big: false,
    link: 1,
};

pub const MICROSECONDS: Pcap = Pcap {
    is_nano: false,
    ..PLAIN
};

impl Pcap {
    /// A file as `pcap-savefile(5)` has it.
    pub fn bytes(self, packets: &[Made]) -> Vec<u8> {
        let word = |value: u32| {
            if self.is_big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let half = |value: u16| {
            if self.is_big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            }
        };
        let magic = if self.is_nano { 0xA1B2_3C4D } else { 0xA1B2_C3D4 };
        let mut file = [&word(magic)[..], &half(2), &half(4)].concat();
        for value in [0, 0, 262_144, self.link] {
            file.extend(word(value));
        }
        for Made {
            at_ns,
            bytes,
            original_len,
        } in packets
        {
            let fraction = (at_ns % 1_000_000_000) as u32;
            let fraction = if self.is_nano { fraction } else { fraction / 1000 };
            let seconds = (at_ns / 1_000_000_000) as u32;
            for value in [seconds, fraction, bytes.len() as u32, *original_len as u32] {
                file.extend(word(value));
            }
            file.extend(bytes);
        }
        file
    }

    pub fn write(self, lab: &Lab, name: &str, packets: &[Made]) -> String {
        let path = lab.path(name);
        std::fs::write(&path, self.bytes(packets)).expect("a capture");
        path.display().to_string()
    }
}
