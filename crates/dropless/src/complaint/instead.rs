//! Flags that fingers know from tcpdump(8) and from other subcommands, and what they are called here.

/// The subcommand, the flag it has not, and what does the same.
const FLAGS: [(&str, &str, &str); 24] = [
    ("capture", "-A", "payloads are shown by tcpdump -A -r FILE"),
    ("capture", "-B", "say --ring-size BYTES"),
    ("capture", "-C", "say --file-size BYTES"),
    ("capture", "-D", "dropless ports lists what can be captured from"),
    ("capture", "-F", "say --filter \"$(cat FILE)\""),
    ("capture", "-G", "say --file-time TIME"),
    (
        "capture",
        "-i",
        "say --port packet:INTERFACE, or --port xdp:INTERFACE, which is faster",
    ),
    ("capture", "-n", "leave it out: names are never looked up"),
    ("capture", "-P", "with --attach say --direction in, out or both"),
    ("capture", "-Q", "with --attach say --direction in, out or both"),
    ("capture", "-r", "say dropless read FILE"),
    (
        "capture",
        "-U",
        "leave it out: what came is in the file within half a second",
    ),
    (
        "capture",
        "-v",
        "dropless capture --ring NAME, and dropless read NAME in another terminal, show packets",
    ),
    ("capture", "-W", "say --files N"),
    ("capture", "-X", "payloads are shown by tcpdump -X -r FILE"),
    ("capture", "-z", "say --compress"),
    (
        "read",
        "-i",
        "dropless capture --ring NAME captures, and dropless read NAME shows what comes",
    ),
    ("read", "-n", "leave it out: names are never looked up"),
    ("read", "-r", "leave it out: dropless read FILE"),
    ("read", "-t", "say --time clock, date or epoch"),
    (
        "read",
        "-v",
        "payloads and more of the headers are shown by tcpdump -v -r FILE",
    ),
    (
        "read",
        "-w",
        "tcpdump -r FILE -w FILE writes what is chosen of a file",
    ),
    (
        "search",
        "--duration",
        "say how long a trial lasts, with --final-duration or --trial-duration",
    ),
    (
        "search",
        "--rate",
        "it is what is searched for; --min-rate and --max-rate bound it",
    ),
];

/// What does here what `flag` does there: a long one, or a short one with what may stand right behind it, as in `-ieth0`.
pub fn of(subcommand: &str, flag: &str) -> Option<&'static str> {
    let is_it = |theirs: &str| flag == theirs || (!flag.starts_with("--") && flag.starts_with(theirs));
    let found = FLAGS
        .iter()
        .find(|(of, theirs, _)| *of == subcommand && is_it(theirs));
    found.map(|(.., ours)| *ours)
}
