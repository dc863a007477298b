//! Worker threads: pinned to their core, and known to DPDK where it is used, before their work begins.

use std::{
    io,
    sync::mpsc,
    thread::{self, Builder, Scope, ScopedJoinHandle},
};

use dpdk_sys as sys;

use crate::{Eal, WorkerError, error::os_error};

/// Lets the calling thread run on `core` only.
pub fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: `set` is plain bits, all-zero is the empty set; `core` lies within it.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The thread's place among DPDK's lcores, which gives it pool caches; left when dropped, also in a panic.
struct Registered<'e> {
    _eal: &'e Eal,
}

impl<'e> Registered<'e> {
    fn new(eal: &'e Eal) -> io::Result<Self> {
        // SAFETY: called from the thread itself, while EAL runs.
        let result = unsafe { sys::dl_thread_register() };
        if result < 0 {
            Err(os_error(result))
        } else {
            Ok(Self { _eal: eal })
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        // SAFETY: the thread was registered by `new`, and a guard is not sent to another thread: it stays in `run`. EAL
        // runs as long as it is borrowed.
        unsafe { sys::dl_thread_unregister() };
    }
}

/// A running worker.
#[derive(Debug)]
pub struct Worker<'scope, T> {
    /// `None` when it could not be made ready, which `spawn_worker` already told.
    thread: ScopedJoinHandle<'scope, Option<T>>,
}

impl<T> Worker<'_, T> {
    /// Waits for the worker's end: what its work returned, or its panic.
    pub fn join(self) -> thread::Result<T> {
        self.thread
            .join()?
            .ok_or_else(|| Box::new("the worker never began") as _)
    }

    /// Whether the worker has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Starts a thread that runs `work` on `core`, and returns when it is ready to begin, or could not be made so. It is known
/// to `eal`, if its work is with DPDK's packets. The thread's name is cut to 15 bytes by Linux.
pub fn spawn_worker<'scope, F, T>(
    scope: &'scope Scope<'scope, '_>,
    eal: Option<&'scope Eal>,
    core: usize,
    name: &str,
    work: F,
) -> Result<Worker<'scope, T>, WorkerError>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    let (ready, readiness) = mpsc::sync_channel(1);
    let owned = name.to_owned();
    let body = move || match prepare(eal, &owned, core) {
        Ok(registered) => {
            let _ = ready.send(Ok(()));
            let result = work();
            drop(registered);
            Some(result)
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            None
        }
    };
    let failed = |source| WorkerError::Spawn {
        name: name.to_owned(),
        source,
    };
    let thread = Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, body)
        .map_err(failed)?;
    readiness
        .recv()
        .map_err(|_| failed(io::ErrorKind::BrokenPipe.into()))??;
    Ok(Worker { thread })
}

fn prepare<'e>(eal: Option<&'e Eal>, name: &str, core: usize) -> Result<Option<Registered<'e>>, WorkerError> {
    pin_to_core(core).map_err(|source| WorkerError::Pin {
        name: name.to_owned(),
        core,
        source,
    })?;
    // EAL refuses other processes once a thread is registered, and lends a thread that is not no cache of buffers.
    let registered = eal
        .filter(|eal| !eal.serves_dumps())
        .map(Registered::new)
        .transpose();
    registered.map_err(|source| WorkerError::Register {
        name: name.to_owned(),
        source,
    })
}
