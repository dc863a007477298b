//! Rules out of files.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use rules::RuleSet;

/// Groups of addresses that rates remember in user space, of which an entry takes 16 bytes.
pub const GROUPS: usize = 1 << 20;

/// Reads a rule file and those that it includes. What is wrong is told line by line, each with its place.
pub fn read(path: &Path) -> Result<RuleSet> {
    let name = path
        .to_str()
        .ok_or_else(|| anyhow!("{}: a name in UTF-8 is wanted", path.display()))?;
    rules::parse(name, &text).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!(lines.join("\n"))
    })
}

fn text(name: &str) -> Result<String, String> {
    fs::read_to_string(name).map_err(|error| format!("cannot read {name}: {error}"))
}
