//! `memif:`, `vhost:` and `virtio-user:`: ports at the end of a socket.

use super::look::{Look, Memory, Prepared, as_root, parent};
use crate::problem::quoted;
use crate::{Fix, PortKind, Problem, Sys, Warning};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use procfs_core::FromRead;
use procfs_core::net::{UnixNetEntries, UnixState};
use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// memif: packets of messages on a sequenced socket.
pub fn memif(look: &Look<'_>, path: &Path, server: bool, zero_copy: bool) -> Result<Prepared, Problem> {
    look.own_driver()?;
    let mut prepared = memif_socket(look, path, server)?;
    if zero_copy && server {
        let text = "zero-copy works at the client's end only: the memif driver copies where it serves";
        prepared.notes.push(Warning::new("zero-copy-server", text));
    } else if zero_copy {
        // The peer maps the memory by its file, which ordinary pages do not have.
        prepared.memory = Memory::HugePages;
    }
    Ok(prepared)
}

fn memif_socket(look: &Look<'_>, path: &Path, server: bool) -> Result<Prepared, Problem> {
    if path.to_string_lossy().starts_with('@') {
        return Ok(Prepared::of(look.uri));
    }
    if server {
        serve(look, path, SockType::SeqPacket)
    } else {
        wait_for(look, path, "memif:PATH,server")
    }
}

/// vhost-user, the host's end.
pub fn vhost(look: &Look<'_>, path: &Path, client: bool) -> Result<Prepared, Problem> {
    look.own_driver()?;
    if client {
        wait_for(look, path, "virtio-user:PATH,server")
    } else {
        serve(look, path, SockType::Stream)
    }
}

/// vhost-user, the guest's end. As a client it does not wait: DPDK connects when it starts.
pub fn virtio_user(look: &Look<'_>, path: &Path, server: bool) -> Result<Prepared, Problem> {
    look.own_driver()?;
    if server {
        return serve(look, path, SockType::Stream);
    }
    let why = match state(look, path, SockType::Stream) {
        State::Served | State::Device => return Ok(Prepared::of(look.uri)),
        State::Free => "the socket does not exist",
        State::Stale => "its server has ended",
        other => return Err(unusable(look, path, &other)),
    };
    let shown = path.display();
    let advice = format!("start the other end first, for example: dropless reflect --port vhost:{shown}");
    let found = format!("no process serves {shown}: {why}");
    Err(look.problem(found, Fix::advice(advice)))
}

/// To serve a socket, its path must be free, or what a dead server left.
fn serve(look: &Look<'_>, path: &Path, sort: SockType) -> Result<Prepared, Problem> {
    look.writable_parent(path)?;
    let shown = path.display();
    match state(look, path, sort) {
        State::Free => Ok(Prepared::of(look.uri)),
        State::Stale => {
            let text =
                format!("{shown} was left behind by a server that has ended: opening the port removes it");
            Ok(Prepared {
                abandoned: Some(path.to_owned()),
                ..Prepared::of(look.uri).with_notes(vec![Warning::new("stale-socket", text)])
            })
        }
        other => Err(unusable(look, path, &other)),
    }
}

impl Prepared {
    /// Removes what a dead server has left where this port is about to open a socket, if it still is that.
    pub fn make_way(&self, sys: &Sys) -> Result<(), Problem> {
        let Some(path) = &self.abandoned else {
            return Ok(());
        };
        let look = Look::new(&self.uri, sys);
        let sort = match self.uri.kind {
            PortKind::Memif { .. } => SockType::SeqPacket,
            _ => SockType::Stream,
        };
        let shown = path.display();
        match state(&look, path, sort) {
            State::Free => Ok(()),
            State::Stale => fs::remove_file(look.path(path)).map_err(|error| {
                let found = format!(
                    "{shown} was left behind by a server that has ended and cannot be removed ({error})"
                );
                look.problem(found, Fix::one(format!("sudo rm {}", quoted(&shown))))
            }),
            other => Err(unusable(&look, path, &other)),
        }
    }
}

