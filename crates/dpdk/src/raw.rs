//! Field access of an mbuf by the offsets the shim exports: the one place that knows where a field lies.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::{marker::PhantomData, ptr, slice};

use dpdk_sys as sys;

pub(crate) type RawMbuf = *mut sys::rte_mbuf;

/// From an mbuf's header to the first byte of a fresh frame: our pools have no private area.
pub(crate) const ROOM_OFFSET: usize = sys::DL_MBUF_SIZE as usize + sys::DL_HEADROOM as usize;
pub(crate) const HEADROOM: usize = sys::DL_HEADROOM as usize;

/// `data_off` = headroom, refcnt = 1, `nb_segs` = 1, port = none, as one little-endian word.
const FRESH: u64 = sys::DL_HEADROOM as u64 | 1 << 16 | 1 << 32 | 0xffff << 48;
const PLAIN_MASK: u64 = 0x0000_ffff_ffff_0000;
const PLAIN: u64 = 1 << 16 | 1 << 32;

/// # Safety
/// `mbuf` is owned by the caller and `OFFSET` is the shim's offset of a field of type `T`.
#[inline]
unsafe fn get<T: Copy, const OFFSET: u32>(mbuf: RawMbuf) -> T {
    // SAFETY: inside the mbuf and aligned, as the offset comes from offsetof().
    unsafe { mbuf.byte_add(OFFSET as usize).cast::<T>().read() }
}

/// # Safety
/// As for [`get`].
#[inline]
unsafe fn set<T: Copy, const OFFSET: u32>(mbuf: RawMbuf, value: T) {
    // SAFETY: inside the mbuf and aligned, as the offset comes from offsetof().
    unsafe { mbuf.byte_add(OFFSET as usize).cast::<T>().write(value) }
}

/// Length of the first segment, bytes.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn data_len(mbuf: RawMbuf) -> usize {
    // SAFETY: by the caller; data_len is a u16.
    usize::from(unsafe { get::<u16, { sys::DL_OFF_DATA_LEN }>(mbuf) })
}

/// Length of all segments, bytes.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn packet_len(mbuf: RawMbuf) -> usize {
    // SAFETY: by the caller; pkt_len is a u32.
    unsafe { get::<u32, { sys::DL_OFF_PKT_LEN }>(mbuf) as usize }
}

/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn segment_count(mbuf: RawMbuf) -> u16 {
    // SAFETY: by the caller; nb_segs is a u16.
    unsafe { get::<u16, { sys::DL_OFF_NB_SEGS }>(mbuf) }
}

/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn is_segmented(mbuf: RawMbuf) -> bool {
    // SAFETY: by the caller.
    unsafe { segment_count(mbuf) != 1 }
}

/// # Safety
/// The caller owns `mbuf`, or only wants a guess.
#[inline]
pub(crate) unsafe fn port(mbuf: RawMbuf) -> u16 {
    // SAFETY: by the caller; port is a u16.
    unsafe { get::<u16, { sys::DL_OFF_PORT }>(mbuf) }
}

/// # Safety
/// The caller owns `mbuf`, or only wants a guess.
#[inline]
pub(crate) unsafe fn refcnt(mbuf: RawMbuf) -> u16 {
    // SAFETY: by the caller; refcnt is a u16.
    unsafe { get::<u16, { sys::DL_OFF_REFCNT }>(mbuf) }
}

/// # Safety
/// The caller owns `mbuf`.
#[inline]
unsafe fn data(mbuf: RawMbuf) -> *mut u8 {
    // SAFETY: by the caller; buf_addr is a pointer, data_off a u16 that stays within the buffer.
    unsafe {
        let offset = get::<u16, { sys::DL_OFF_DATA_OFF }>(mbuf);
        get::<*mut u8, { sys::DL_OFF_BUF_ADDR }>(mbuf).add(usize::from(offset))
    }
}

/// Bytes from the frame's start to the buffer's end.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn room_len(mbuf: RawMbuf) -> usize {
    // SAFETY: by the caller; both are u16.
    unsafe {
        let buffer = get::<u16, { sys::DL_OFF_BUF_LEN }>(mbuf);
        usize::from(buffer.saturating_sub(get::<u16, { sys::DL_OFF_DATA_OFF }>(mbuf)))
    }
}

/// The first segment's bytes.
/// # Safety
/// The caller owns `mbuf` for `'a` and writes it meanwhile through no other path.
#[inline]
pub(crate) unsafe fn bytes<'a>(mbuf: RawMbuf) -> &'a [u8] {
    // SAFETY: data_off + data_len <= buf_len holds for every mbuf a driver or `write` left; pool memory is
    // zero-filled when mapped, so every byte is initialised.
    unsafe { slice::from_raw_parts(data(mbuf), data_len(mbuf)) }
}

/// The bytes of all segments, one after the other.
pub(crate) struct Segments<'a> {
    next: RawMbuf,
    left: u16,
    bytes: PhantomData<&'a [u8]>,
}

