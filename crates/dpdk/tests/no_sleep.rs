//! What a driver asks the kernel to wait for within a burst, it is told at once.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

// The shim comes with it.
use dpdk as _;

/// What the kernel says of a socket of this family on which nothing ever comes: `None` if it waits for that.
fn asked(family: i32) -> Option<i32> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
        eprintln!("skipped: no socket of family {family} without CAP_NET_RAW");
        return Some(0);
    }
    // SAFETY: just opened, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut wait = libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, of which the call writes `revents`.
        tell.send(unsafe { libc::poll(&raw mut wait, 1, -1) })
    });
    told.recv_timeout(Duration::from_secs(10)).ok()
}

#[test]
fn no_driver_sleeps_in_a_socket() {
    assert_eq!(asked(libc::AF_PACKET), Some(0));
    assert_eq!(asked(libc::AF_XDP), Some(0));
}
