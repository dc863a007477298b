//! `pcap:`: a file to receive from, a file to send to.

use super::look::{Look, Prepared, may, parent};
use crate::problem::quoted;
use crate::{Fix, PortUri, Problem, Sys, Warning};
use nix::unistd::AccessFlags;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PCAPNG: u32 = 0x0a0d_0d0a;
const PCAP_MICROSECONDS: u32 = 0xa1b2_c3d4;
const PCAP_NANOSECONDS: u32 = 0xa1b2_3c4d;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const LINKTYPE_ETHERNET: u32 = 1;
/// Length of the file header; a file without packets is no longer.
const HEADER_LEN: usize = 24;

/// Checks both files.
pub fn check(look: &Look<'_>, input: Option<&Path>, output: Option<&Path>) -> Result<Prepared, Problem> {
    look.own_driver()?;
    let mut notes = Vec::new();
    if let Some(input) = input {
        notes.extend(check_input(look, input)?);
    }
    check_shared(std::slice::from_ref(look.uri), look.sys)?;
    if let Some(output) = output {
        notes.extend(check_output(look, output)?);
    }
    Ok(Prepared::of(look.uri).with_notes(notes))
}

/// Fails where a file that one port writes is also read, or written by another, under whatever names: it is emptied first.
pub fn check_shared(uris: &[PortUri], sys: &Sys) -> Result<(), Problem> {
    for (uri, output) in uris.iter().filter_map(|uri| Some((uri, uri.kind.files().1?))) {
        let look = Look::new(uri, sys);
        let is_it =
            |file: Option<&Path>| file.is_some_and(|file| is_same_file(&look.path(file), &look.path(output)));
        for other in uris {
            let (read, written) = other.kind.files();
            let why = if is_it(read) {
                format!("{} cannot be read and written at the same time", output.display())
            } else if !std::ptr::eq(other, uri) && is_it(written) {
                format!("{} is written by {other}, too", output.display())
            } else {
                continue;
            };
            return Err(look.problem(why, Fix::advice("write to another file")));
        }
    }
    Ok(())
}

/// Whether both names are of one regular file, or would be once it is made.
pub fn is_same_file(first: &Path, second: &Path) -> bool {
    match (fs::metadata(first), fs::metadata(second)) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => {
            let place = |path| fs::canonicalize(parent(path)).ok();
            first.file_name() == second.file_name()
                && place(first).is_some_and(|of| place(second) == Some(of))
        }
        _ => false,
    }
}

fn check_input(look: &Look<'_>, path: &Path) -> Result<Option<Warning>, Problem> {
    let (shown, file) = (path.display(), quoted(path.display()));
    let real = look.path(path);
    if real.is_dir() {
        let fix = Fix::advice("name a pcap file in it");
        return Err(look.problem(format!("{shown} is a directory"), fix));
    }
    let mut header = Vec::new();
    let outcome =
        File::open(&real).and_then(|file| Read::take(file, HEADER_LEN as u64 + 1).read_to_end(&mut header));
    if let Err(error) = outcome {
        let fix = match error.kind() {
            std::io::ErrorKind::NotFound => Fix::advice(format!("record one: tcpdump -i IF -w {file}")),
            _ => super::look::as_root(),
        };
        return Err(look.problem(format!("{shown} cannot be read ({error})"), fix));
    }
    if header.starts_with(&GZIP) {
        let plain = quoted(format!("{shown}.pcap"));
        let fix = Fix::one(format!("gunzip --keep --stdout {file} > {plain}"));
        return Err(look.problem(format!("{shown} is compressed"), fix));
    }
    let Some(link_type) = link_type(&header) else {
        let advice = format!("name a pcap or pcapng file; this shows what it is: file {file}");
        return Err(look.problem(format!("{shown} is not a pcap file"), Fix::advice(advice)));
    };
    if link_type != LINKTYPE_ETHERNET {
        let advice = format!("record on an Ethernet interface: tcpdump -i IF -w {file}");
        let found = format!("{shown} holds no Ethernet frames (link type {link_type})");
        return Err(look.problem(found, Fix::advice(advice)));
    }
    let empty = header.len() == HEADER_LEN;
    Ok(empty.then(|| Warning::new("pcap-empty", format!("{shown} holds no packets"))))
}

/// The link type of a capture file, `None` if it is none. A pcapng file may mix them: taken as Ethernet.
fn link_type(header: &[u8]) -> Option<u32> {
    let word = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let magic = word(0)?;
    if magic == PCAPNG {
        return Some(LINKTYPE_ETHERNET);
    }
    // The upper bits of the link type tell whether frames carry their FCS.
    let link_type = word(20)?;
    match (magic, magic.swap_bytes()) {
        (PCAP_MICROSECONDS | PCAP_NANOSECONDS, _) => Some(link_type & 0xffff),
        (_, PCAP_MICROSECONDS | PCAP_NANOSECONDS) => Some(link_type.swap_bytes() & 0xffff),
        _ => None,
    }
}

fn check_output(look: &Look<'_>, path: &Path) -> Result<Option<Warning>, Problem> {
    let shown = path.display();
    let real = look.path(path);
    if real.is_dir() {
        let fix = Fix::advice("name a file in it");
        return Err(look.problem(format!("{shown} is a directory"), fix));
    }
    if !real.exists() {
        return look.writable_parent(path).map(|()| None);
    }
    if !may(&real, AccessFlags::W_OK) {
        let fix = Fix::advice("choose another file");
        return Err(look.problem(format!("{shown} cannot be written"), fix));
    }
    let text = format!("{shown} exists and is overwritten");
    Ok(Some(Warning::new("pcap-overwritten", text)))
}
