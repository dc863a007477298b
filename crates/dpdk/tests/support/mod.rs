//! EAL as these tests want it.
#![allow(clippy::expect_used, reason = "a test ends where it cannot begin")]

use dpdk::Eal;

/// On a little memory of ordinary pages, with no devices, known by the name of its test: one a process.
pub fn eal(name: &str) -> Eal {
    let prefix = format!("dl-{name}");
    let arguments = [
        "--no-huge",
        "--no-pci",
        "--no-shconf",
        "-m",
        "64",
        "--file-prefix",
        &prefix,
    ];
    Eal::init(&arguments.map(str::to_owned)).expect("EAL")
}
