//! The kernel's functions by their addresses.

use host::Sys;

/// The kernel's functions by their addresses.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads `/proc/kallsyms`; empty where addresses are hidden.
    pub fn read(sys: &Sys) -> Self {
        let text = sys.text("/proc/kallsyms").unwrap_or_default();
        let mut all: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let name = words.nth(1)?;
                (address != 0).then(|| (address, name.to_owned()))
            })
            .collect();
        all.sort_unstable();
        Self(all)
    }

    /// Where this function begins.
    pub fn address(&self, function: &str) -> Option<u64> {
        let named = self.0.iter().find(|(_, name)| name == function);
        named.map(|(address, _)| *address)
    }

    /// The function that `address` lies in.
    pub fn name(&self, address: u64) -> String {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        match after.checked_sub(1).and_then(|index| self.0.get(index)) {
            Some((_, name)) => name.clone(),
            None => format!("{address:#x}"),
        }
    }
}
