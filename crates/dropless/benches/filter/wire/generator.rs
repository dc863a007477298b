//! What sends frames onto the wire, and what runs a program over them without one.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, Object, Program, ProgramInput, ProgramMut};
use nix::sys::signal::SigSet;
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockType};
use nix::unistd::{Pid, gettid};

use super::{Wire, enter, load, make_urgent, pin, put, within};
use crate::frames::{FRAMES, Frame};

/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const LIVE: u32 = 1 << 1;
/// Frames a call, which takes twenty milliseconds besides.
const A_CALL: u32 = 1 << 19;

fn put_frames(object: &Object, frames: &[Frame]) -> Result<(), String> {
    let keys: Vec<u8> = (0..FRAMES as u32).flat_map(u32::to_ne_bytes).collect();
    let heads: Vec<u8> = frames.iter().flat_map(Frame::head).collect();
    let map = object
        .maps()
        .find(|found| found.name() == "heads")
        .ok_or("no map heads")?;
    map.update_batch(&keys, &heads, FRAMES as u32, MapFlags::ANY, MapFlags::ANY)
        .map_err(|error| format!("heads: {error}"))
}

fn with_program<T>(object: &Object, name: &str, act: impl FnOnce(&ProgramMut<'_>) -> T) -> Result<T, String> {
    let found = object.progs_mut().find(|program| program.name() == name);
    let found = found.ok_or_else(|| format!("no program {name}"))?;
    Ok(act(&found))
}

/// Makes frames, one each `every` (as fast as it can where that is nothing), before everything else on its core: how many, and
/// how long that took.
pub(super) fn send(
    wire: &Wire,
    (frames, to): (&[Frame], [u8; 6]),
    (lasts, every): (Duration, Duration),
) -> Result<(u64, Duration), String> {
    let object = load(&wire.object)?;
    put_frames(&object, frames)?;
    let data = frames[0].bytes(to);
    let all = |program: &ProgramMut<'_>| {
        let (mut sent, begun) = (0, Instant::now());
        while begun.elapsed() < lasts {
            let input = ProgramInput {
                data_in: Some(&data),
                repeat: A_CALL,
                flags: LIVE,
                ..ProgramInput::default()
            };
            program
                .test_run(input)
                .map_err(|error| format!("no live frames: {error}"))?;
            sent += u64::from(A_CALL);
        }
        Ok((sent, begun.elapsed()))
    };
    within(&wire.near, || {
        pin(Pid::from_raw(0), wire.generator_core)?;
        // Signals that somebody sends this process would end a call.
        SigSet::all()
            .thread_block()
            .map_err(|error| format!("signals: {error}"))?;
        make_urgent(gettid().as_raw())?;
        let index = nix::net::if_::if_nametoindex("near0").map_err(|error| format!("near0: {error}"))?;
        put(&object, "wire", 0, &index.to_ne_bytes())?;
        put(&object, "pace", 0, &(every.as_nanos() as u64).to_ne_bytes())?;
        with_program(&object, "send", all)?
    })
}

/// Tells a sender that it is over, when dropped.
pub struct Ends(pub Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frames a turn of a steady sender, and how often: fewer than the wire's ring takes at once.
const TURN: (usize, Duration) = (100, Duration::from_micros(500));

/// Sends at a steady pace through a socket, before everything else on its core, until it is told: frames sent.
pub fn send_steadily(
    near: &str,
    core: usize,
    (frames, to): (&[Frame], [u8; 6]),
    is_over: &AtomicBool,
) -> Result<u64, String> {
    let failed = |error: nix::Error| format!("a socket for frames: {error}");
    enter(near)?;
    pin(Pid::from_raw(0), core)?;
    make_urgent(gettid().as_raw())?;
    let frames: Vec<_> = frames.iter().map(|frame| frame.bytes(to)).collect();
    let socket =
        socket::socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).map_err(failed)?;
    // As many as wait on the wire, and more: what it has no room for is to be counted there.
    socket::setsockopt(&socket, socket::sockopt::SndBufForce, &(16 << 20)).map_err(failed)?;
    let mut interfaces = nix::ifaddrs::getifaddrs().map_err(failed)?;
    let address = interfaces.find_map(|interface| {
        (interface.interface_name == "near0").then_some(*interface.address?.as_link_addr()?)
    });
    let address = address.ok_or("near0 has no address")?;
    let (mut sent, mut next) = (0_u64, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..TURN.0 {
            let frame = &frames[sent as usize % frames.len()];
            match socket::sendto(socket.as_raw_fd(), frame, &address, MsgFlags::empty()) {
                // What the wire has no room for is counted there.
                Ok(_) | Err(nix::Error::ENOBUFS) => {}
                Err(error) => return Err(failed(error)),
            }
            sent += 1;
        }
        next += TURN.1;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(sent)
}

/// Nanoseconds that the program on the far end takes for a frame: run by the kernel over one frame after the other, less
/// what the same costs with a program that does nothing.
pub fn time(wire: &Wire, frames: &[Frame], core: usize) -> Result<f64, String> {
    let id = wire.program()?;
    let object = load(&wire.object)?;
    put_frames(&object, frames)?;
    let data = frames[0].bytes(wire.mac());
    let asked = Program::fd_from_id(id).map_err(|error| format!("program {id}: {error}"))?;
    let asked = (asked.as_fd().as_raw_fd() as u32).to_ne_bytes();
    // A program that knows frames of several pieces is called only by such, and others only by others.
    let of_frags = put(&object, "asked_frags", 0, &asked).is_ok();
    let (caller, map, idle) = if of_frags {
        ("ask_frags", "asked_frags", "drop_frags")
    } else {
        ("ask", "asked", "drop")
    };
    let idle = with_program(&object, idle, |program| {
        (program.as_fd().as_raw_fd() as u32).to_ne_bytes()
    })?;
    let run = |callee: &[u8]| -> Result<f64, String> {
        put(&object, map, 0, callee)?;
        with_program(&object, caller, |program| {
            let input = ProgramInput {
                data_in: Some(&data),
                repeat: 5 * FRAMES as u32,
                ..ProgramInput::default()
            };
            let output = program.test_run(input);
            output
                .map(|output| output.duration.as_nanos() as f64)
                .map_err(|error| format!("the kernel does not run the program: {error}"))
        })?
    };
    std::thread::scope(|scope| {
        let measure = || {
            pin(Pid::from_raw(0), core)?;
            let mut with = Vec::new();
            let mut without = Vec::new();
            for _ in 0..5 {
                with.push(run(&asked)?);
                without.push(run(&idle)?);
            }
            let least = |all: Vec<f64>| all.into_iter().fold(f64::MAX, f64::min);
            Ok(least(with) - least(without))
        };
        scope
            .spawn(measure)
            .join()
            .map_err(|_| "a thread died".to_owned())?
    })
}
