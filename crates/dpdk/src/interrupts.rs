//! EAL's interrupt thread, on which drivers serve their connections.

use std::ffi::c_void;

use dpdk_sys as sys;

/// Runs `work` there, between two things that it does for a driver, and waits for its end; where a driver holds that thread up
/// for seconds, here. It must use nothing of its thread.
pub(crate) fn between(mut work: &mut dyn FnMut()) {
    unsafe extern "C" fn run(work: *mut c_void) {
        // SAFETY: it is the borrow below, whose owner waits meanwhile.
        let work = unsafe { &mut *work.cast::<&mut dyn FnMut()>() };
        work();
    }
    // SAFETY: whoever lent `work` waits here until its only call has ended.
    unsafe { sys::dl_on_interrupt_thread(Some(run), (&raw mut work).cast()) };
}
