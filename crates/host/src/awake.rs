//! Keeps every core out of its deep sleeps for as long as a value lives.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use crate::Sys;

const PATH: &str = "/dev/cpu_dma_latency";

/// While this lives no core sleeps deeper than it wakes from at once. The kernel forgets it when the file is closed,
/// also by a death.
#[derive(Debug)]
pub struct AwakeCores {
    _file: File,
}

/// Asks for it; nothing where that is not for us to ask. It is a help, not a need.
pub fn awake(sys: &Sys) -> Option<AwakeCores> {
    let mut file = OpenOptions::new().write(true).open(sys.path(PATH)).ok()?;
    // Microseconds to wake in, a binary number of four bytes.
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(AwakeCores { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_of_zero_are_asked_for() {
        let tree = tempfile::tempdir().unwrap();
        let sys = Sys::at(tree.path());
        assert!(awake(&sys).is_none());
        std::fs::create_dir(tree.path().join("dev")).unwrap();
        std::fs::write(tree.path().join("dev/cpu_dma_latency"), "").unwrap();
        assert!(awake(&sys).is_some());
        let asked = std::fs::read(tree.path().join("dev/cpu_dma_latency")).unwrap();
        assert_eq!(asked, [0; 4]);
    }
}
