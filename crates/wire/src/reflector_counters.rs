//! The far side's counters: a question among the probes that a reflecting dropless answers with what it counted.
//!
//! Question and answer are UDP frames of one length: magic and version (2 bytes), run (1), zero (1), then numbers of 8
//! bytes, big-endian. A reflector of another make returns or drops the question like any packet, and nothing is known of it.

use crate::bytes::try_array;
use crate::checksum::{self, UDP};
use crate::headers::{self, Ip, Parsed, UDP_LEN};
use crate::template_spec::headers_len;
use crate::{DropReason, FCS_LEN, MAX_VLANS, Template, TemplateError, TemplateSpec, reflect};

const QUESTION: [u8; 2] = [0xD7, 0x02];
const ANSWER: [u8; 2] = [0xD7, 0x03];

/// Places of a reflector that lose packets, before those of [`DropReason`].
const OWN_PLACES: [&str; 7] = [
    "rx_missed",
    "rx_nombuf",
    "rx_error",
    "tx_error",
    "tx_full",
    "oversized",
    "fault_drop",
];
const PLACES: usize = OWN_PLACES.len() + DropReason::COUNT;
const PAYLOAD_LEN: usize = 4 + 8 * (5 + PLACES);
/// No count of ours is larger: at the line rate of 100 Gbit/s it takes a year. Whoever says more did not count, and sums of
/// what many say stay far below what 64 bits hold.
const COUNT_MAX: u64 = 1 << 52;
/// Where the question has a number that only who was asked can repeat.
const NONCE: std::ops::Range<usize> = 4..12;

/// What a reflector has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReflectorCounters {
    /// Whose they are: a random number of the reflector's port since its start. Two who ask may ask the same one.
    pub account: u64,
    /// Counts up with each look at the counters: two more means that all was read after the question came.
    pub generation: u64,
    /// Frames received, without those it answered as a host.
    pub received: u64,
    /// Frames returned, without those it answered as a host.
    pub returned: u64,
    lost: [u64; PLACES],
}

