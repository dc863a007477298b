//! Waits until no processor is in a program that was replaced: what it counted is all it will count.

use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use std::os::fd::{AsFd as _, AsRawFd as _};

use crate::Error;
use crate::program::told;

/// The kernel waits for all programs under way when a map in a map is replaced from outside (`maybe_wait_bpf_programs` in
/// `kernel/bpf/syscall.c`), so that whoever did that knows the old one to be unused.
#[derive(Debug)]
pub(crate) struct Barrier {
    outer: MapHandle,
    inner: MapHandle,
}

impl Barrier {
    pub(crate) fn new() -> Result<Self, Error> {
        let mut options = sys::bpf_map_create_opts {
            sz: size_of::<sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let why = "the kernel cannot be waited for";
        let inner = MapHandle::create(MapType::Array, Some("inner"), 4, 8, 1, &options).map_err(told(why))?;
        options.inner_map_fd = inner.as_fd().as_raw_fd() as u32;
        let outer =
            MapHandle::create(MapType::ArrayOfMaps, Some("outer"), 4, 4, 1, &options).map_err(told(why))?;
        Ok(Self { outer, inner })
    }

    /// Waits: a few milliseconds, more on a machine of many processors.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        let inner = self.inner.as_fd().as_raw_fd();
        self.outer
            .update(&0_u32.to_ne_bytes(), &inner.to_ne_bytes(), MapFlags::ANY)
            .map_err(told("the kernel cannot be waited for"))
    }
}
