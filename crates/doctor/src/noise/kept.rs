//! What is kept of the events of one core: all, or, where stalls are known while it goes on, those that name them.

use std::collections::{HashMap, HashSet};

use super::attribute::{Span, Stamped};
use super::event::Event;

/// Events kept of one core: minutes under heavy load, and a bound on memory.
const EVENTS_MAX: usize = 4 << 20;
/// Times of lost events kept; what is lost after these is one time.
const LOST_MAX: usize = 1 << 16;

/// A time of which events were lost, both ends included, ticks.
pub type Lost = (u64, u64);

/// The events of one core, in order.
#[derive(Debug, Default)]
pub struct Kept {
    /// Those that stay.
    sure: Vec<Stamped>,
    /// Those after them, which may go.
    open: Vec<Stamped>,
    /// The tasks that have begun a work item, and not ended it, by those that stay.
    works: HashSet<u32>,
    lost: Vec<Lost>,
    /// The last event, whether it is kept or not.
    last: u64,
    /// Since when what came was lost.
    lost_since: Option<u64>,
}

impl Kept {
    /// How many.
    pub fn count(&self) -> usize {
        self.sure.len() + self.open.len()
    }

    /// When the last one was, ticks.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// One more; whether there is room for it.
    pub fn push(&mut self, event: Stamped) -> bool {
        self.last = event.at;
        let has_room = self.count() < EVENTS_MAX;
        if has_room {
            if let Some(since) = self.lost_since.take() {
                self.lose(since, event.at);
            }
            self.open.push(event);
        } else {
            self.lost_since.get_or_insert(event.at);
        }
        has_room
    }

    /// Some were lost since `since`, and before the first that came after them, if any has come.
    pub fn lose_since(&mut self, since: u64, first: Option<u64>) {
        match first {
            Some(first) => self.lose(since, first),
            None => self.lost_since = Some(self.lost_since.map_or(since, |before| before.min(since))),
        }
    }

    fn lose(&mut self, from: u64, to: u64) {
        let is_full = self.lost.len() >= LOST_MAX;
        match self.lost.last_mut() {
            Some(last) if last.1 >= from || is_full => {
                *last = (last.0.min(from), last.1.max(to));
            }
            _ => self.lost.push((from, to)),
        }
    }

    /// Forgets events before `until` that name no stall. All stalls that began before it, and end after the `until` of the
    /// call before, are among `stalls`, in order.
    pub fn forget(&mut self, until: u64, stalls: &[Span]) {
        let due = self.open.partition_point(|event| event.at < until);
        if due == 0 {
            return;
        }
        let mut stays: Vec<bool> = self.open[..due]
            .iter()
            .map(|event| is_among((event.at, event.at), stalls))
            .collect();
        // What a task of the kernel works at is known by where that began: it stays until its end, unless no stall is between.
        let mut begun: HashMap<u32, usize> = HashMap::new();
        for (index, event) in self.open[..due].iter().enumerate() {
            match event.event {
                Event::Work { pid, .. } => {
                    let before = begun.insert(pid, index);
                    if let Some(before) = before {
                        stays[before] = true;
                    }
                    stays[index] |= before.is_some() || self.works.contains(&pid);
                }
                Event::WorkDone { pid } => match begun.remove(&pid) {
                    Some(first) => {
                        let (from, to) = (self.open[first].at, event.at);
                        let both = stays[first] || is_among((from, to), stalls);
                        (stays[first], stays[index]) = (both, both);
                    }
                    None => stays[index] |= self.works.contains(&pid),
                },
                _ => {}
            }
        }
        // What goes on is asked for again.
        let mut goes_on = vec![false; due];
        for index in begun.into_values() {
            let has_stall = is_among((self.open[index].at, until), stalls);
            stays[index] |= has_stall;
            goes_on[index] = !stays[index];
        }
        let mut left = Vec::new();
        for (index, event) in self.open.drain(..due).enumerate() {
            if goes_on[index] {
                left.push(event);
            } else if stays[index] {
                match event.event {
                    Event::Work { pid, .. } => drop(self.works.insert(pid)),
                    Event::WorkDone { pid } => drop(self.works.remove(&pid)),
                    _ => {}
                }
                self.sure.push(event);
            }
        }
        let has_works = !self.works.is_empty() || !left.is_empty();
        self.open.splice(..0, left);
        self.lost
            .retain(|lost| lost.1 >= until || has_works || is_among(*lost, stalls));
    }

    /// All events, and the times of those that were lost.
    pub fn end(mut self) -> (Vec<Stamped>, Vec<Lost>) {
        if let Some(since) = self.lost_since {
            self.lose(since, u64::MAX);
        }
        if self.sure.is_empty() {
            return (self.open, self.lost);
        }
        self.sure.append(&mut self.open);
        // What a task of the kernel worked at may have been kept after what came later.
        self.sure.sort_by_key(|event| event.at);
        (self.sure, self.lost)
    }
}

/// Whether one of `stalls`, which are in order, has some of this time.
fn is_among((from, to): (u64, u64), stalls: &[Span]) -> bool {
    let next = stalls.partition_point(|stall| stall.to < from);
    stalls.get(next).is_some_and(|stall| stall.from <= to)
}

#[cfg(test)]
mod tests;
