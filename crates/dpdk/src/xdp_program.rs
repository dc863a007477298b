//! XDP programs and `AF_XDP` sockets, as the kernel knows them: what DPDK's driver leaves behind when it is killed.

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Of `linux/bpf.h`: commands of bpf(2), `struct bpf_prog_info` up to its name, and where it has id and name.
const OBJ_GET: libc::c_int = 7;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const INFO_LENGTH: usize = 80;
const INFO_ID: usize = 4;
const INFO_NAME: usize = 64;
/// Bytes of a page, and of the smallest frame that `AF_XDP` takes.
const PAGE: usize = 4096;
const FRAME: u32 = 2048;

/// An XDP program in the kernel, which lives as long as this.
#[derive(Debug)]
pub struct XdpProgram {
    fd: OwnedFd,
    id: u32,
    name: String,
}

impl XdpProgram {
    /// The program with this id; takes `CAP_SYS_ADMIN`.
    pub fn by_id(id: u32) -> io::Result<Self> {
        let mut attributes = [0_u32; 4];
        attributes[0] = id;
        Self::of(bpf(PROG_GET_FD_BY_ID, &mut attributes)?)
    }

    /// The program that a file of a BPF file system holds.
    pub fn pinned(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut attributes = [path.as_ptr() as u64, 0];
        Self::of(bpf(OBJ_GET, &mut attributes)?)
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        let mut info = [0_u8; INFO_LENGTH];
        let mut attributes = InfoAttributes {
            fd: fd.as_raw_fd(),
            length: INFO_LENGTH as u32,
            info: info.as_mut_ptr() as u64,
        };
        call(OBJ_GET_INFO_BY_FD, &mut attributes)?;
        let id = info[INFO_ID..].first_chunk().copied().unwrap_or_default();
        let name = info[INFO_NAME..]
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(Self {
            fd,
            id: u32::from_ne_bytes(id),
            name,
        })
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What its author called it, cut to 15 bytes.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl AsFd for XdpProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Attributes of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InfoAttributes {
    fd: i32,
    length: u32,
    info: u64,
}

/// A call whose result is a file descriptor.
fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    let fd = call(command, attributes)?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: every caller's `attributes` are those of its command, as long as is told, with pointers that outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>()) };
    i32::try_from(result)
        .ok()
        .filter(|result| *result >= 0)
        .ok_or_else(io::Error::last_os_error)
}

/// Whether no `AF_XDP` socket is bound to this queue of the interface with this index, of whatever process: one of our own
/// is, for a moment, which the kernel refuses where there is another. It asks for nothing of the interface's driver.
pub fn xdp_queue_is_free(interface: u32, queue: u32) -> io::Result<bool> {
    // SAFETY: no pointers; what it makes is ours.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        checked(fd)?;
        OwnedFd::from_raw_fd(fd)
    };
    let memory = Page::new()?;
    let region = libc::xdp_umem_reg_v1 {
        addr: memory.0 as u64,
        len: PAGE as u64,
        chunk_size: FRAME,
        headroom: 0,
    };
    let slots: u32 = 2;
    set(&socket, libc::XDP_UMEM_REG, &region)?;
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
    ] {
        set(&socket, ring, &slots)?;
    }
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: `address` has `length` readable bytes.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    match checked(result) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A page of memory for a socket that receives nothing.
struct Page(*mut c_void);

impl Page {
    fn new() -> io::Result<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh mapping, wherever the kernel likes.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(page))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the kernel has its own hold on the page while a socket has it.
        unsafe { libc::munmap(self.0, PAGE) };
    }
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = (&raw const *value).cast();
    // SAFETY: `value` has `length` readable bytes, and is what the option takes.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, value, length) })
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
