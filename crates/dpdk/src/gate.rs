//! The gate in front of each queue: a port stops only when no burst call is inside, at no cost to the burst calls.
//!
//! The worker says "busy" with a plain store and then looks whether the gate is open; control closes the gate and
//! then looks whether anybody is busy. Each needs its store to be seen before its load. On the worker's side that
//! would be a full fence per burst; membarrier(2), called by control, puts the fence into the worker only then.

use std::{
    hint,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering, compiler_fence, fence},
    },
    thread,
    time::{Duration, Instant},
};

use dpdk_sys as sys;

static MEMBARRIER: OnceLock<bool> = OnceLock::new();

/// Every gate there is, for [`grace`].
static GATES: Mutex<Vec<Weak<Gate>>> = Mutex::new(Vec::new());

/// Longer than any burst: whoever has not come out by then never will.
const GRACE_MAX: Duration = Duration::from_secs(2);

/// Asks the kernel for membarrier(2); where it is refused, workers pay for the fence. The start of EAL does so at the latest: a
/// process of one thread is answered at once, one of several after a grace period of RCU (10 ms and more).
pub fn ask_for_barriers() {
    MEMBARRIER.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
}

pub(crate) fn register() {
    ask_for_barriers();
    // SAFETY: `grace` is a plain function that may be called at any time, from any thread.
    unsafe { sys::dl_before_unmap(Some(grace)) };
}

/// Waits until every burst call that was under way has come out. Called on EAL's interrupt thread, between a driver's
/// word that its memory goes and the going: whoever enters later has seen the word.
extern "C" fn grace() {
    fence(Ordering::SeqCst);
    if MEMBARRIER.get() == Some(&true) {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    let begun = Instant::now();
    let gates: Vec<Arc<Gate>> = {
        let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|gate| gate.strong_count() > 0);
        gates.iter().filter_map(Weak::upgrade).collect()
    };
    for gate in gates {
        while gate.busy.load(Ordering::Acquire) && begun.elapsed() < GRACE_MAX {
            // The worker may have been preempted inside a burst by this very thread.
            thread::sleep(Duration::from_micros(20));
        }
    }
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier(2) takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// One queue's gate, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Gate {
    open: AtomicBool,
    busy: AtomicBool,
    /// No membarrier(2) here: the worker fences itself.
    fenced: bool,
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Arc<Self> {
        let fenced = !MEMBARRIER.get().copied().unwrap_or(false);
        let gate = Arc::new(Self {
            open: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            fenced,
        });
        GATES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&gate));
        gate
    }

    /// Runs `burst` when the gate is open. Only the queue's one owner may call this.
    #[inline]
    pub(crate) fn pass(&self, burst: impl FnOnce() -> u16) -> u16 {
        self.busy.store(true, Ordering::Relaxed);
        if self.fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        // Acquire: what control did to the port before opening is seen.
        let count = if self.open.load(Ordering::Acquire) {
            burst()
        } else {
            0
        };
        // Release: whoever sees "not busy" sees all the burst did.
        self.busy.store(false, Ordering::Release);
        count
    }

    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Release);
    }

    /// Closes all the gates and waits until nobody is inside: one burst call at most.
    pub(crate) fn close_all<'g>(gates: impl Iterator<Item = &'g Gate> + Clone) {
        for gate in gates.clone() {
            gate.open.store(false, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        if MEMBARRIER.get() == Some(&true) {
            // Registered, so it cannot fail.
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        }
        for gate in gates {
            let mut spins = 0_u32;
            while gate.busy.load(Ordering::Acquire) {
                // The worker may share this core or have been preempted inside a burst.
                if spins < 1000 {
                    spins += 1;
                    hint::spin_loop();
                } else {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        }
    }
}
