//! A port that starts leaves its interface's MAC address alone.
//!
//! `rte_eth_dev_start` gives each device its address again, and the driver of `AF_PACKET` hands that on to the kernel, which
//! then forgets all neighbours of the interface, permanent ones too (`neigh_changeaddr`), though the address is the same.

use std::{panic, thread};

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};

/// `SECCOMP_RET_ALLOW` of `linux/seccomp.h`.
const ALLOW: u32 = 0x7FFF_0000;
/// Of `struct seccomp_data`: the system call's number, and the lower half of its second argument.
const NUMBER: u32 = 0;
const SECOND: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };

/// Does `work` in a thread of its own, where setting the MAC address of an interface succeeds and does nothing. Where the
/// kernel has no filters of system calls, the address is set.
pub fn keeping<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            ignore_new_addresses();
            work()
        });
        filtered
            .join()
            .unwrap_or_else(|cause| panic::resume_unwind(cause))
    })
}

/// For the rest of this thread's life.
fn ignore_new_addresses() {
    let step = |code: u32, k: u32, otherwise: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: otherwise,
        k,
    };
    // The error 0 is success.
    let mut steps = [
        step(BPF_LD | BPF_W | BPF_ABS, NUMBER, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, libc::SYS_ioctl as u32, 3),
        step(BPF_LD | BPF_W | BPF_ABS, SECOND, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, libc::SIOCSIFHWADDR as u32, 1),
        step(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO, 0),
        step(BPF_RET | BPF_K, ALLOW, 0),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: both hold for this thread only; `program` names steps that live until the call returns, and the kernel copies
    // them.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        );
    }
}
