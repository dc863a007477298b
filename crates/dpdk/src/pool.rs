//! Pools of packet buffers, and what is known of buffers that did not come back.

use std::{collections::HashSet, ffi::CString, marker::PhantomData, ptr};

use dpdk_sys as sys;

use crate::{
    Burst, Eal, Mbuf, PoolError,
    device::socket_of,
    eal::QUOTED_LINES,
    error::os_error,
    log,
    raw::{self, HEADROOM, RawMbuf},
};

/// DPDK's bounds of a pool's name and of a per-core cache.
const NAME_MAX: usize = 25;
const CACHE_MAX: usize = 512;

/// A pool of packet buffers. Its memory lives as long as the [`Eal`], so no packet can outlive it.
#[derive(Debug)]
pub struct Pool<'e> {
    raw: *mut sys::rte_mempool,
    name: String,
    room: usize,
    eal: PhantomData<&'e Eal>,
}

// SAFETY: DPDK's pools are made for several producers and consumers; the per-core caches go by the calling thread.
unsafe impl Send for Pool<'_> {}
// SAFETY: as above: every method is safe to call from several threads at once.
unsafe impl Sync for Pool<'_> {}

/// A buffer that is not in its pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MbufTrace {
    /// Its number in the pool.
    pub index: usize,
    /// The port it was received on; none: it was made for sending.
    pub port: Option<u16>,
    /// How many owners it has.
    pub refcnt: u16,
    /// The length of its frame, bytes.
    pub len: usize,
    /// The frame's first bytes.
    pub head: Vec<u8>,
}

impl<'e> Pool<'e> {
    /// Makes a pool of `size` buffers, each with `data_room` bytes for a frame (headroom comes on top), on NUMA node
    /// `socket` (none: any). Every worker keeps up to 1.5 times `cache` free buffers to itself, also after its end:
    /// they count as available, but only a later worker in its place finds them.
    pub fn new(
        eal: &'e Eal,
        name: &str,
        size: usize,
        cache: usize,
        data_room: usize,
        socket: Option<u32>,
    ) -> Result<Self, PoolError> {
        Self::make(eal, name, (size, cache), data_room, socket, false)
    }

    /// As [`Pool::new`], for ordinary pages: buffers lie across two of them. For drivers that hand none to a device.
    pub fn dense(
        eal: &'e Eal,
        name: &str,
        size: usize,
        cache: usize,
        data_room: usize,
        socket: Option<u32>,
    ) -> Result<Self, PoolError> {
        Self::make(eal, name, (size, cache), data_room, socket, true)
    }