/// A client may start before its server; it only needs a place where the socket can appear.
fn wait_for(look: &Look<'_>, path: &Path, server: &str) -> Result<Prepared, Problem> {
    let prepared = Prepared::of(look.uri);
    match fs::metadata(look.path(path)) {
        Ok(file) if file.file_type().is_socket() => Ok(prepared),
        Ok(_) => Err(unusable(look, path, &State::NoSocket)),
        Err(_) => {
            if !look.path(parent(path)).is_dir() {
                look.writable_parent(path)?;
            }
            let shown = path.display().to_string();
            let server = server.replace("PATH", &shown);
            let text = format!(
                "no process serves {shown} yet: the link comes up when {server} or another server starts"
            );
            Ok(prepared.with_notes(vec![Warning::new("no-server", text)]))
        }
    }
}

/// What is at a socket's path.
enum State {
    Free,
    Stale,
    Served,
    Forbidden,
    NoSocket,
    Device,
}

fn state(look: &Look<'_>, path: &Path, sort: SockType) -> State {
    let real = look.path(path);
    match fs::metadata(&real) {
        Err(_) => return State::Free,
        Ok(file) if file.file_type().is_char_device() => return State::Device,
        Ok(file) if !file.file_type().is_socket() => return State::NoSocket,
        Ok(_) => {}
    }
    // The kernel's list spares the server a connection that says nothing; it shows only our own namespace.
    if listening(look, path) {
        return State::Served;
    }
    match try_connect(&real, sort) {
        Err(Errno::ECONNREFUSED) => State::Stale,
        Err(Errno::ENOENT) => State::Free,
        Err(Errno::EACCES | Errno::EPERM) => State::Forbidden,
        // Connected, or too busy to answer (EAGAIN), or of another type (EPROTOTYPE): somebody is there.
        _ => State::Served,
    }
}

fn listening(look: &Look<'_>, path: &Path) -> bool {
    let table = UnixNetEntries::from_file(look.sys.path("/proc/net/unix"))
        .map(|table| table.0)
        .unwrap_or_default();
    // A server may have been given the whole path.
    let whole = std::path::absolute(path).ok();
    let names = [Some(path), whole.as_deref()];
    table.iter().any(|entry| {
        entry.state == UnixState::UNCONNECTED
            && entry.path.is_some()
            && names.contains(&entry.path.as_deref())
    })
}

fn try_connect(path: &Path, sort: SockType) -> nix::Result<()> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let client = socket(AddressFamily::Unix, sort, flags, None)?;
    connect(client.as_raw_fd(), &UnixAddr::new(path)?)?;
    if sort == SockType::SeqPacket {
        // DPDK's memif server is spoilt by a caller that leaves before its greeting: it is heard out.
        let mut client = UnixStream::from(client);
        let heard = client
            .set_nonblocking(false)
            .and_then(|()| client.set_read_timeout(Some(GREETING)))
            .and_then(|()| client.read(&mut [0; 256]));
        // Whatever came, somebody is there.
        let _ = heard;
    }
    Ok(())
}

/// How long a living server may take to greet.
const GREETING: Duration = Duration::from_secs(1);

fn unusable(look: &Look<'_>, path: &Path, state: &State) -> Problem {
    let shown = path.display();
    match state {
        State::Forbidden => look.problem(format!("{shown} may not be opened by this user"), as_root()),
        State::NoSocket | State::Device => {
            let fix = Fix::advice("choose another path");
            look.problem(format!("{shown} exists and is not a socket"), fix)
        }
        _ => {
            let path = quoted(&shown);
            let fix = format!("choose another path, or stop the process that this shows: ss -xlp src {path}");
            look.problem(
                format!("another process already serves {shown}"),
                Fix::advice(fix),
            )
        }
    }
}