impl ReflectorCounters {
    /// The names of all places that can lose packets.
    pub fn places() -> impl Iterator<Item = &'static str> {
        OWN_PLACES
            .into_iter()
            .chain(DropReason::ALL.map(DropReason::name))
    }

    /// Adds packets that the place `name` lost; a name that does not exist is ignored.
    pub fn add(&mut self, name: &str, count: u64) {
        if let Some(index) = Self::places().position(|place| place == name) {
            self.lost[index] += count;
        }
    }

    /// What each place lost.
    pub fn lost(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::places().zip(self.lost)
    }

    /// What was counted since `before`; `None` where another account told that, of another port or of another life.
    pub fn since(&self, before: &Self) -> Option<Self> {
        let mut now = *self;
        now.generation = self.looks_since(before)?;
        now.received = now.received.saturating_sub(before.received);
        now.returned = now.returned.saturating_sub(before.returned);
        for (now, before) in now.lost.iter_mut().zip(before.lost) {
            *now = now.saturating_sub(before);
        }
        Some(now)
    }

    /// How often the reflector looked at its counters since `before`; `None` where another account told that.
    pub fn looks_since(&self, before: &Self) -> Option<u64> {
        (self.account == before.account).then(|| self.generation.saturating_sub(before.generation))
    }

    /// The question, as a frame on the way of the stream that `spec` describes. Its answer repeats the `nonce`.
    pub fn question(spec: &TemplateSpec, nonce: u64) -> Result<Vec<u8>, TemplateError> {
        let spec = TemplateSpec {
            frame_size: headers_len(spec.dst.is_ipv6(), spec.vlans.len()) + PAYLOAD_LEN + FCS_LEN,
            flows: 1,
            ..spec.clone()
        };
        let mut frame = Template::new(&spec)?.bytes().to_vec();
        if let Some((ip, payload)) = payload_of(&frame) {
            let payload = &mut frame[payload..][..PAYLOAD_LEN];
            payload.fill(0);
            payload[..2].copy_from_slice(&QUESTION);
            payload[2] = spec.run;
            payload[NONCE].copy_from_slice(&nonce.to_be_bytes());
            if !ip.v6 {
                // Not the identification of any probe: a reflector that remembers their headers looks twice.
                set_identification(&mut frame[ip.at..ip.transport]);
            }
            seal(&mut frame, &ip);
        }
        Ok(frame)
    }

    /// Makes an answer of a question, in place; `false`, and the frame untouched, if it is none.
    pub fn answer(&self, frame: &mut [u8]) -> bool {
        let Some((ip, payload)) = question_in(frame) else {
            return false;
        };
        if !ip.header_is_valid(frame)
            || !ip.transport_sum(frame, UDP).is_some_and(checksum::is_valid)
            || reflect(frame, false).is_err()
        {
            return false;
        }
        let numbers = [self.account, self.generation, self.received, self.returned];
        let payload = &mut frame[payload..][..PAYLOAD_LEN];
        payload[..2].copy_from_slice(&ANSWER);
        for (to, number) in payload[NONCE.end..]
            .chunks_exact_mut(8)
            .zip(numbers.iter().chain(&self.lost))
        {
            to.copy_from_slice(&number.to_be_bytes());
        }
        seal(frame, &ip);
        true
    }

    /// Reads the answer to the question with this `nonce`; `None` also where it says what nobody can have counted.
    pub fn read(frame: &[u8], nonce: u64) -> Option<Self> {
        let (_, at) = payload_of(frame)?;
        let payload = try_array::<PAYLOAD_LEN>(frame, at)?;
        if !is_answer(payload) || payload[NONCE] != nonce.to_be_bytes() {
            return None;
        }
        let mut numbers = payload[NONCE.end..]
            .chunks_exact(8)
            .filter_map(|bytes| bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)));
        let mut counters = Self {
            account: numbers.next()?,
            generation: numbers.next()?,
            received: numbers.next()?,
            returned: numbers.next()?,
            lost: [0; PLACES],
        };
        counters
            .lost
            .iter_mut()
            .zip(numbers)
            .for_each(|(to, number)| *to = number);
        let counted = [counters.generation, counters.received, counters.returned];
        let is_possible = counted
            .iter()
            .chain(&counters.lost)
            .all(|count| *count <= COUNT_MAX);
        is_possible.then_some(counters)
    }
}

/// Whether a UDP payload is an answer.
pub(crate) fn is_answer(payload: &[u8]) -> bool {
    payload.len() == PAYLOAD_LEN && payload.starts_with(&ANSWER)
}

/// Whether `frame` asks for the counters; cheap for frames of any other length.
#[inline]
pub(crate) fn is_question(frame: &[u8]) -> bool {
    const SHORTEST: usize = headers_len(false, 0) + PAYLOAD_LEN;
    const LONGEST: usize = headers_len(true, MAX_VLANS) + PAYLOAD_LEN;
    (SHORTEST..=LONGEST).contains(&frame.len()) && question_in(frame).is_some()
}

fn question_in(frame: &[u8]) -> Option<(Ip, usize)> {
    let (ip, at) = payload_of(frame)?;
    let payload = frame.get(at..ip.end)?;
    (payload.len() == PAYLOAD_LEN && payload.starts_with(&QUESTION)).then_some((ip, at))
}

/// The IP header of a UDP frame, and where its payload begins.
fn payload_of(frame: &[u8]) -> Option<(Ip, usize)> {
    let Parsed::Ip(ip) = headers::parse(frame) else {
        return None;
    };
    ip.udp(frame).map(|udp| (ip, udp.at + UDP_LEN))
}

fn set_identification(header: &mut [u8]) {
    header[4..6].copy_from_slice(&QUESTION);
    header[10..12].fill(0);
    let field = checksum::field(checksum::sum(header));
    header[10..12].copy_from_slice(&field);
}

