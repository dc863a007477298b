//! Counters of the program, summed up over all processors.

use std::os::fd::{AsFd as _, AsRawFd as _};

use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, num_possible_cpus};
use rules::{Count, Counts, Malformed};

use crate::Error;
use crate::program::told;

/// `struct count`.
const LEN: usize = 16;
const WHY: &str = "counters cannot be read";

/// Those of a set of so many rules.
pub(crate) fn of_set(map: &MapHandle, rules: usize) -> Result<Counts, Error> {
    let mut all = read(map)?.into_iter();
    let rules = all.by_ref().take(rules).collect();
    let mut next = || all.next().unwrap_or_default();
    Ok(Counts {
        rules,
        default: next(),
        malformed: [(); Malformed::ALL.len()].map(|()| next()),
        full: next(),
    })
}

/// The same of a set that any version put in force, whose reasons are named.
pub(crate) fn of_generation(map: &MapHandle, rules: usize, reasons: &[String]) -> Result<Counts, Error> {
    let all = read(map)?;
    let at = |place: usize| all.get(place).copied().unwrap_or_default();
    let malformed = Malformed::ALL.map(|reason| {
        let place = reasons.iter().position(|name| name == reason.name());
        place.map_or_else(Count::default, |place| at(rules + 1 + place))
    });
    Ok(Counts {
        rules: all.iter().take(rules).copied().collect(),
        default: at(rules),
        malformed,
        full: at(rules + 1 + reasons.len()),
    })
}

/// All there are, in their order.
pub(crate) fn read(map: &MapHandle) -> Result<Vec<Count>, Error> {
    let cpus = num_possible_cpus().map_err(told(WHY))?;
    let entries = map.max_entries() as usize;
    let mut keys = vec![0_u32; entries];
    let mut values = vec![0_u8; entries * cpus * LEN];
    let (mut end, mut read) = (0_u32, entries as u32);
    // SAFETY: the kernel writes `read` keys of 4 bytes and values of `LEN` bytes a possible processor, for which there is
    // room, and where it stopped into `end`; all live through the call.
    let failed = unsafe {
        sys::bpf_map_lookup_batch(
            map.as_fd().as_raw_fd(),
            std::ptr::null_mut(),
            (&raw mut end).cast(),
            keys.as_mut_ptr().cast(),
            values.as_mut_ptr().cast(),
            &raw mut read,
            std::ptr::null(),
        )
    };
    // Behind the last entry the kernel says ENOENT, and has given all there are.
    if failed != 0 && read as usize != entries {
        return one_by_one(map);
    }
    Ok(values.chunks_exact(cpus * LEN).map(sum).collect())
}

/// Kernels before 5.13 have no batches of counters by processor.
fn one_by_one(map: &MapHandle) -> Result<Vec<Count>, Error> {
    let one = |entry: u32| {
        let found = map.lookup_percpu(&entry.to_ne_bytes(), MapFlags::ANY);
        Ok(sum(&found.map_err(told(WHY))?.unwrap_or_default().concat()))
    };
    (0..map.max_entries()).map(one).collect()
}

/// Of a value a processor.
fn sum(values: &[u8]) -> Count {
    let mut sum = Count::default();
    for value in values.chunks_exact(LEN) {
        let word = |at: usize| value[at..].first_chunk().copied().map_or(0, u64::from_ne_bytes);
        sum += Count {
            packets: word(0),
            bytes: word(8),
        };
    }
    sum
}
