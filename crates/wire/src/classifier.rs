//! Judges frames that come one after the other: what a sound probe's headers said is not worked out again.
//!
//! Probes of a run differ in little: ports, checksum, lane, sequence, lag and time. A frame whose other bytes equal those of a
//! probe that was verified in full is verified in full by summing what differs: a comparison says more than a sum.

use crate::bytes::{be16, be64, le16, le32, le64};
use crate::checksum::{self, UDP, halves};
use crate::known_head::{KnownHead, PLAIN_LEN};
use crate::probe::{LOW_48, PROBE_LEN, Probe};
use crate::{Class, MAGIC, Verify, classify};

const PROBE_AT: usize = PLAIN_LEN - PROBE_LEN;

/// The headers of the last plain probe that was verified in full.
#[derive(Clone, Copy, Debug)]
struct Known {
    head: KnownHead,
    /// Magic and run, as the low 24 bits at the probe.
    mark: u32,
    /// End of the UDP payload in the frame.
    end: usize,
    /// Sum of all that the comparison covers and the UDP checksum too.
    sum: u64,
}

/// Judges the frames of one queue for one run. Says what [`classify`] says, sooner.
#[derive(Clone, Copy, Debug)]
pub struct Classifier {
    run: u8,
    verify: Verify,
    known: Known,
}

impl Classifier {
    /// A classifier that knows no headers yet.
    pub fn new(run: u8, verify: Verify) -> Self {
        let known = Known {
            head: KnownHead::NONE,
            mark: 0,
            end: 0,
            sum: 0,
        };
        Self { run, verify, known }
    }

    /// Judges one frame: see [`classify`].
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "one caller, per packet: what is known stays in registers"
    )]
    pub fn classify(&mut self, frame: &[u8]) -> Class {
        match self.again(frame, frame.len()) {
            Some(probe) => Class::Probe(probe),
            None => self.anew(frame),
        }
    }

    /// Judges a frame of `whole_len` bytes by the `first` of them; `None` where that takes the others, too.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    pub fn classify_first(&mut self, first: &[u8], whole_len: usize) -> Option<Class> {
        match self.again(first, whole_len) {
            Some(probe) => Some(Class::Probe(probe)),
            None if first.len() == whole_len => Some(self.anew(first)),
            None => None,
        }
    }

    /// The probe in a frame of `whole_len` bytes, if its headers are known. What the probe's IP header says belongs to it
    /// must all be in `frame`; padding may be elsewhere.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn again(&self, frame: &[u8], whole_len: usize) -> Option<Probe> {
        let known = &self.known;
        let head = frame.first_chunk::<PLAIN_LEN>()?;
        let mark = le32(head, PROBE_AT) & 0x00FF_FFFF;
        if !known.head.is_in(head, whole_len) || mark != known.mark {
            return None;
        }
        if self.verify != Verify::None {
            let rest = if known.end == PLAIN_LEN {
                0
            } else {
                checksum::sum(frame.get(PLAIN_LEN..known.end)?)
            };
            let field = le16(head, 40);
            let sum = known.sum
                + u64::from(le32(head, 34))
                + u64::from(field)
                + halves(le64(head, 44))
                + halves(le64(head, 52))
                + rest;
            if field == 0 || !checksum::is_valid(sum) {
                return None;
            }
        }
        let lane_and_sequence = be64(head, 46);
        Some(Probe {
            run: self.run,
            lag: head[45],
            lane: (lane_and_sequence >> 48) as u16,
            sequence: lane_and_sequence & LOW_48,
            time_ns: be64(head, 52) & LOW_48,
        })
    }

    #[inline(never)]
    fn anew(&mut self, frame: &[u8]) -> Class {
        let class = classify(frame, self.run, self.verify);
        if let Class::Probe(_) = class {
            self.remember(frame);
        }
        class
    }

    /// Remembers the headers of a probe just verified, if it is plain.
    fn remember(&mut self, frame: &[u8]) {
        let (Some(known), Some(head)) = (KnownHead::of(frame), frame.first_chunk::<PLAIN_LEN>()) else {
            return;
        };
        let end = usize::from(be16(head, 38)) + 34;
        // A payload that is compared byte by byte takes the whole way each time.
        if be16(head, PROBE_AT) != MAGIC || (self.verify == Verify::Payload && end > PLAIN_LEN) {
            return;
        }
        self.known = Known {
            head: known,
            mark: le32(head, PROBE_AT) & 0x00FF_FFFF,
            end,
            // The length counts twice: in the pseudo header and in the UDP header.
            sum: halves(le64(head, 26))
                + (u64::from(UDP) << 8)
                + 2 * u64::from(le16(head, 38))
                + u64::from(le16(head, PROBE_AT)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BurstStamp, Template, TemplateSpec, reflect};
    use proptest::prelude::*;

    fn template(size: usize, v6: bool, flows: u32, lane: u16) -> Template {
        let ip = |last: u8| -> std::net::IpAddr {
            if v6 {
                format!("2001:2::{last}").parse().unwrap()
            } else {
                [198, 18, 0, last].into()
            }
        };
        Template::new(&TemplateSpec {
            src: (ip(1), 49152).into(),
            dst: (ip(2), 7).into(),
            run: 9,
            lane,
            flows,
            ..TemplateSpec::plain(size)
        })
        .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        /// Whatever came before, and whatever was done to a frame, both ways of judging agree; of a part of it, too, if that
        /// is enough to judge by.
        #[test]
        fn says_what_classify_says(
            frames in prop::collection::vec((0usize..4, any::<u32>(), any::<bool>(), prop::option::of((any::<prop::sample::Index>(), 0u8..8)), 0usize..3, any::<prop::sample::Index>()), 1..40),
            verify in prop::sample::select(vec![Verify::None, Verify::Checksum, Verify::Payload]),
        ) {
            let templates = [template(64, false, 100_000, 1), template(64, false, 1, 2), template(300, false, 10, 3), template(90, true, 1, 4)];
            let mut classifier = Classifier::new(9, verify);
            for (which, sequence, turned, flip, cut, part) in frames {
                let template = &templates[which];
                let mut room = [0; 512];
                let stamp = BurstStamp::new(u64::from(sequence) * 77, (sequence >> 24) as u8);
                template.write(&mut room, &stamp, u64::from(sequence), Some(&template.flow(sequence % template.flows())));
                let mut frame = room[..template.frame_len()].to_vec();
                if turned {
                    let _ = reflect(&mut frame, false);
                }
                if let Some((at, bit)) = flip {
                    let at = at.index(frame.len());
                    frame[at] ^= 1 << bit;
                }
                frame.truncate(frame.len() - cut * 7);
                let whole = classify(&frame, 9, verify);
                let by_part = classifier.classify_first(&frame[..part.index(frame.len())], frame.len());
                prop_assert!(by_part.is_none_or(|class| class == whole));
                prop_assert_eq!(classifier.classify(&frame), whole);
            }
        }
    }
}
