//! Whose the timers of performance counters are: of those who have such counters open.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::event::Event;
use super::symbols::Symbols;
use host::Sys;

/// What the timers of perf call (kernel: `kernel/events/core.c`).
const TIMERS: [&str; 2] = ["perf_swevent_hrtimer", "perf_mux_hrtimer_handler"];
/// What a descriptor of an open counter points to.
const COUNTER: &str = "anon_inode:[perf_event]";
/// Between two searches, which read the descriptors of every process.
const SEARCH: Duration = Duration::from_secs(1);
/// More owners are only counted.
const NAMED_MAX: usize = 3;

/// Who has performance counters open, searched for once their timers are seen.
#[derive(Debug, Default)]
pub struct Profilers {
    addresses: Vec<u64>,
    owners: BTreeSet<String>,
    is_wanted: bool,
    searched: Option<Instant>,
}

impl Profilers {
    /// Those that have counters open now are known already.
    pub fn new(sys: &Sys, symbols: &Symbols) -> Self {
        let mut new = Self {
            addresses: TIMERS.iter().filter_map(|name| symbols.address(name)).collect(),
            is_wanted: true,
            ..Self::default()
        };
        new.look(sys);
        new
    }

    /// Notices a timer of theirs.
    pub fn see(&mut self, event: &Event) {
        self.is_wanted |= matches!(event, Event::Timer(address) if self.addresses.contains(address));
    }

    /// Searches, if there is a reason to, and the last time is long ago.
    pub fn look(&mut self, sys: &Sys) {
        if self.is_wanted && self.searched.is_none_or(|last| last.elapsed() >= SEARCH) {
            self.owners.extend(owners(sys));
            self.is_wanted = false;
            self.searched = Some(Instant::now());
        }
    }

    /// The name of the function at `address`, with those for whom it is called.
    pub fn owned(&self, address: u64, function: String) -> String {
        if self.owners.is_empty() || !self.addresses.contains(&address) {
            return function;
        }
        let named: Vec<&str> = self.owners.iter().take(NAMED_MAX).map(String::as_str).collect();
        match self.owners.len().saturating_sub(NAMED_MAX) {
            0 => format!("{function} for {}", named.join(" or ")),
            more => format!("{function} for {} or {more} others", named.join(", ")),
        }
    }
}

/// The processes that have a performance counter open: `perf (77)`.
fn owners(sys: &Sys) -> Vec<String> {
    let has_one = |id: &String| {
        let folder = format!("/proc/{id}/fd");
        let mut descriptors = sys.names(&folder).into_iter();
        descriptors.any(|number| sys.link_name(format!("{folder}/{number}")).as_deref() == Some(COUNTER))
    };
    let name = |id: String| {
        let name = sys.text(format!("/proc/{id}/comm"))?;
        Some(format!("{name} ({id})"))
    };
    let processes = sys.processes().into_iter();
    processes.filter(has_one).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn a_timer_of_perf_is_of_who_has_a_counter_open() {
        let machine = Machine::with(&[
            (
                "/proc/kallsyms",
                "10 T perf_swevent_hrtimer\n20 T hrtimer_wakeup\n",
            ),
            ("/proc/77/comm", "sampler\n"),
            ("/proc/78/comm", "bystander\n"),
        ])
        .link("/proc/77/fd/3", COUNTER)
        .link("/proc/78/fd/3", "socket:[5]");
        let symbols = Symbols::read(&machine.sys);
        let profilers = Profilers::new(&machine.sys, &symbols);
        let owned = |address| profilers.owned(address, symbols.name(address).unwrap().to_owned());
        assert_eq!(owned(0x10), "perf_swevent_hrtimer for sampler (77)");
        assert_eq!(owned(0x20), "hrtimer_wakeup");
    }
}
