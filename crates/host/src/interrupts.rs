//! `/proc/interrupts`: what every core has been interrupted by, to prove that the trace saw all of it.

use std::collections::BTreeMap;

use crate::Sys;
use crate::core_set::Core;

/// The counts of every line, by core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    lines: BTreeMap<String, Line>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Line {
    counts: BTreeMap<Core, u64>,
    name: String,
}

/// What one line grew by on one core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The line: a number, or `LOC`, `RES`, `CAL` and so on.
    pub line: String,
    /// What the kernel writes at its end.
    pub name: String,
    /// Interrupts.
    pub count: u64,
}

impl Interrupts {
    /// Reads the file; empty where there is none.
    pub fn read(sys: &Sys) -> Self {
        Self::parse(&sys.text("/proc/interrupts").unwrap_or_default())
    }

    /// Reads its text.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let cores: Vec<Core> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("CPU")?.parse().ok().map(Core))
            .collect();
        let lines = lines
            .filter_map(|line| {
                let (key, rest) = line.split_once(':')?;
                let words = rest.split_whitespace();
                let counts: Vec<u64> = words
                    .clone()
                    .take(cores.len())
                    .map_while(|word| word.parse().ok())
                    .collect();
                let line = Line {
                    name: words.skip(counts.len()).collect::<Vec<_>>().join(" "),
                    counts: cores.iter().copied().zip(counts).collect(),
                };
                Some((key.trim().to_owned(), line))
            })
            .collect();
        Self { lines }
    }

    /// Whether there was nothing to read.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether line `key` was ever raised, on any core.
    pub fn is_used(&self, key: &str) -> bool {
        let line = self.lines.get(key);
        line.is_some_and(|line| line.counts.values().any(|count| *count > 0))
    }

    /// What the kernel writes at the end of line `key`.
    pub fn name(&self, key: &str) -> Option<&str> {
        self.lines.get(key).map(|line| line.name.as_str())
    }

    /// What `core` got since `before`, line by line; lines that did not move are left out.
    pub fn since(&self, before: &Self, core: Core) -> Vec<Delta> {
        let count = |interrupts: &Self, key: &str| {
            let line = interrupts.lines.get(key)?;
            line.counts.get(&core).copied()
        };
        self.lines
            .iter()
            .filter_map(|(key, line)| {
                let now = count(self, key)?;
                let count = now.saturating_sub(count(before, key).unwrap_or(0));
                (count > 0).then(|| Delta {
                    line: key.clone(),
                    name: line.name.clone(),
                    count,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU2
 38:          0      58814 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
LOC:    6194181    6096155   Local timer interrupts
ERR:          0
";

    #[test]
    fn only_what_moved_on_the_core_is_told() {
        let before = Interrupts::parse(BEFORE);
        let after = BEFORE.replace("58814", "58820").replace("6194181", "6194190");
        let after = Interrupts::parse(&after.replace("ERR:          0", "ERR:          3"));
        let moved = after.since(&before, Core(2));
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].line.as_str(), moved[0].count), ("38", 6));
        assert!(moved[0].name.ends_with("virtio2-input.0"));
        assert_eq!(after.since(&before, Core(0)).len(), 2);
        assert_eq!(after.since(&before, Core(1)), []);
    }
}
