//! What commands that put rules onto an interface take.

use anyhow::Result;
use clap::ValueEnum;

use crate::about::ensure_about;
use crate::plan::count;

/// Groups are kept by fours, 64 bytes: more would be 4 GiB.
const GROUPS_MAX: u64 = 1 << 28;

/// Where packets meet the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// In the driver, before the kernel spends anything on a packet
    Native,
    /// Behind it, for drivers that cannot: some of the speed is lost
    Generic,
}

/// Groups of addresses that rates remember.
pub fn groups(text: &str) -> Result<u32> {
    number(text, "--groups", GROUPS_MAX)
}

/// A number from 1 to `most`, which is below 2^32.
pub fn number(text: &str, flag: &'static str, most: u64) -> Result<u32> {
    let number = count(text, flag)?;
    ensure_about!(
        flag,
        (1..=most).contains(&number),
        "{flag} {text} is not between 1 and {most}"
    );
    Ok(number as u32)
}
