//! Where the bytes come from: a file, and what is compressed with gzip or Zstandard.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

type Source = Box<dyn Read + Send>;

/// The first bytes of gzip (RFC 1952 section 2.3.1) and of Zstandard (RFC 8878 section 3.1.1).
const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTANDARD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// Of a frame that Zstandard passes over (section 3.1.2), of 16 kinds: pzstd begins with one.
const SKIPPABLE: &[u8] = &[0x2A, 0x4D, 0x18];

/// Opens a file.
pub fn open(path: &Path) -> io::Result<Source> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(Box::new(file))
}

/// What is in `source`, if need be decompressed, and whether it was: its first bytes tell, not its name.
pub fn decompressed(mut source: Source) -> io::Result<(Source, bool)> {
    let mut head = Vec::with_capacity(ZSTANDARD.len());
    source
        .by_ref()
        .take(ZSTANDARD.len() as u64)
        .read_to_end(&mut head)?;
    let is_gzip = head.starts_with(GZIP);
    let is_skippable = matches!(head.split_first(), Some((0x50..=0x5F, rest)) if rest == SKIPPABLE);
    let is_zstandard = is_skippable || head.starts_with(ZSTANDARD);
    let whole = Cursor::new(head).chain(source);
    let plain: Source = if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::new(whole)))
    } else if is_zstandard {
        Box::new(zstd::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    };
    Ok((plain, is_gzip || is_zstandard))
}
