//! Rules out of files.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Result, anyhow};
use report::input;
use report::read::ReadError;
use rules::{Problem, RuleSet};

/// Groups of addresses that rates remember in user space, of which an entry takes 16 bytes.
pub const GROUPS: usize = 1 << 20;

/// Bytes of a rule file, or of a list of addresses, at most: half a million prefixes have some 8 MB.
const TEXT_MAX: u64 = 256 << 20;

/// Reads a rule file and those that it includes: the rules, or all that is wrong.
pub fn check(path: &Path) -> Result<Result<RuleSet, Vec<Problem>>> {
    let name = path
        .to_str()
        .ok_or_else(|| anyhow!("{}: a name in UTF-8 is wanted", path.display()))?;
    Ok(rules::parse(name, &text))
}

/// The same for who needs the rules. What is wrong is told line by line, each with its place.
pub fn read(path: &Path) -> Result<RuleSet> {
    check(path)?.map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!(lines.join("\n"))
    })
}

/// No pipe is waited for, and no device read for ever: a run that reads its rules again must come back from it.
fn text(name: &str) -> Result<String, String> {
    let file = input::open(Path::new(name)).map_err(|error| match error {
        ReadError::Io(_, error) => format!("cannot read {name}: {error}"),
        ReadError::NoFile(_, kind) => format!("{name} is {kind}, and rules are read from files"),
        other => other.to_string(),
    })?;
    let mut bytes = Vec::new();
    let read = file.take(TEXT_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read {name}: {error}"))?;
    if bytes.len() as u64 > TEXT_MAX {
        return Err(format!("{name} has more than {} MiB", TEXT_MAX >> 20));
    }
    // Some editors begin a file with the mark that it is UTF-8.
    if bytes.starts_with("\u{FEFF}".as_bytes()) {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        format!("line {line} of {name} is not text in UTF-8")
    })
}
