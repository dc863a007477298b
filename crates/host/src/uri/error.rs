//! The kinds of port that can be written, and what is said of a URI that is none of them.

use crate::nearest::nearest;

/// A kind of port, as it is written.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The word before the colon.
    pub word: &'static str,
    /// A whole URI of this kind.
    pub form: &'static str,
    /// The options that it has besides `queues`.
    pub options: &'static [&'static str],
}

const fn kind(word: &'static str, form: &'static str, options: &'static [&'static str]) -> Kind {
    Kind { word, form, options }
}

/// Every kind there is.
pub const KINDS: [Kind; 14] = [
    kind("ring", "ring", &["direct", "size"]),
    kind("null", "null", &["size"]),
    kind("pci", "pci:0000:3b:00.0", &[]),
    kind("vmbus", "vmbus:UUID", &[]),
    kind("mac", "mac:aa:bb:cc:dd:ee:ff", &[]),
    kind("xdp", "xdp:IF", &["start", "mode"]),
    kind("packet", "packet:IF", &["qdisc-bypass"]),
    kind("tap", "tap:NAME", &["mac"]),
    kind(
        "memif",
        "memif:PATH[,server]",
        &["server", "id", "zero-copy", "size"],
    ),
    kind("vhost", "vhost:PATH[,client]", &["client"]),
    kind("virtio-user", "virtio-user:PATH[,server]", &["server"]),
    kind("pcap", "pcap:IN[,OUT]", &[]),
    kind("kernel", "kernel:ADDR[:PORT]", &["io"]),
    kind("vdev", "vdev:ARGS", &[]),
];

/// A URI under way.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub uri: &'a str,
    pub kind: Kind,
}

impl Reader<'_> {
    /// What is wrong with it.
    pub fn wrong(&self, wrong: impl Into<String>) -> UriError {
        UriError::wrong(self.uri, wrong)
    }
}

/// A port URI that cannot be read. Prints as one line that says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// Nothing at all.
    #[error("a port is named kind:target, but the name is empty; kinds: {}", kinds())]
    Empty,
    /// Something else than a port.
    #[error("port '{uri}': {wrong}")]
    Wrong {
        /// What the user wrote; control characters are escaped.
        uri: String,
        /// What is wrong with it, and what to write.
        wrong: String,
    },
}

impl UriError {
    /// What is wrong with `uri`.
    pub(super) fn wrong(uri: &str, wrong: impl Into<String>) -> Self {
        Self::Wrong {
            uri: uri.to_owned(),
            wrong: wrong.into(),
        }
    }
}

/// How a URI of each kind begins: `ring`, `pci:`, `xdp:`.
pub fn beginnings() -> impl Iterator<Item = String> {
    KINDS.into_iter().map(|kind| match kind.form.split_once(':') {
        Some((word, _)) => format!("{word}:"),
        None => kind.form.to_owned(),
    })
}

/// The forms of all kinds, for an error that lists them.
pub fn kinds() -> String {
    KINDS.map(|kind| kind.form).join(", ")
}

/// The one of `candidates` that was probably meant, for an error that ends so.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!(", did you mean {near}?"))
}
