//! A port that starts leaves its interface's MAC address and flags alone.
//!
//! `rte_eth_dev_start` gives each device its address again, and the driver of `AF_PACKET` hands that on to the kernel, which
//! then forgets all neighbours of the interface, permanent ones too (`neigh_changeaddr`), though the address is the same.
//! It also says again whether the device is promiscuous, and the drivers of `AF_PACKET` and `AF_XDP` set or clear
//! `IFF_PROMISC` by that: the one flag that `ip link set promisc on` and every other run have set, too.

use std::{panic, thread};

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};

/// `SECCOMP_RET_ALLOW` of `linux/seccomp.h`.
const ALLOW: u32 = 0x7FFF_0000;
/// Of `struct seccomp_data`: the system call's number, and the lower half of its second argument.
const NUMBER: u32 = 0;
const SECOND: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };

/// Does `work` in a thread of its own, where setting the MAC address or the flags of an interface succeeds and does nothing.
/// Where the kernel has no filters of system calls, they are set.
pub fn keeping<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            ignore_changes();
            work()
        });
        filtered
            .join()
            .unwrap_or_else(|cause| panic::resume_unwind(cause))
    })
}

/// For the rest of this thread's life.
fn ignore_changes() {
    let filter = |code: u32, k: u32, (jt, jf): (u8, u8)| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let step = |code: u32, k: u32| filter(code, k, (0, 0));
    let jump_if = |k: u32, so: u8, otherwise: u8| filter(BPF_JMP | BPF_JEQ | BPF_K, k, (so, otherwise));
    // The error 0 is success.
    let mut steps = [
        step(BPF_LD | BPF_W | BPF_ABS, NUMBER),
        jump_if(libc::SYS_ioctl as u32, 0, 4),
        step(BPF_LD | BPF_W | BPF_ABS, SECOND),
        jump_if(libc::SIOCSIFHWADDR as u32, 1, 0),
        jump_if(libc::SIOCSIFFLAGS as u32, 0, 1),
        step(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO),
        step(BPF_RET | BPF_K, ALLOW),
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
