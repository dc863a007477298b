//! The page of the documentation: each benchmark writes its own part.

use std::path::{Path, PathBuf};

/// Replaces the part of this name in docs/benchmark.md.
pub fn replace(part: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmark.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- end of {part} -->"));
    let place = page.find(&begin).zip(page.find(&end));
    match place {
        Some((from, to)) => {
            let (before, after) = (&page[..from + begin.len()], &page[to..]);
            write(&path, &format!("{before}\n{}\n\n{after}", text.trim()));
        }
        None => eprintln!("bench: {} has no part named {part}", path.display()),
    }
}

/// Writes a file, and says so.
pub fn write(path: &Path, text: &str) {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    match made.and_then(|()| std::fs::write(path, text)) {
        Ok(()) => eprintln!("bench: wrote {}", path.display()),
        Err(error) => eprintln!("bench: {}: {error}", path.display()),
    }
}

/// Cargo's target directory: the binary lies in its profile's directory.
pub fn target() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_dropless"));
    binary
        .ancestors()
        .nth(2)
        .map_or_else(|| PathBuf::from("target"), Path::to_path_buf)
}
