//! The end of EAL.

use std::fs;

use dpdk::Eal;

/// What is mapped from where EAL puts its memory on, up to where the program's own mappings lie.
fn mapped() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let ranges = maps.lines().filter_map(|line| line.split_once(' '));
    let start = |range: &str| u64::from_str_radix(range.split('-').next().unwrap(), 16).unwrap();
    ranges
        .filter(|(range, _)| (0x1_0000_0000..0x1000_0000_0000).contains(&start(range)))
        .map(|(range, _)| range.to_owned())
        .collect()
}

/// Its interrupt thread outlives it, and reads handles there.
#[test]
fn the_memory_of_eal_stays_until_the_process_ends() {
    let arguments = [
        "--no-huge",
        "--no-pci",
        "--no-shconf",
        "-m",
        "64",
        "--file-prefix",
        "dl-end",
    ];
    let eal = Eal::init(&arguments.map(str::to_owned)).unwrap();
    let before = mapped();
    assert_ne!(before.len(), 0);
    drop(eal);
    assert_eq!(mapped(), before);
}
