//! Where the bytes come from: a file, and what is compressed with gzip or Zstandard.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

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
        Box::new(Gzip(Some(GzDecoder::new(BufReader::new(whole)))))
    } else if is_zstandard {
        Box::new(zstd::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    };
    Ok((plain, is_gzip || is_zstandard))
}

/// All members of a file, one after the other. (flate2 takes whatever is behind the last one for the head of another, which is
/// then said to end too soon.)
struct Gzip<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match member.get_mut().fill_buf()?.first() {
                None => self.0 = None,
                Some(first) if *first == GZIP[0] => {
                    self.0 = self.0.take().map(|ended| GzDecoder::new(ended.into_inner()));
                }
                Some(_) => {
                    let text =
                        "something is behind the end of the gzip data; `gzip -dc` reads it without that";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
        Ok(0)
    }
}
