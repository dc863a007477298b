//! What the kernel says of the processor (`/proc/cpuinfo`), and the unit of its times.

use std::collections::BTreeMap;

use crate::Sys;

/// Ticks a second in which the kernel tells times in `/proc` (`USER_HZ`, `proc_stat(5)`), on every architecture that this runs on.
pub const USER_HZ: u64 = 100;

/// The fields of the first CPU.
pub fn fields(sys: &Sys) -> BTreeMap<String, String> {
    let text = sys.text("/proc/cpuinfo").unwrap_or_default();
    let first = text.lines().take_while(|line| !line.is_empty());
    let pairs = first.filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// The first CPU's flags; `None` where nobody tells.
pub fn flags(sys: &Sys) -> Option<String> {
    fields(sys).remove("flags")
}

/// Whether the first CPU has this flag.
pub fn has_flag(sys: &Sys, flag: &str) -> bool {
    flags(sys).is_some_and(|flags| flags.split_whitespace().any(|word| word == flag))
}

/// Whether Intel made it.
pub fn is_intel(sys: &Sys) -> bool {
    fields(sys)
        .get("vendor_id")
        .is_some_and(|vendor| vendor == "GenuineIntel")
}