/// Puts in the UDP checksum.
fn seal(frame: &mut [u8], ip: &Ip) {
    let at = ip.transport + 6;
    frame[at..at + 2].fill(0);
    if let Some(sum) = ip.transport_sum(frame, UDP) {
        let field = checksum::udp_field(sum);
        frame[at..at + 2].copy_from_slice(&field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Foreign, Reflector, Verify, VlanTag, classify};
    use std::net::SocketAddr;

    fn spec(v6: bool, tags: u16) -> TemplateSpec {
        let end = |v4: &str, v6_end: &str| -> SocketAddr { if v6 { v6_end } else { v4 }.parse().unwrap() };
        TemplateSpec {
            vlans: (0..tags)
                .map(|id| VlanTag {
                    tpid: 0x8100,
                    id,
                    pcp: 0,
                })
                .collect(),
            src: end("198.18.0.1:5000", "[2001:2::1]:5000"),
            dst: end("198.18.0.2:7", "[2001:2::2]:7"),
            run: 9,
            flows: 5,
            dst_ports: 7..=9,
            ..TemplateSpec::plain(128)
        }
    }

    #[test]
    fn an_answer_says_what_was_counted() {
        let mut counters = ReflectorCounters {
            generation: 7,
            received: 100,
            returned: 90,
            ..ReflectorCounters::default()
        };
        counters.add("rx_missed", 4);
        counters.add("not_udp", 6);
        counters.add("no such place", 1);
        for (v6, tags) in [(false, 0), (false, 2), (true, 0), (true, 1)] {
            let question = ReflectorCounters::question(&spec(v6, tags), 77).unwrap();
            assert!(is_question(&question));
            assert_eq!(ReflectorCounters::read(&question, 77), None);
            let mut frame = question.clone();
            assert!(Reflector::new(false).turn(&mut frame).is_err());
            assert_eq!(frame, question);
            assert!(counters.answer(&mut frame));
            assert_eq!((&frame[..6], &frame[6..12]), (&question[6..12], &question[..6]));
            assert_eq!(
                classify(&frame, 9, Verify::Checksum),
                Class::Foreign(Foreign::ReflectorCounters)
            );
            assert_eq!(ReflectorCounters::read(&frame, 77), Some(counters));
            assert_eq!(ReflectorCounters::read(&frame, 78), None);
            assert!(!counters.answer(&mut frame), "an answer is no question");
        }
    }

    #[test]
    fn what_nobody_can_have_counted_is_no_answer() {
        let question = ReflectorCounters::question(&spec(false, 0), 77).unwrap();
        let of = |change: fn(&mut ReflectorCounters, u64), count| {
            let mut counters = ReflectorCounters {
                account: u64::MAX,
                ..ReflectorCounters::default()
            };
            change(&mut counters, count);
            let mut frame = question.clone();
            assert!(counters.answer(&mut frame));
            ReflectorCounters::read(&frame, 77) == Some(counters)
        };
        let changes: [fn(&mut ReflectorCounters, u64); 4] = [
            |counters, count| counters.generation = count,
            |counters, count| counters.received = count,
            |counters, count| counters.returned = count,
            |counters, count| counters.add("tx_full", count),
        ];
        for change in changes {
            assert!(of(change, COUNT_MAX), "an account is any number");
            assert!(!of(change, COUNT_MAX + 1) && !of(change, u64::MAX));
        }
    }

    #[test]
    fn a_damaged_question_is_not_answered() {
        let question = ReflectorCounters::question(&spec(false, 0), 77).unwrap();
        for at in 0..question.len() {
            let mut frame = question.clone();
            frame[at] ^= 0x10;
            let before = frame.clone();
            if ReflectorCounters::default().answer(&mut frame) {
                assert!(at < 12, "byte {at} is covered by a checksum");
            } else {
                assert_eq!(frame, before);
            }
        }
    }

    #[test]
    fn a_difference_leaves_out_what_was_before() {
        let mut before = ReflectorCounters {
            generation: 3,
            received: 5,
            ..ReflectorCounters::default()
        };
        before.add("tx_full", 2);
        let mut after = ReflectorCounters {
            generation: 8,
            received: 9,
            returned: 1,
            ..before
        };
        after.add("tx_full", 1);
        let since = after.since(&before).unwrap();
        assert_eq!((since.generation, since.received, since.returned), (5, 4, 1));
        assert_eq!(
            since.lost().filter(|(_, count)| *count > 0).collect::<Vec<_>>(),
            [("tx_full", 1)]
        );
        after.account += 1;
        assert_eq!(after.since(&before), None, "another life counted that");
    }
}
