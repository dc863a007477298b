//! What can be wrong with a port URI, each in one line that says what to write instead.

/// Every kind with the form of its target, for the error that lists them.
pub const KINDS: [(&str, &str); 14] = [
    ("ring", "ring"),
    ("null", "null"),
    ("pci", "pci:0000:3b:00.0"),
    ("vmbus", "vmbus:UUID"),
    ("mac", "mac:aa:bb:cc:dd:ee:ff"),
    ("xdp", "xdp:IF"),
    ("packet", "packet:IF"),
    ("tap", "tap:NAME"),
    ("memif", "memif:PATH[,server]"),
    ("vhost", "vhost:PATH[,client]"),
    ("virtio-user", "virtio-user:PATH[,server]"),
    ("pcap", "pcap:IN[,OUT]"),
    ("kernel", "kernel:ADDR[:PORT]"),
    ("vdev", "vdev:ARGS"),
];

/// A port URI that cannot be read. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// Nothing at all.
    #[error("a port is named kind:target, but the name is empty; kinds: {}", kinds())]
    Empty,
    /// Line breaks and the like, which no name has; shown escaped.
    #[error("port '{0}': a control character is in its name; write it without")]
    Control(String),
    /// The word before the colon is no kind.
    #[error("port '{uri}': no kind of port is called '{kind}'{}; kinds: {}", hint(suggestion.as_ref()), kinds())]
    UnknownKind {
        /// What the user wrote.
        uri: String,
        /// The word before the colon.
        kind: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// The kind needs a target and got none.
    #[error("port '{uri}': {kind} needs {wanted} after the colon; write {form}")]
    NoTarget {
        /// What the user wrote.
        uri: String,
        /// The kind.
        kind: &'static str,
        /// What the target is.
        wanted: &'static str,
        /// The form of such a URI.
        form: &'static str,
    },
    /// The target is not of the kind's form.
    #[error("port '{uri}': '{target}' is not {wanted}")]
    BadTarget {
        /// What the user wrote.
        uri: String,
        /// The part that is wrong.
        target: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// The kind has no such option.
    #[error("port '{uri}': {kind} has no option '{option}'{}; options: {}", hint(suggestion.as_ref()), options.join(", "))]
    UnknownOption {
        /// What the user wrote.
        uri: String,
        /// The kind.
        kind: &'static str,
        /// The option it does not have.
        option: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// What it has.
        options: &'static [&'static str],
    },
    /// An option's value cannot be read or is out of range.
    #[error("port '{uri}': option {option} takes {wanted}, not '{value}'")]
    BadValue {
        /// What the user wrote.
        uri: String,
        /// The option.
        option: &'static str,
        /// Its value; empty when it was missing.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// An option was given twice.
    #[error("port '{uri}': option {option} is given twice; give it once")]
    Twice {
        /// What the user wrote.
        uri: String,
        /// The option.
        option: String,
    },
    /// Two options exclude each other.
    #[error("port '{uri}': {why}")]
    Contradiction {
        /// What the user wrote.
        uri: String,
        /// Which, and which one to drop.
        why: &'static str,
    },
}

fn kinds() -> String {
    KINDS.map(|(_, form)| form).join(", ")
}

fn hint(suggestion: Option<&String>) -> String {
    suggestion
        .map(|s| format!(", did you mean {s}?"))
        .unwrap_or_default()
}
