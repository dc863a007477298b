//! Turns round frames that come one after the other: equal headers are not looked at again, only written.

use crate::bytes::{be16, le32, put_le64};
use crate::known_head::{KnownHead, PLAIN_LEN};
use crate::{DropReason, MAGIC, Mac, reflect, reflector_counters};

/// Turns round the frames of one queue. Does what [`reflect`] does, sooner.
#[derive(Clone, Copy, Debug)]
pub struct Reflector {
    only_ours: bool,
    source: Option<Mac>,
    only_to_source: bool,
    known: KnownHead,
    /// The known headers after the turn.
    turned: KnownHead,
}

impl Reflector {
    /// A reflector that knows no headers yet.
    pub fn new(only_ours: bool) -> Self {
        Self {
            only_ours,
            source: None,
            only_to_source: false,
            known: KnownHead::NONE,
            turned: KnownHead::NONE,
        }
    }

    /// The same where others learn from whom a frame comes: what goes back comes from `mac`, whomever it was sent to.
    #[must_use]
    pub fn from_mac(mut self, mac: Mac) -> Self {
        self.source = Some(mac);
        self
    }

    /// The same on a link that others share: what was sent to another address than `mac` is not turned round.
    #[must_use]
    pub fn only_to_mac(mut self, mac: Mac) -> Self {
        (self.source, self.only_to_source) = (Some(mac), true);
        self
    }

    /// Swaps both ends of a frame in place: see [`reflect`].
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "one caller, per packet: what is known stays in registers"
    )]
    pub fn turn(&mut self, frame: &mut [u8]) -> Result<(), DropReason> {
        let len = frame.len();
        if let Some(head) = frame.first_chunk_mut::<PLAIN_LEN>() {
            let ports = le32(head, 34);
            // Source port 0 has no way back.
            if self.known.is_in(head, len)
                && ports & 0xFFFF != 0
                && (!self.only_ours || be16(head, 42) == MAGIC)
            {
                head[..32].copy_from_slice(&self.turned.front);
                put_le64(
                    head,
                    32,
                    self.turned.back | u64::from(ports.rotate_left(16)) << 16,
                );
                return Ok(());
            }
        }
        self.turn_anew(frame)
    }

    #[inline(never)]
    fn turn_anew(&mut self, frame: &mut [u8]) -> Result<(), DropReason> {
        let len = frame.len();
        if self.source.is_none()
            && frame
                .first_chunk()
                .is_some_and(|head| self.turned.is_in(head, len))
        {
            // What was turned comes back: the other side of a conversation.
            std::mem::swap(&mut self.known, &mut self.turned);
            return reflect(frame, self.only_ours);
        }
        let is_for_us = || frame.first_chunk() == self.source.as_ref();
        let is_group = frame.first().is_some_and(|first| first & 1 == 1);
        if self.only_to_source && !is_group && !is_for_us() {
            return Err(DropReason::OtherHost);
        }
        if reflector_counters::is_question(frame) {
            // For the reflector itself, not for the way back.
            return Err(DropReason::NotOurs);
        }
        let before = KnownHead::of(frame);
        reflect(frame, self.only_ours)?;
        if let (Some(mac), Some(source)) = (self.source, frame.get_mut(6..12)) {
            source.copy_from_slice(&mac);
        }
        if let (Some(before), Some(after)) = (before, KnownHead::of(frame)) {
            (self.known, self.turned) = (before, after);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BurstStamp, Template, TemplateSpec};
    use proptest::prelude::*;

    fn template(size: usize, flows: u32, vlan: bool) -> Template {
        Template::new(&TemplateSpec {
            vlans: if vlan {
                vec![crate::VlanTag {
                    tpid: 0x8100,
                    id: 5,
                    pcp: 0,
                }]
            } else {
                Vec::new()
            },
            run: 9,
            flows,
            ..TemplateSpec::plain(size)
        })
        .unwrap()
    }

    #[test]
    fn what_goes_back_comes_from_the_reflector_whomever_it_was_sent_to() {
        let mut reflector = Reflector::new(false).from_mac([2, 0, 0, 0, 0, 9]);
        let template = template(64, 1, false);
        for sequence in 0..3 {
            let mut room = [0; 512];
            template.write(&mut room, &BurstStamp::new(77, 0), sequence, None);
            let there = room;
            let frame = &mut room[..template.frame_len()];
            reflector.turn(frame).unwrap();
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9]);
            // And so does what was turned by somebody else.
            reflector.turn(frame).unwrap();
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 9]);
            assert_eq!(frame[12..], there[12..template.frame_len()]);
        }
    }

    #[test]
    fn what_is_for_another_host_is_left_to_it() {
        let template = template(64, 1, false);
        let mut room = [0; 512];
        template.write(&mut room, &BurstStamp::new(77, 0), 1, None);
        let frame = &mut room[..template.frame_len()];
        let turned = |mac, frame: &mut [u8]| Reflector::new(false).only_to_mac(mac).turn(frame);
        assert_eq!(turned([2, 0, 0, 0, 0, 9], frame), Err(DropReason::OtherHost));
        assert_eq!(turned([2, 0, 0, 0, 0, 2], frame), Ok(()));
        // Its answer, heard by another reflector or by itself, goes no further.
        assert_eq!(turned([2, 0, 0, 0, 0, 2], frame), Err(DropReason::OtherHost));
        frame[0] = 1;
        assert_eq!(turned([2, 0, 0, 0, 0, 2], frame), Err(DropReason::Multicast));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        /// Whatever came before, and whatever was done to a frame, both ways of turning agree on it and on every byte.
        #[test]
        fn does_what_reflect_does(
            frames in prop::collection::vec((0usize..3, any::<u32>(), prop::option::of((any::<prop::sample::Index>(), 0u8..8)), 0usize..3), 1..40),
            only_ours in any::<bool>(),
        ) {
            let templates = [template(64, 100_000, false), template(300, 10, false), template(90, 1, true)];
            let mut reflector = Reflector::new(only_ours);
            for (which, sequence, flip, cut) in frames {
                let template = &templates[which];
                let mut room = [0; 512];
                template.write(&mut room, &BurstStamp::new(77, 0), u64::from(sequence), Some(&template.flow(sequence % template.flows())));
                let mut frame = room[..template.frame_len()].to_vec();
                if let Some((at, bit)) = flip {
                    let at = at.index(frame.len());
                    frame[at] ^= 1 << bit;
                }
                frame.truncate(frame.len() - cut * 7);
                let mut other = frame.clone();
                prop_assert_eq!(reflector.turn(&mut frame), reflect(&mut other, only_ours));
                prop_assert_eq!(frame, other);
            }
        }
    }
}
