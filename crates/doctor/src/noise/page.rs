//! One page of the kernel's trace buffer, as `trace_pipe_raw` gives it (kernel: `kernel/trace/ring_buffer.c`).

/// A page begins with its time and its length.
const HEADER: usize = 16;
/// The length's low bits; above them are flags.
const LENGTH: u64 = 0xF_FFFF;
/// Records were overwritten before this page.
const MISSED: u64 = 1 << 31;
/// How many follows the data.
const MISSED_STORED: u64 = 1 << 30;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time delta in a record's header.
const DELTA_BITS: u32 = 27;

/// Calls `each` with the time and the bytes of every record of `page`, in order. Returns how many records were lost
/// before it; 1 where the kernel does not say how many.
pub fn records(page: &[u8], mut each: impl FnMut(u64, &[u8])) -> u64 {
    let (Some(mut time), Some(length)) = (word(page, 0), word(page, 8)) else {
        return 0;
    };
    let end = HEADER + (length & LENGTH) as usize;
    let data = page.get(..end).unwrap_or(page);
    let missed = if length & MISSED == 0 {
        0
    } else if length & MISSED_STORED != 0 {
        word(page, end).unwrap_or(1)
    } else {
        1
    };
    let mut at = HEADER;
    while let Some(header) = half(data, at) {
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        let long = || half(data, at + 4);
        at += match kind {
            PADDING => match (delta, long()) {
                // The rest of the page is empty.
                (0, _) | (_, None) => break,
                (_, Some(length)) => {
                    time = time.wrapping_add(delta);
                    4 + length as usize
                }
            },
            TIME_EXTEND | TIME_STAMP => {
                let Some(high) = long() else { break };
                let wide = u64::from(high) << DELTA_BITS | delta;
                if kind == TIME_EXTEND {
                    time = time.wrapping_add(wide);
                } else {
                    // Absolute; the topmost bits do not fit and are those of the time so far.
                    const FIT: u64 = (1 << (DELTA_BITS + 32)) - 1;
                    time = time & !FIT | wide & FIT;
                }
                8
            }
            // Up to 28 words; 0 says that the length is in the next word, which it counts itself.
            words => {
                time = time.wrapping_add(delta);
                let (from, length) = if words == 0 {
                    let Some(length) = long() else { break };
                    (at + 8, (length as usize).saturating_sub(4))
                } else {
                    (at + 4, words as usize * 4)
                };
                let Some(record) = data.get(from..from + length) else {
                    break;
                };
                each(time, record);
                from + length.next_multiple_of(4) - at
            }
        };
    }
    missed
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Page(Vec<u8>);

    impl Page {
        fn new(time: u64) -> Self {
            Self([time.to_le_bytes(), [0; 8]].concat())
        }
        fn header(mut self, kind: u32, delta: u32) -> Self {
            self.0.extend((kind | delta << 5).to_le_bytes());
            self
        }
        fn bytes(mut self, bytes: &[u8]) -> Self {
            self.0.extend(bytes);
            self
        }
        fn read(mut self, flags: u64) -> (Vec<(u64, Vec<u8>)>, u64) {
            let length = (self.0.len() - HEADER) as u64 | flags;
            self.0[8..16].copy_from_slice(&length.to_le_bytes());
            if flags & MISSED_STORED != 0 {
                self.0.extend(9_u64.to_le_bytes());
            }
            let mut all = Vec::new();
            let missed = records(&self.0, |time, record| all.push((time, record.to_vec())));
            (all, missed)
        }
    }

    #[test]
    fn times_add_up_and_long_records_are_whole() {
        let long = [7; 120];
        let (all, missed) = Page::new(1000)
            .header(1, 5)
            .bytes(b"abcd")
            .header(TIME_EXTEND, 1)
            .bytes(&2_u32.to_le_bytes())
            .header(0, 10)
            .bytes(&124_u32.to_le_bytes())
            .bytes(&long)
            .header(PADDING, 3)
            .bytes(&8_u32.to_le_bytes())
            .bytes(&[0; 4])
            .header(TIME_STAMP, 0x4D)
            .bytes(&1_u32.to_le_bytes())
            .header(2, 0)
            .bytes(b"abcdefgh")
            .header(PADDING, 0)
            .bytes(b"rest of the page")
            .read(0);
        let second = 1005 + (2 << 27 | 1) + 10;
        assert_eq!(
            all,
            [
                (1005, b"abcd".to_vec()),
                (second, long.to_vec()),
                (1 << 27 | 0x4D, b"abcdefgh".to_vec())
            ]
        );
        assert_eq!(missed, 0);
    }

    #[test]
    fn lost_records_are_told() {
        assert_eq!(Page::new(0).read(MISSED).1, 1);
        assert_eq!(Page::new(0).read(MISSED | MISSED_STORED).1, 9);
    }

    proptest! {
        #[test]
        fn no_page_is_too_broken(page in prop::collection::vec(any::<u8>(), 0..300)) {
            records(&page, |_, record| assert!(record.len() <= page.len()));
        }
    }
}
