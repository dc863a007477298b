//! The files of a capture, one after the other.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use super::file::{CaptureFile, Ended};
use super::pack::{self, Packer};
use super::policy::{Policy, Written};
use super::sync::{Closed, Failed, Syncer};

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
    /// None once no file comes any more.
    syncer: Option<Syncer>,
}

impl Files {
    /// Begins the first file; each begins with `preamble`.
    pub fn begin(preamble: Vec<u8>, policy: Policy, written: &mut Written) -> io::Result<Self> {
        let mut files = Self {
            file: None,
            packer: policy.compress.then(Packer::start).transpose()?,
            syncer: Some(Syncer::start()?),
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
        let last = self.file.is_some().then(&self.policy.end);
        let ended = last.and_then(|last| self.close(&last, written));
        let begun = self.begin_another(written);
        // After what is removed, which makes room for it, and may be the same file.
        self.pack(ended);
        let (file, path) = begun?;
        written.cached += u64::from(!file.is_direct());
        written.files += 1;
        self.file = Some(file);
        self.kept.push_back(path);
        Ok(())
    }

    fn begin_another(&mut self, written: &Written) -> io::Result<(CaptureFile, PathBuf)> {
        let most = self.policy.files.map_or(usize::MAX, |most| most.max(1) - 1);
        let path = (self.policy.name)(written.files + 1);
        let given = (self.policy.owner, self.policy.size);
        let mut begun = CaptureFile::create(&path, &self.preamble, given);
        // No file goes for another that cannot be begun, unless it is the files that fill the disk.
        if begun.as_ref().err().is_some_and(lacks_room) && self.kept.len() > most {
            self.keep(most);
            begun = CaptureFile::create(&path, &self.preamble, given);
        }
        let file = begun?;
        self.keep(most);
        Ok((file, path))
    }

    /// Removes the oldest of more files than so many; what cannot be removed is asked again the next time.
    fn keep(&mut self, most: usize) {
        let more = self.kept.len().saturating_sub(most);
        let mut newest = self.kept.split_off(more);
        let packer = self.packer.as_ref();
        let is_removed = |path: &PathBuf| match packer {
            Some(packer) => packer.is_removed(path),
            None => pack::is_removed(path),
        };
        self.kept.retain(|oldest| !is_removed(oldest));
        self.kept.append(&mut newest);
    }

    /// Ends the file under way with `last`.
    pub fn end(&mut self, last: &[u8], written: &mut Written) {
        let ended = self.close(last, written);
        self.pack(ended);
    }

    /// The same; returns it where it is whole.
    fn close(&mut self, last: &[u8], written: &mut Written) -> Option<PathBuf> {
        let file = self.file.take()?;
        let is_direct = file.is_direct();
        let ended = file.end(last);
        let path = self.kept.back()?.clone();
        let Ended {
            file,
            len: bytes,
            missing,
            result,
        } = ended;
        written.bytes += bytes;
        if missing > 0 {
            written.lacks(&path, missing);
        }
        let closed = Closed {
            path: path.clone(),
            file,
            bytes,
        };
        let syncer = self.syncer.as_ref();
        if let Some(failed) = syncer.and_then(|syncer| syncer.sync(closed, is_direct)) {
            doubt(failed, written);
        }
        match result {
            Ok(()) => Some(path),
            Err(error) => {
                written.error = Some(error.to_string());
                written.errors += 1;
                None
            }
        }
    }

    /// Tells what the disk refused of files that were closed.
    pub fn look(&self, written: &mut Written) {
        let failed = self.syncer.iter().flat_map(Syncer::failed);
        failed.for_each(|failed| doubt(failed, written));
    }

    /// Has a file that ended compressed, if it is kept.
    fn pack(&self, ended: Option<PathBuf>) {
        if let (Some(packer), Some(path)) = (&self.packer, ended.filter(|path| self.kept.contains(path))) {
            packer.pack(&path);
        }
    }

    /// No file comes any more: `written` is told what there is, and what was compressed, where that was asked for.
    pub fn finish(&mut self, written: &mut Written) {
        for failed in self.syncer.take().map_or_else(Vec::new, Syncer::finish) {
            doubt(failed, written);
        }
        written.packed = self.packer.take().map(Packer::finish);
        let was_packed = |path: &PathBuf| written.packed.is_some() && !path.exists();
        let named = |path: &PathBuf| {
            if was_packed(path) {
                pack::packed(path)
            } else {
                path.clone()
            }
        };
        // What another capture left under such a name is none of this one.
        let kept = self.kept.iter().map(named).collect();
        written.kept = kept;
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

/// What is in the cache of the kernel could not be written: nobody says how much of it, so that all may be missing.
fn doubt(Failed { path, bytes, error }: Failed, written: &mut Written) {
    let text = format!("{} may not be on the disk: {error}", path.display());
    written.error = Some(text);
    written.errors += 1;
    written.lacks(&path, bytes);
}

fn lacks_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
