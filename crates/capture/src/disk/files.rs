//! The files of a capture, one after the other.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use super::file::CaptureFile;
use super::pack::{self, Packer};
use super::policy::{Policy, Written};

/// The file under way, and those before it that are kept.
pub struct Files {
    /// The one under way; none after the disk refused to begin one.
    pub file: Option<CaptureFile>,
    policy: Policy,
    preamble: Vec<u8>,
    /// Bytes of what a file ends with.
    end_len: u64,
    /// Files that are there, the oldest first.
    kept: VecDeque<PathBuf>,
    packer: Option<Packer>,
}

impl Files {
    /// Begins the first file; each begins with `preamble`.
    pub fn begin(preamble: Vec<u8>, policy: Policy, written: &mut Written) -> io::Result<Self> {
        let mut files = Self {
            file: None,
            packer: policy.compress.then(Packer::start).transpose()?,
            end_len: (policy.end)().len() as u64,
            preamble,
            policy,
            kept: VecDeque::new(),
        };
        files.begin_next(written)?;
        Ok(files)
    }

    /// Ends the file under way, if there is one, and begins the next.
    pub fn begin_next(&mut self, written: &mut Written) -> io::Result<()> {
        if self.file.is_some() {
            let end = (self.policy.end)();
            self.end(&end, written);
        }
        // First, since the disk may have room for the next one only without it.
        if let Some(most) = self.policy.files {
            self.keep(most.max(1) - 1);
        }
        let number = written.files + 1;
        let path = (self.policy.name)(number);
        let file = CaptureFile::create(&path, &self.preamble, (self.policy.owner, self.policy.size))?;
        written.cached += u64::from(!file.is_direct());
        self.file = Some(file);
        written.files = number;
        self.kept.push_back(path);
        Ok(())
    }

    /// Removes the oldest of more files than so many.
    fn keep(&mut self, most: usize) {
        let more = self.kept.len().saturating_sub(most);
        for oldest in self.kept.drain(..more) {
            match &self.packer {
                Some(packer) => packer.remove(oldest),
                None => drop(std::fs::remove_file(oldest)),
            }
        }
    }

    /// Ends the file under way with `last`.
    pub fn end(&mut self, last: &[u8], written: &mut Written) {
        let Some(file) = self.file.take() else { return };
        match file.end(last) {
            Ok((len, missing)) => {
                written.bytes += len;
                let short = self.kept.back().filter(|_| missing > 0);
                written.short.extend(short.map(|path| (path.clone(), missing)));
                if let (Some(path), Some(packer)) = (self.kept.back(), &self.packer) {
                    packer.pack(path);
                }
            }
            Err(error) => {
                written.error = Some(error.to_string());
                written.errors += 1;
            }
        }
    }

    /// No file comes any more: `written` is told what there is, and what was compressed, where that was asked for.
    pub fn finish(&mut self, written: &mut Written) {
        written.packed = self.packer.take().map(Packer::finish);
        let named = |path: &PathBuf| Some(pack::packed(path)).filter(|packed| packed.exists());
        let kept = self.kept.iter();
        written.kept = kept
            .map(|path| named(path).unwrap_or_else(|| path.clone()))
            .collect();
    }

    /// Whether the file under way has been there for as long as one shall be.
    pub fn is_old(&self, now: Instant) -> bool {
        let age = self.file.as_ref().map(|file| now.duration_since(file.begun()));
        age.zip(self.policy.every)
            .is_some_and(|(age, every)| age >= every)
    }

    /// Whether the file under way, to which so many bytes are on their way, has all that it shall have: another segment of so
    /// many bytes would be too much, or its time is over. What it has a part of belongs to it.
    pub fn is_full(&self, (under_way, segment): (u64, u64), now: Instant) -> bool {
        let Some(file) = &self.file else { return false };
        let least = file.least() + segment + self.end_len;
        let len = file.len() + under_way;
        let is_large = self
            .policy
            .size
            .is_some_and(|size| len + segment + self.end_len > size.max(least));
        let has_part = under_way == 0 && file.has_part();
        (is_large || self.is_old(now)) && !has_part && len > file.least()
    }
}
