//! Huge pages on the kernel's command line. They are asked for by their size, and the default size is left as it is: `hugepages=`
//! without a size, `vm.nr_hugepages`, hugetlbfs and whoever maps them count in it.

use std::collections::BTreeMap;

use super::argument::Argument;
use host::{Sys, cores, cpu};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A GiB for each NUMA node, in the largest pages that this processor has. Where the command line reserves pages of that size,
/// it stays as it is: the kernel takes the first word for each size.
pub fn arguments(sys: &Sys, line: &str) -> [Argument; 2] {
    let nodes = cores::numa_nodes(sys).len().max(1);
    let (size, bytes, pages, why) = if cpu::has_flag(sys, "pdpe1gb") {
        let why = "huge pages of 1 GiB (fewer misses of the TLB), besides those of the default size";
        ("1G", GIB, nodes, why)
    } else {
        (
            "2M",
            2 * MIB,
            512 * nodes,
            "huge pages of 2 MiB, whatever the default size is",
        )
    };
    let theirs = reserved(line).remove(&bytes);
    let is_there = theirs.is_some();
    let argument = |text: String, why: &str| Argument {
        now: is_there.then(|| text.clone()),
        text,
        why: why.into(),
        replaces: false,
    };
    let reserved = "reserved while memory is not fragmented: 1 GiB on each NUMA node";
    [
        argument(format!("hugepagesz={size}"), why),
        match theirs {
            Some(theirs) => argument(
                format!("hugepages={theirs}"),
                "so many are reserved already, and stay: to have others, change that word",
            ),
            None => argument(format!("hugepages={pages}"), reserved),
        },
    ]
}

/// How many pages a command line reserves, as it says it, by their size in bytes.
fn reserved(line: &str) -> BTreeMap<u64, String> {
    let words = || line.split_whitespace().filter_map(|word| word.split_once('='));
    let default = words().find(|(name, _)| *name == "default_hugepagesz");
    let mut size = default.and_then(|(_, size)| bytes(size)).or(Some(2 * MIB));
    let mut reserved = BTreeMap::new();
    for (name, value) in words() {
        match name {
            "hugepagesz" | "default_hugepagesz" => size = bytes(value),
            "hugepages" => {
                if let Some(size) = size {
                    reserved.entry(size).or_insert_with(|| value.to_owned());
                }
            }
            _ => {}
        }
    }
    reserved
}

/// `2M`, `1G`, `2048k`, or bytes.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match size[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => MIB,
        "G" => GIB,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_as_the_kernel_counts_them() {
        let reserved = |line: &str| {
            let found = reserved(line).into_iter();
            found
                .map(|(size, pages)| format!("{}M:{pages}", size / MIB))
                .collect::<Vec<_>>()
        };
        assert_eq!(reserved("quiet hugepages=512"), ["2M:512"]);
        assert_eq!(reserved("hugepages=4 default_hugepagesz=1G"), ["1024M:4"]);
        assert_eq!(
            reserved("hugepagesz=1G hugepages=0:1,1:1 hugepagesz=2048k hugepages=8 hugepages=9"),
            ["2M:8", "1024M:0:1,1:1"]
        );
        assert_eq!(reserved("hugepagesz=big hugepages=3").len(), 0);
    }
}