    fn make(
        _eal: &'e Eal,
        name: &str,
        (size, cache): (usize, usize),
        data_room: usize,
        socket: Option<u32>,
        dense: bool,
    ) -> Result<Self, PoolError> {
        let invalid = |problem: String| PoolError::Invalid {
            name: name.to_owned(),
            problem,
        };
        let c_name = CString::new(name).map_err(|_| invalid("its name holds a zero byte".to_owned()))?;
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(invalid(format!(
                "its name has {} bytes, DPDK takes 1 to {NAME_MAX}",
                name.len()
            )));
        }
        let largest = usize::from(u16::MAX) - HEADROOM;
        if !(128..=largest).contains(&data_room) {
            return Err(invalid(format!(
                "a room of {data_room} bytes, possible are 128 to {largest}"
            )));
        }
        let count = u32::try_from(size).map_err(|_| invalid(format!("{size} buffers are too many")))?;
        // DPDK wants cache * 1.5 <= size.
        let cache = cache.min(CACHE_MAX).min(size * 2 / 3) as u32;
        let socket = socket_of(socket);
        let mut error = 0;
        // SAFETY: the name is zero-terminated and copied; EAL runs while `_eal` lives.
        let pool = unsafe {
            let bytes = (data_room + HEADROOM) as u16;
            let dense = i32::from(dense);
            sys::dl_pool_create(
                c_name.as_ptr(),
                count,
                cache,
                bytes,
                socket,
                dense,
                &raw mut error,
            )
        };
        if pool.is_null() {
            return Err(PoolError::Create {
                name: name.to_owned(),
                size,
                room: data_room,
                mib: (size * (data_room + raw::ROOM_OFFSET)) >> 20,
                source: os_error(error),
                log: log::tail(QUOTED_LINES),
            });
        }
        Ok(Self {
            raw: pool,
            name: name.to_owned(),
            room: data_room,
            eal: PhantomData,
        })
    }

    /// Appends `count` packets to `burst`, or none when the pool (or the burst) has not as many: how many. They hold
    /// leftovers: [`Burst::write`] each before it is sent. Their first lines are being fetched for writing, so it
    /// pays to allocate one burst ahead.
    #[inline]
    pub fn allocate(&self, burst: &mut Burst<'e>, count: usize) -> usize {
        if count > burst.room() || count == 0 {
            return 0;
        }
        let room = burst.spare(count);
        // SAFETY: `room` has `count` writable places; the pool lives as long as 'e.
        if unsafe { sys::dl_alloc_raw(self.raw, room.as_mut_ptr(), count as u16) } != 0 {
            return 0;
        }
        // SAFETY: the pool gave `count` packets that nobody else owns. Raw objects keep refcnt 1, one segment and a
        // frame inside their own buffer, so they are plain, and sound to read and to send, if meaningless.
        unsafe { burst.grow(count, self.room) };
        count
    }

    /// One packet, holding leftovers, or none.
    pub fn allocate_one(&self) -> Option<Mbuf<'e>> {
        let mut mbuf: RawMbuf = ptr::null_mut();
        // SAFETY: one writable place; what the pool gives is owned by nobody else.
        unsafe { (sys::dl_alloc_raw(self.raw, &raw mut mbuf, 1) == 0).then(|| Mbuf::from_raw(mbuf)) }
    }

    /// Writes `frame` into every free buffer where a driver without data of its own (null) receives it: how many.
    pub fn prefill(&self, frame: &[u8]) -> usize {
        let length = frame.len().min(self.room);
        let mut free = self.take_free();
        for mbuf in &free {
            // SAFETY: the buffer was just taken, so it is ours; its room has `self.room` bytes.
            unsafe { raw::write(*mbuf, length)[..length].copy_from_slice(&frame[..length]) };
        }
        // SAFETY: all of them came from this pool and nobody else has them.
        unsafe { sys::dl_pool_put_uncached(self.raw, free.as_mut_ptr(), free.len() as u32) };
        free.len()
    }

    /// The free buffers that lie in no thread's cache.
    fn take_free(&self) -> Vec<RawMbuf> {
        let mut free = Vec::with_capacity(self.size());
        let mut mbuf: RawMbuf = ptr::null_mut();
        // SAFETY: one writable place each time; the shim says 0 when it wrote it.
        while free.len() < self.size() && unsafe { sys::dl_pool_take_uncached(self.raw, &raw mut mbuf) } == 0
        {
            free.push(mbuf);
        }
        free
    }

    /// The buffers that are not in the pool, and where they were seen last. Nobody allocates meanwhile, and no queue fills
    /// itself: both borrow the pool.
    pub fn audit(&mut self) -> Vec<MbufTrace> {
        let mut free = self.take_free();
        let mut cached: Vec<RawMbuf> = vec![ptr::null_mut(); self.size()];
        let mut objects = cached.clone();
        // SAFETY: both arrays have as many writable places as is said; the caches are only read.
        let (cached_count, count) = unsafe {
            let size = self.size() as u32;
            (
                sys::dl_pool_cached(self.raw, cached.as_mut_ptr(), size) as usize,
                sys::dl_pool_objects(self.raw, objects.as_mut_ptr(), size) as usize,
            )
        };
        let home: HashSet<RawMbuf> = free.iter().chain(&cached[..cached_count]).copied().collect();
        let missing = objects[..count]
            .iter()
            .enumerate()
            .filter(|(_, mbuf)| !home.contains(*mbuf));
        let traces = missing
            .map(
                // SAFETY: an object of this pool.
                |(index, mbuf)| unsafe { Self::trace(index, *mbuf) },
            )
            .collect();
        // SAFETY: all of them came from this pool and nobody else has them.
        unsafe { sys::dl_pool_put_uncached(self.raw, free.as_mut_ptr(), free.len() as u32) };
        traces
    }

    /// # Safety
    /// `mbuf` is an object of one of our pools.
    unsafe fn trace(index: usize, mbuf: RawMbuf) -> MbufTrace {
        let mut head = [0_u8; 64];
        // SAFETY: the object lies in the pool's memory, which lives as long as 'e, and `room` is at least 128 bytes.
        // Its owner, if it still runs, may be writing: the bytes are copied by raw pointer and taken as a guess.
        let (port, refcnt, len) = unsafe {
            ptr::copy_nonoverlapping(
                mbuf.cast::<u8>().add(raw::ROOM_OFFSET),
                head.as_mut_ptr(),
                head.len(),
            );
            (raw::port(mbuf), raw::refcnt(mbuf), raw::packet_len(mbuf))
        };
        let port = (port != u16::MAX).then_some(port);
        MbufTrace {
            index,
            port,
            refcnt,
            len,
            head: head[..len.min(head.len())].to_vec(),
        }
    }

    /// Buffers not in the pool now: owned by packets, rings and drivers.
    pub fn in_use(&self) -> usize {
        self.size().saturating_sub(self.available())
    }

    /// Buffers in the pool now, the threads' caches included.
    pub fn available(&self) -> usize {
        // SAFETY: reads counters of a pool that lives as long as 'e.
        unsafe { sys::dl_pool_available(self.raw) as usize }
    }

    /// All buffers of the pool.
    pub fn size(&self) -> usize {
        // SAFETY: reads a constant of a pool that lives as long as 'e.
        unsafe { sys::dl_pool_size(self.raw) as usize }
    }

    /// Bytes for a frame in each buffer.
    pub fn data_room(&self) -> usize {
        self.room
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn as_raw(&self) -> *mut sys::rte_mempool {
        self.raw
    }
}