/// # Safety
/// As for [`bytes`].
#[inline]
pub(crate) unsafe fn segments<'a>(mbuf: RawMbuf) -> Segments<'a> {
    Segments {
        next: mbuf,
        // SAFETY: by the caller.
        left: unsafe { segment_count(mbuf) },
        bytes: PhantomData,
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let mbuf = self.next;
        // SAFETY: the caller of `segments` owns the chain for 'a; it has `nb_segs` links, of which this is one.
        unsafe {
            if self.left > 0 {
                self.next = get::<RawMbuf, { sys::DL_OFF_NEXT }>(mbuf);
            }
            Some(bytes(mbuf))
        }
    }
}

/// Where drivers put the time of reception, and the flag that says so; flag 0 while none does.
static RX_TIMESTAMP: (AtomicU64, AtomicUsize) = (AtomicU64::new(0), AtomicUsize::new(0));

/// Looks for the place of the time of reception, which drivers ask for when they are configured or started.
pub(crate) fn find_rx_timestamp() {
    let (mut offset, mut flag) = (0, 0);
    // SAFETY: two writable places.
    if unsafe { sys::dl_rx_timestamp_field(&raw mut offset, &raw mut flag) } == 0 {
        RX_TIMESTAMP.1.store(offset as usize, Ordering::Relaxed);
        RX_TIMESTAMP.0.store(flag, Ordering::Release);
    }
}

/// When the NIC received the packet, by its own clock.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn rx_timestamp(mbuf: RawMbuf) -> Option<u64> {
    let flag = RX_TIMESTAMP.0.load(Ordering::Acquire);
    // SAFETY: the caller owns `mbuf`; the offset is one that DPDK gave for a u64 in it, and written before the flag.
    unsafe {
        (get::<u64, { sys::DL_OFF_OL_FLAGS }>(mbuf) & flag != 0).then(|| {
            mbuf.byte_add(RX_TIMESTAMP.1.load(Ordering::Relaxed))
                .cast::<u64>()
                .read()
        })
    }
}

/// The first segment's bytes, to be changed.
/// # Safety
/// The caller owns `mbuf` for `'a`; the slice is the only path to its bytes.
#[inline]
pub(crate) unsafe fn bytes_mut<'a>(mbuf: RawMbuf) -> &'a mut [u8] {
    // SAFETY: as in `bytes`; refcnt is 1, for nothing in this crate clones an mbuf.
    unsafe { slice::from_raw_parts_mut(data(mbuf), data_len(mbuf)) }
}

/// The whole room from the frame's start.
/// # Safety
/// As for [`bytes_mut`].
#[inline]
pub(crate) unsafe fn room_mut<'a>(mbuf: RawMbuf) -> &'a mut [u8] {
    // SAFETY: data_off + room_len = buf_len.
    unsafe { slice::from_raw_parts_mut(data(mbuf), room_len(mbuf)) }
}

/// Sets the frame's length; further segments are freed.
/// # Panics
/// When `len` is longer than the room.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn set_len(mbuf: RawMbuf, len: usize) {
    // SAFETY: the caller owns `mbuf`.
    unsafe {
        assert!(
            len <= room_len(mbuf),
            "a frame of {len} bytes in a room of {}",
            room_len(mbuf)
        );
        if is_segmented(mbuf) {
            sys::dl_make_plain(mbuf);
        }
        set::<u16, { sys::DL_OFF_DATA_LEN }>(mbuf, len as u16);
        set::<u32, { sys::DL_OFF_PKT_LEN }>(mbuf, len as u32);
    }
}

/// The shortest room [`write`] gives, bytes: a frame this short is written as one copy of one cache line.
pub(crate) const ROOM_MIN: usize = 64;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Makes `mbuf` a fresh frame of `len` bytes and returns its room: the frame, or [`ROOM_MIN`] bytes if it is shorter.
/// # Panics
/// When the room is shorter than that.
/// # Safety
/// The caller owns `mbuf` for `'a`; the slice is the only path to its bytes.
#[inline]
pub(crate) unsafe fn write<'a>(mbuf: RawMbuf, len: usize) -> &'a mut [u8] {
    // SAFETY: the caller owns `mbuf`, and so the segments behind it. It comes from one of our pools (the only ones in
    // the process, given to every receive queue), so once it is plain its own buffer follows the header, and
    // buf_len says how long it is.
    unsafe {
        let rearm = get::<u64, { sys::DL_OFF_REARM }>(mbuf);
        let flags = get::<u64, { sys::DL_OFF_OL_FLAGS }>(mbuf);
        if rearm & PLAIN_MASK != PLAIN || flags & sys::DL_MBUF_NOT_DIRECT != 0 {
            make_plain(mbuf);
        }
        let room = fresh_room_len(mbuf);
        assert!(
            len.max(ROOM_MIN) <= room,
            "a frame of {len} bytes in a room of {room}"
        );
        write_plain(mbuf, len)
    }
}

