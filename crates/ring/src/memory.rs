//! Shared memory: the only place with `unsafe`.

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::protocol::Words;

/// A file mapped whole, shared with other processes.
#[derive(Debug)]
pub struct Memory {
    at: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: the mapping belongs to this value alone in this process, and is reached through atomics, or through slices whose
// exclusiveness the ring's protocol upholds.
unsafe impl Send for Memory {}
// SAFETY: see above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the `len` bytes of `file`; to be written, too, if `writable`: then all of it is there at once, and whoever writes
    /// does not wait for the kernel to find room for a page. (Whoever only reads takes no memory for what another claims.)
    pub fn map(file: impl AsFd, len: usize, writable: bool) -> nix::Result<Self> {
        let size = NonZeroUsize::new(len).ok_or(nix::Error::EINVAL)?;
        let (write, at_once) = if writable {
            (ProtFlags::PROT_WRITE, MapFlags::MAP_POPULATE)
        } else {
            (ProtFlags::empty(), MapFlags::empty())
        };
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours.
        let at = unsafe {
            mmap(
                None,
                size,
                ProtFlags::PROT_READ | write,
                MapFlags::MAP_SHARED | at_once,
                file,
                0,
            )?
        };
        Ok(Self {
            at: at.cast(),
            len,
            writable,
        })
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number at `at`, a multiple of 8.
    #[inline]
    pub fn number(&self, at: usize) -> &AtomicU64 {
        assert!(at % 8 == 0 && at.checked_add(8).is_some_and(|end| end <= self.len));
        // SAFETY: eight aligned bytes of the mapping, which lives as long as `self`. Who may only read them does not store:
        // the fields that this process writes are in pages that it mapped to be written.
        unsafe { self.at.add(at).cast::<AtomicU64>().as_ref() }
    }

    /// Stores a small number at `at`, a multiple of 4, before anybody else knows the memory.
    pub fn put(&self, at: usize, value: u32) {
        assert!(self.writable && at % 4 == 0 && at + 4 <= self.len);
        // SAFETY: four aligned bytes of a mapping that may be written.
        let number = unsafe { self.at.add(at).cast::<AtomicU32>().as_ref() };
        number.store(value, Ordering::Relaxed);
    }

    /// The bytes from `at` on, to be read.
    ///
    /// # Safety
    /// Nobody writes them as long as the slice lives: they are committed, and their segment is not begun anew.
    #[inline]
    pub unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: inside of the mapping; that nobody writes them the caller upholds.
        unsafe { std::slice::from_raw_parts(self.at.add(at).as_ptr(), len) }
    }

    /// The bytes from `at` on, to be written.
    ///
    /// # Safety
    /// Nobody else reads or writes them as long as the slice lives: they are not committed.
    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "exclusive by the ring's protocol, not by the borrow"
    )]
    pub unsafe fn room(&self, at: usize, len: usize) -> &mut [u8] {
        assert!(self.writable && at.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: inside of a mapping that may be written; exclusiveness the caller upholds.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(at).as_ptr(), len) }
    }

    /// Copies bytes that somebody may be writing meanwhile: what was copied is worth nothing until it is known that nobody
    /// was. `at` is a multiple of 8.
    pub fn copy(&self, at: usize, into: &mut [u8]) {
        for (index, chunk) in into.chunks_mut(8).enumerate() {
            let word = self.number(at + index * 8).load(Ordering::Relaxed).to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

impl Words for Memory {
    #[inline]
    fn load(&self, at: usize, order: Ordering) -> u64 {
        self.number(at).load(order)
    }

    #[inline]
    fn store(&self, at: usize, value: u64, order: Ordering) {
        self.number(at).store(value, order);
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        std::sync::atomic::fence(order);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made in `map`; nothing borrowed from it can outlive `self`.
        let _ = unsafe { munmap(self.at.cast(), self.len) };
    }
}

/// Why there is none, and what to do.
pub(crate) fn words(error: nix::Error) -> String {
    match error {
        nix::Error::EFBIG => {
            "it would be longer than `ulimit -f` lets a file be; raise that, or use a smaller ring".into()
        }
        nix::Error::EMFILE => "this process may open no more files; raise `ulimit -n`".into(),
        _ => error.to_string(),
    }
}

/// Anonymous shared memory of this size, which never changes it again.
pub fn shared(name: &str, len: usize) -> nix::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};

    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    nix::unistd::ftruncate(&file, i64::try_from(len).map_err(|_| nix::Error::EFBIG)?)?;
    fcntl(
        &file,
        FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW),
    )?;
    Ok(file)
}

/// Forbids everybody who has not mapped it to be written yet to do so.
pub fn seal_writing(file: impl AsFd) -> nix::Result<()> {
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    // F_SEAL_FUTURE_WRITE (Linux 5.1).
    let future_write = SealFlag::from_bits_retain(0x10);
    fcntl(file, FcntlArg::F_ADD_SEALS(future_write | SealFlag::F_SEAL_SEAL)).map(drop)
}

/// Whether a file can become no shorter: whoever has it mapped would die of that.
pub fn is_sealed(file: impl AsFd) -> bool {
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    let seals = fcntl(file, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_truncate);
    seals.is_ok_and(|seals| seals.contains(SealFlag::F_SEAL_SHRINK))
}
