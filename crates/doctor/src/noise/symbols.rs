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

    /// Whether the kernel hides them.
    pub fn are_hidden(&self) -> bool {
        self.0.is_empty()
    }

    /// The function that `address` lies in, where that is known.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.0.get(after.checked_sub(1)?)?;
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Machine;

    #[test]
    fn addresses_that_are_all_zero_are_hidden() {
        let text = "0000000000001000 T first\n0000000000002000 t second\n";
        let machine = Machine::with(&[("/proc/kallsyms", text)]);
        let symbols = Symbols::read(&machine.sys);
        assert!(!symbols.are_hidden());
        let names = [0xfff, 0x1000, 0x1fff, 0x2001].map(|address| symbols.name(address));
        assert_eq!(names, [None, Some("first"), Some("first"), Some("second")]);
        machine.write("/proc/kallsyms", &text.replace(['1', '2'], "0"));
        assert!(Symbols::read(&machine.sys).are_hidden());
    }
}
