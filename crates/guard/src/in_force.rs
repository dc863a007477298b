//! The rules in force: what may join them, what they make superfluous, and when each goes.

use measure::units::format_part;
use rules::{Facts, Malformed, Prefix};

use crate::block::{Action, Block, Meets};
use crate::event::{Expired, Over};
use crate::settings::Cap;
use crate::sources::PREFIXES_MAX;

/// Rules are taken back one by one, so far apart; ns.
const STEP_NS: u64 = 1_000_000_000;
/// So many rules that differ in their sources alone, and the next one stands for all of them: a flood of many sources would
/// have more rules than there may be.
const ALIKE: usize = 4;

/// Rules in force, in their order.
#[derive(Debug, Default)]
pub struct InForce {
    blocks: Vec<Block>,
    removed_ns: u64,
    /// Changes whenever they do.
    pub generation: u64,
}

impl InForce {
    /// The first one that meets this packet.
    pub fn meeting(&mut self, packet: &Result<Facts, Malformed>) -> Option<&mut Block> {
        self.blocks.iter_mut().find(|block| block.meets.holds(packet))
    }

    /// Whether a flood of this destination is being blocked.
    pub fn holds(&self, to: Prefix) -> bool {
        let goes_there = |block: &Block| {
            block
                .meets
                .destination()
                .is_some_and(|there| there.covers(&to) || to.covers(&there))
        };
        self.blocks.iter().any(goes_there)
    }

    /// Whether a flood from these sources is being blocked, wherever it goes.
    pub fn holds_source(&self, from: Prefix) -> bool {
        let mut all = self.blocks.iter().flat_map(|block| block.meets.spreading());
        all.any(|there| there.covers(&from) || from.covers(there))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    /// The end of a tick: rules that met little for long enough go, one at a time.
    pub fn expire(&mut self, now_ns: u64, expire_ns: u64) -> Option<Expired> {
        for block in &mut self.blocks {
            block.tick(now_ns, expire_ns);
        }
        if now_ns.saturating_sub(self.removed_ns) < STEP_NS {
            return None;
        }
        let due = |(_, block): &(usize, &Block)| block.until_ns <= now_ns;
        let all = self.blocks.iter().enumerate();
        let (at, _) = all.filter(due).min_by_key(|(_, block)| block.until_ns)?;
        self.removed_ns = now_ns;
        Some(self.remove(at, now_ns, Over::Quiet))
    }

    /// Nothing is known of what came for so long.
    pub fn break_off(&mut self, blind_ns: u64) {
        for block in &mut self.blocks {
            block.break_off(blind_ns);
        }
    }

    fn remove(&mut self, at: usize, now_ns: u64, why: Over) -> Expired {
        let block = self.blocks.remove(at);
        self.generation += 1;
        Expired {
            time_ns: now_ns,
            rule: block.text(),
            lasted_ns: now_ns.saturating_sub(block.since_ns),
            packets: block.packets,
            counted: false,
            known_packets: block.known_packets,
            why,
        }
    }

    /// Whether one of them meets the same packets.
    pub fn has(&self, block: &Block) -> bool {
        self.blocks.iter().any(|known| known.meets == block.meets)
    }

    /// Why a rule may not join them, if so: it would cost so much, and that many packets a second come in all.
    pub fn forbids(&self, block: &Block, cost: f64, all_pps: f64, cap: &Cap) -> Option<String> {
        let narrower = self.narrower(block).count();
        let is_rate = |block: &&Block| block.action != Action::Deny;
        let rates = self.blocks.iter().filter(is_rate).count();
        let blocked_pps: f64 = self.blocks.iter().map(|block| block.pps).sum();
        if self.blocks.len() - narrower >= cap.rules {
            Some(format!(
                "{} rules are in force, and the cap is {}",
                self.blocks.len(),
                cap.rules
            ))
        } else if is_rate(&block) && rates >= cap.rates {
            Some(format!(
                "{rates} rates are in force, and the cap is {}",
                cap.rates
            ))
        } else if !is_rate(&block) && cost > cap.cost {
            Some(format!(
                "it would meet {} of the legitimate packets that are known, and the cap is {}",
                format_part(cost),
                format_part(cap.cost)
            ))
        } else if cap.share < 1.0 && blocked_pps + block.pps > cap.share * all_pps {
            Some(format!(
                "more than {} of all packets would be blocked",
                format_part(cap.share)
            ))
        } else {
            None
        }
    }

    /// What a rule that denies should meet, where there are many like it from other sources: what all of them do.
    pub fn joined(&self, meets: Meets) -> Meets {
        let Meets::Shaped { to, shape, .. } = meets else {
            return meets;
        };
        let is_alike = |block: &&Block| {
            block.action == Action::Deny
                && !block.meets.spreading().is_empty()
                && matches!(&block.meets, Meets::Shaped { to: there, shape: known, .. } if (*there, *known) == (to, shape))
        };
        let alike: Vec<&Block> = self.blocks.iter().filter(is_alike).collect();
        let each = alike.iter().flat_map(|block| block.meets.spreading());
        let mut sources: Vec<Prefix> = each.chain(meets.spreading()).copied().collect();
        sources.sort_unstable();
        sources.dedup();
        let is_many = sources.len() > alike.len() + 1;
        if (alike.len() < ALIKE && !is_many) || alike.is_empty() || sources.len() > PREFIXES_MAX {
            return meets;
        }
        Meets::Shaped {
            to,
            shape,
            sources,
            not: false,
        }
    }

    /// Those that a rule makes superfluous: it meets all that they meet, and lets no more of it pass.
    fn narrower(&self, block: &Block) -> impl Iterator<Item = usize> {
        let is_narrower =
            |known: &Block| block.action.holds_as_much(known.action) && block.meets.covers(&known.meets);
        self.blocks
            .iter()
            .enumerate()
            .filter(move |(_, known)| is_narrower(known))
            .map(|(at, _)| at)
    }

    /// One more; those that it makes superfluous go.
    pub fn put(&mut self, mut block: Block, now_ns: u64) -> Vec<Expired> {
        let mut gone = Vec::new();
        while let Some(at) = { self.narrower(&block).next() } {
            // What they meet it will meet beside what it is made for.
            if !block.meets.spreading().is_empty() {
                block.first_pps += self.blocks[at].pps;
                block.pps += self.blocks[at].pps;
            }
            gone.push(self.remove(at, now_ns, Over::Wider));
        }
        self.blocks.push(block);
        self.generation += 1;
        gone
    }
}
