//! The end of EAL.

mod support;

use std::fs;

/// Its interrupt thread outlives it, and reads handles there.
#[test]
fn the_memory_of_eal_stays_until_the_process_ends() {
    // What is mapped from where EAL puts its memory on, up to where the program's own mappings lie.
    let mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let start = |range: &str| u64::from_str_radix(range.split_once('-').unwrap().0, 16).unwrap();
        let ranges = maps.lines().map(|line| line.split_once(' ').unwrap().0);
        let of_eal = ranges.filter(|range| (0x1_0000_0000..0x1000_0000_0000).contains(&start(range)));
        of_eal.map(str::to_owned).collect::<Vec<_>>()
    };
    let eal = support::eal("end");
    let before = mapped();
    assert_ne!(before.len(), 0);
    drop(eal);
    assert_eq!(mapped(), before);
}