/// Like [`write`], for an mbuf that is known to be plain. Nothing is read from it and the room's address is computed,
/// so no cache miss holds the core up.
/// # Safety
/// The caller owns `mbuf` for `'a`; the slice is the only path to its bytes; it is plain, and its own room has `len`
/// bytes and [`ROOM_MIN`] at least.
#[inline]
pub(crate) unsafe fn write_plain<'a>(mbuf: RawMbuf, len: usize) -> &'a mut [u8] {
    // SAFETY: by the caller; the room of a plain mbuf of our pools begins at a constant distance.
    unsafe {
        set::<u64, { sys::DL_OFF_REARM }>(mbuf, FRESH);
        set::<u64, { sys::DL_OFF_OL_FLAGS }>(mbuf, 0);
        // pkt_len, data_len, and VLAN tag 0; the word lies across an 8-byte boundary.
        let lengths = len as u64 | (len as u64) << 32;
        mbuf.byte_add(sys::DL_OFF_PKT_LEN as usize)
            .cast::<u64>()
            .write_unaligned(lengths);
        slice::from_raw_parts_mut(mbuf.cast::<u8>().add(ROOM_OFFSET), len.max(ROOM_MIN))
    }
}

/// # Safety
/// The caller owns `mbuf`.
#[cold]
#[inline(never)]
unsafe fn make_plain(mbuf: RawMbuf) {
    // SAFETY: the caller owns `mbuf` and so the segments behind it.
    unsafe { sys::dl_make_plain(mbuf) };
}

/// Asks the NIC to put in the UDP checksum; the field holds the pseudo-header's sum.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn request_udp_checksum(mbuf: RawMbuf, l2_len: u16, l3_len: u16, ipv6: bool) {
    let flags = if ipv6 {
        sys::DL_TX_UDP_CHECKSUM_V6
    } else {
        sys::DL_TX_UDP_CHECKSUM_V4
    };
    // SAFETY: the caller owns `mbuf`; tx_offload is a u64 whose low bits are l2_len:7 and l3_len:9.
    unsafe {
        let old = get::<u64, { sys::DL_OFF_OL_FLAGS }>(mbuf);
        set::<u64, { sys::DL_OFF_OL_FLAGS }>(mbuf, old | flags);
        let lengths = u64::from(l2_len & 0x7f) | u64::from(l3_len & 0x1ff) << 7;
        set::<u64, { sys::DL_OFF_TX_OFFLOAD }>(mbuf, lengths);
    }
}

/// Fetches the header's first line into the cache.
#[inline]
pub(crate) fn prefetch_header(mbuf: RawMbuf) {
    prefetch(mbuf.cast());
}

/// Fetches the frame's first line, at the place where drivers put a frame by default.
#[inline]
pub(crate) fn prefetch_data(mbuf: RawMbuf) {
    prefetch(mbuf.cast::<u8>().wrapping_add(ROOM_OFFSET));
}

/// Fetches the frame's lines behind the first into the cache.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn prefetch_rest(mbuf: RawMbuf) {
    // SAFETY: by the caller.
    let (data, len) = unsafe { (data(mbuf), data_len(mbuf)) };
    for at in (LINE..len).step_by(LINE) {
        prefetch(data.wrapping_add(at));
    }
}

/// Fetches the lines behind the first of a frame that is to be `len` bytes long, for writing. The first is fetched when the
/// packet is allocated.
#[inline]
pub(crate) fn prefetch_rest_to_write(mbuf: RawMbuf, len: usize) {
    let data = mbuf.cast::<u8>().wrapping_add(ROOM_OFFSET);
    for at in (LINE..len).step_by(LINE) {
        let line = data.wrapping_add(at);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch never faults, whatever the address. The intrinsic needs PRFCHW declared; every x86-64 executes
        // the instruction, the oldest as a no-operation.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(target_arch = "x86_64"))]
        prefetch(line);
    }
}

/// Moves a frame of one line from this core's caches to the one that all cores share, where another core finds it sooner. A
/// hint: to a CPU without CLDEMOTE it is a no-operation.
/// # Safety
/// The caller owns `mbuf`.
#[inline]
pub(crate) unsafe fn demote_short(mbuf: RawMbuf) {
    // SAFETY: by the caller.
    let (data, len) = unsafe { (data(mbuf), data_len(mbuf)) };
    #[cfg(target_arch = "x86_64")]
    if len <= LINE {
        // SAFETY: it never faults, whatever the address, and changes no byte.
        unsafe {
            std::arch::asm!("cldemote [{}]", in(reg) data, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, len);
}

#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address; SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// # Safety
/// The caller gives up the `count` mbufs at `mbufs`, all of which it owns.
#[inline]
pub(crate) unsafe fn free(mbufs: &mut [RawMbuf]) {
    debug_assert!(
        mbufs.iter().all(|mbuf| !ptr::eq(*mbuf, ptr::null())),
        "a null mbuf"
    );
    // SAFETY: by the caller; a burst is far shorter than 65536.
    unsafe { sys::dl_free_bulk(mbufs.as_mut_ptr(), mbufs.len() as u16) };
}

/// The room [`write`] would find, bytes.
/// # Safety
/// The caller owns `mbuf`.
pub(crate) unsafe fn fresh_room_len(mbuf: RawMbuf) -> usize {
    // SAFETY: by the caller; buf_len is a u16.
    usize::from(unsafe { get::<u16, { sys::DL_OFF_BUF_LEN }>(mbuf) }).saturating_sub(HEADROOM)
}
