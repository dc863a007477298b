//! Why a capture file cannot be read, or not further.

use std::io;

use thiserror::Error;

/// What is wrong with a file, by its name, and where, in bytes from its beginning.
#[derive(Debug, Error)]
pub enum InputError {
    /// It cannot be opened.
    #[error("cannot open {0}: {1}")]
    Open(String, io::Error),
    /// The system, or what decompresses it, reports an error.
    #[error("cannot read {0} beyond byte {1}: {2}; the packets before were read")]
    Read(String, u64, io::Error),
    /// It has not a single byte.
    #[error("{0} is empty: not even the head of a pcap or pcapng file is there")]
    Empty(String),
    /// It is of another kind.
    #[error(
        "{0} is no pcap or pcapng file (it begins with {1}); editcap of Wireshark converts what other programs write"
    )]
    Foreign(String, String),
    /// It ends within a record.
    #[error(
        "{0} is cut short: of what begins at byte {1} there are {2} of {3} bytes; the packets before were read"
    )]
    Truncated(String, u64, u64, u64),
    /// It contradicts itself, or what a file may say.
    #[error("{0} is damaged at byte {1}: {2}; the packets before were read")]
    Damaged(String, u64, &'static str),
}

impl InputError {
    pub(super) fn foreign(name: String, bytes: &[u8]) -> Self {
        let begin: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Self::Foreign(name, begin.join(" "))
    }
}
