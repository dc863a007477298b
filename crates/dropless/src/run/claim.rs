//! An interface whose queues `AF_XDP` takes belongs to one run at a time, and what a killed run left on it goes.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dpdk::XdpProgram;
use host::{Fix, PortUri, Problem, Sys};
use measure::Note;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt::PeerCredentials,
};
use report::published::in_proc;

/// What libxdp calls its program that hands packets to sockets, and the one that calls several (libxdp, `xsk.c`).
const OURS: &str = "xsk_def_prog";
pub const DISPATCHER: &str = "xdp_dispatcher";
/// The kernel takes a moment to close the sockets of a process that was killed.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// An interface that is ours alone until this is dropped, or the process is gone.
pub struct Claim {
    /// An abstract name exists once in a network namespace, and ends with its socket.
    _lock: UnixListener,
}

/// Claims the interfaces of the ports that put a program onto theirs, and removes what killed runs left there.
pub fn claim(ports: &[PortUri]) -> Result<(Vec<Claim>, Vec<Note>)> {
    let sys = Sys::live();
    let (mut claims, mut notes, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for uri in ports.iter().filter(|uri| uri.kind.traits().needs_program) {
        let name = uri.kind.interface().unwrap_or_default();
        // One that is not there is refused by the checks that follow.
        let index = host::link::index(&sys, name).filter(|index| !known.contains(index));
        let Some(index) = index else { continue };
        known.push(index);
        claims.push(lock(&format!("port {uri}"), name, index)?);
        if let Some(id) = clear(&sys, name, index) {
            let text =
                format!("port {uri}: the XDP program (id {id}) that a killed process left on it was removed");
            notes.push(Note::new("program_removed", text));
        }
        let there = xdp::InForce::on(index)
            .ok()
            .flatten()
            .and_then(|found| found.name);
        if there.as_deref() == Some(xdp::PROGRAM) {
            let found = format!("rules that stay are in force on {name}, and an interface has one program");
            return Err(Problem::new(uri, found, Fix::one(format!("dropless filter stop {name}"))).into());
        }
    }
    Ok((claims, notes))
}

/// The same for an interface that gets rules; `clears` where a program there cannot be one that is taken over.
pub fn interface(name: &str, index: u32, clears: bool) -> Result<(Claim, Option<Note>)> {
    let claim = lock(&format!("--dev {name}"), name, index)?;
    let removed = clears
        .then(|| clear(&Sys::live(), name, index))
        .flatten()
        .map(|id| {
            let text = format!("the XDP program (id {id}) that a killed process left on {name} was removed");
            Note::new("program_removed", text)
        });
    Ok((claim, removed))
}

/// The process of dropless that has this interface. Anybody may take the name of the lock, and then hand it on to a process
/// that has another number.
pub fn holder_of(index: u32) -> Option<u32> {
    holder(&key(index)).filter(|id| stranger(*id).is_none())
}

/// What a process is called that is no dropless.
fn stranger(id: u32) -> Option<String> {
    called(id).filter(|called| !is_dropless(called))
}

/// Whether a dropless has this number here.
pub fn is_one_of_ours(id: u32) -> bool {
    called(id).is_some_and(|called| is_dropless(&called))
}

fn called(id: u32) -> Option<String> {
    let called = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    Some(called.trim().to_owned())
}

fn is_dropless(called: &str) -> bool {
    called.starts_with("dropless")
}

fn key(index: u32) -> String {
    format!("dropless/xdp/{index}")
}

fn lock(who: &str, name: &str, index: u32) -> Result<Claim> {
    let key = key(index);
    let address = SocketAddr::from_abstract_name(&key)?;
    let begun = Instant::now();
    loop {
        match UnixListener::bind_addr(&address) {
            Ok(lock) => return Ok(Claim { _lock: lock }),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                return Err(error).with_context(|| format!("cannot lock the interface of {who}"));
            }
            Err(_) if begun.elapsed() <= PATIENCE => std::thread::sleep(LOOK),
            Err(_) => break,
        }
    }
    let holder = holder(&key);
    if let Some((id, called)) = holder.and_then(|id| Some((id, stranger(id)?))) {
        let what = format!("process {id} ({called}) holds the lock of {name}, and is no dropless");
        return Err(Problem::new(who, what, Fix::advice(format!("end it: kill {id}"))).into());
    }
    let by = holder.map_or_else(String::new, |id| format!(" (process {id})"));
    let fix = Fix::advice("wait for its end, or choose another interface");
    Err(Problem::new(who, format!("another dropless{by} has {name}"), fix).into())
}

/// The process that listens at this abstract name, where it is one that we can name.
fn holder(key: &str) -> Option<u32> {
    // Nobody takes calls there: where too many were made, the next one is not to wait.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let caller = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    connect(caller.as_raw_fd(), &UnixAddr::new_abstract(key.as_bytes()).ok()?).ok()?;
    let process = u32::try_from(getsockopt(&caller, PeerCredentials).ok()?.pid()).ok();
    in_proc(process.filter(|process| *process > 0)?)
}

/// Waits for a moment until the interface has no program, and removes one that nobody uses any more: its id.
fn clear(sys: &Sys, name: &str, index: u32) -> Option<u32> {
    let begun = Instant::now();
    while let Some(id) = host::xdp::program(sys, name) {
        if remove_orphan(sys, name, index, id).is_ok_and(|removed| removed) {
            return Some(id);
        }
        if begun.elapsed() > PATIENCE {
            return None;
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// Removes the program with this id from the interface if it is one that the driver of `AF_XDP` loads, no process has it
/// open, and no socket is bound to a queue of the interface: also not one of a process that we do not see.
fn remove_orphan(sys: &Sys, name: &str, index: u32, id: u32) -> io::Result<bool> {
    let program = XdpProgram::by_id(id)?;
    // A dispatcher has the programs that it calls in a folder of its own.
    let folder = PathBuf::from(format!("/sys/fs/bpf/xdp/dispatch-{index}-{id}"));
    let mut parts = Vec::new();
    if program.name() == DISPATCHER {
        for file in fs::read_dir(&folder)?.flatten() {
            if file.file_name().as_encoded_bytes().ends_with(b"-prog") {
                parts.push(XdpProgram::pinned(&file.path())?);
            }
        }
    }
    let mut called = if parts.is_empty() {
        std::slice::from_ref(&program).iter()
    } else {
        parts.iter()
    };
    if !called.all(|program| program.name() == OURS) {
        return Ok(false);
    }
    let mut all = parts.iter().chain([&program]);
    if all.any(|program| host::xdp::is_held(sys, program.id())) {
        return Ok(false);
    }
    let queues =
        host::interface::interface(sys, name).map_or(1, |found| found.rx_queues.max(found.tx_queues));
    for queue in 0..u32::from(queues) {
        if !dpdk::xdp_queue_is_free(index, queue)? {
            return Ok(false);
        }
    }
    host::xdp::detach(index, program.as_fd())?;
    if !parts.is_empty() {
        super::sweep::remove(&folder);
    }
    Ok(true)
}
