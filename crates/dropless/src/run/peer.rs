//! The other side of a socket: waited for when it is late, taken back when it returns.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dpdk::{Port, PortError};
use host::{PortKind, PortUri};
use nix::sys::socket::{UnixAddr, getpeername};

use crate::at_end::AtEnd;
use crate::run::signals::Interrupt;

/// How often a wait looks whether it is over.
pub const LOOK: Duration = Duration::from_millis(20);
/// A memif handshake may take this long before it is begun anew: its other end may be kept from its core, and DPDK's is
/// spoilt by a caller that leaves before its greeting.
const HANDSHAKE: Duration = Duration::from_secs(1);
/// After so many calls with several queues that a server took and ended it is called no oftener than that: it has fewer, and a
/// caller that comes and goes can end its process, or ours. One that starts turns callers away, too.
const TURNED_AWAY_MAX: u32 = 3;

/// How long the other side may take to come.
#[derive(Clone, Copy)]
pub enum Patience {
    /// An error after this long.
    Until(Duration),
    /// Said after this long; the wait goes on.
    Forever(Duration),
}

impl Patience {
    /// For ever; said after `wait_ns` where anything `is_to_be_said`.
    pub fn forever(wait_ns: u64, is_to_be_said: bool) -> Self {
        Self::Forever(if is_to_be_said {
            Duration::from_nanos(wait_ns)
        } else {
            Duration::MAX
        })
    }
}

/// Runs `start`, in which DPDK waits, deaf to signals, for the first client of a serving virtio-user port. When the
/// wait is to end, a client of our own comes and goes, so that `start` returns.
pub fn start_with<T>(
    ports: &[PortUri],
    patience: Patience,
    interrupt: &Interrupt,
    start: impl FnOnce() -> T,
) -> Result<T> {
    let served: Vec<(&PortUri, PathBuf)> = ports
        .iter()
        .filter_map(|port| match &port.kind {
            PortKind::VirtioUser { path, server: true } => Some((port, path.clone())),
            _ => None,
        })
        .collect();
    let Some((first, _)) = served.first() else {
        return Ok(start());
    };
    let (done, gave_up) = (AtomicBool::new(false), AtomicBool::new(false));
    let watch = || {
        let mut wait = Wait::new(first, patience);
        while !done.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            if interrupt.is_set() || wait.is_over() {
                gave_up.store(true, Ordering::Release);
                for (_, path) in &served {
                    drop(UnixStream::connect(path));
                }
            }
        }
    };
    let result = std::thread::scope(|scope| {
        let _done = AtEnd(|| done.store(true, Ordering::Release));
        scope.spawn(watch);
        start()
    });
    if gave_up.load(Ordering::Acquire) {
        for (_, path) in &served {
            // The driver leaves it where its start fails.
            let _ = std::fs::remove_file(path);
        }
        bail!("{}", nobody(first, interrupt));
    }
    Ok(result)
}

/// Starts a port. A memif client cannot start before its server: it is tried until the server is there.
pub fn start(port: &mut Port<'_>, uri: &PortUri, patience: Patience, interrupt: &Interrupt) -> Result<()> {
    let mut wait = Wait::new(uri, patience);
    loop {
        let error: PortError = match port.start() {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !uri.kind.traits().calls {
            return Err(error.into());
        }
        if interrupt.is_set() || wait.is_over() {
            bail!("{}", nobody(uri, interrupt));
        }
        std::thread::sleep(LOOK);
    }
}

/// Why a wait for the other side of `uri` ended, in one line.
fn nobody(uri: &PortUri, interrupt: &Interrupt) -> String {
    if interrupt.is_set() {
        return format!("interrupted while waiting for the other side of port {uri}");
    }
    let advice = advice(uri, "reflect");
    format!("the other side of port {uri} did not connect in time; {advice}; or give --wait more time")
}

/// What to do about an other side that is not there; `command` is the subcommand that it would run.
fn advice(uri: &PortUri, command: &str) -> String {
    let with_id = |id: u32| {
        if id == 0 {
            String::new()
        } else {
            format!(",id={id}")
        }
    };
    let port = match &uri.kind {
        PortKind::Memif { path, server, id, .. } => {
            let server = if *server { "" } else { ",server" };
            format!("memif:{}{server}{}", path.display(), with_id(*id))
        }
        PortKind::VirtioUser { path, server: true } => format!("vhost:{},client", path.display()),
        PortKind::VirtioUser { path, server: false } => format!("vhost:{}", path.display()),
        PortKind::Vhost { path, client: true } => format!("virtio-user:{},server", path.display()),
        PortKind::Vhost { path, client: false } => format!("virtio-user:{}", path.display()),
        _ => return "check cable and peer".into(),
    };
    format!("start it, for example: dropless {command} --port {port}")
}

/// Whether this process has a connection to the server of a memif.
fn is_called(uri: &PortUri) -> bool {
    let PortKind::Memif { path, .. } = &uri.kind else {
        return false;
    };
    let server = match path.as_os_str().as_bytes() {
        [b'@', name @ ..] => (name.to_vec(), true),
        _ => match std::path::absolute(path) {
            Ok(path) => (path.into_os_string().into_vec(), false),
            Err(_) => return false,
        },
    };
    let name_of = |other: UnixAddr| match (other.path(), other.as_abstract()) {
        (Some(path), _) => Some((path.as_os_str().as_bytes().to_vec(), false)),
        // What is no path is as long as somebody said, and may end with zeros.
        (None, Some(name)) => Some((
            name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
            true,
        )),
        (None, None) => None,
    };
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut others = numbers.filter_map(|number| getpeername::<UnixAddr>(number).ok());
    others.any(|other| name_of(other).is_some_and(|name| name == server))
}

/// What to do about a port that has no link after the wait.
pub fn hint(uri: &PortUri) -> String {
    if uri.kind.traits().calls_once {
        return "a zero-copy memif can call its server only once: start this again when the server runs, or leave zero-copy out".into();
    }
    let queues = if matches!(uri.kind, PortKind::Memif { server: false, .. }) {
        ", or, where it runs, ask for no more queues than it has"
    } else {
        ""
    };
    format!("{}, or give --wait more time{queues}", advice(uri, "reflect"))
}

/// A wait with its end, or its one remark.
pub struct Wait {
    uri: PortUri,
    begun: Instant,
    patience: Patience,
    said: bool,
}

impl Wait {
    /// Begins to wait for the other side of `uri`.
    pub fn new(uri: &PortUri, patience: Patience) -> Self {
        Self {
            uri: uri.clone(),
            begun: Instant::now(),
            patience,
            said: false,
        }
    }

    /// Whether the patience is at its end; prints the remark when it is due.
    fn is_over(&mut self) -> bool {
        if let Some(remark) = self.remark() {
            let _ = report::out::print_stderr(&format!("{remark}\n"));
        }
        matches!(self.patience, Patience::Until(limit) if self.begun.elapsed() >= limit)
    }

    /// The line that says once, when it is due, that nobody has come.
    pub fn remark(&mut self) -> Option<String> {
        let is_due = matches!(self.patience, Patience::Forever(after) if self.begun.elapsed() >= after);
        (is_due && !std::mem::replace(&mut self.said, true)).then(|| {
            let (uri, advice) = (&self.uri, advice(&self.uri, "send"));
            format!("still waiting for the other side of port {uri}; {advice}")
        })
    }
}

/// What the control thread remembers of a port's link.
#[derive(Debug)]
pub struct Tending {
    up: bool,
    /// How often the link went away.
    pub losses: u32,
    /// What the interface counts of them, at the last look.
    pub carrier_losses: Option<u64>,
    /// Whether the link was away and came back since the look before the last.
    pub flapped: bool,
    tried: Instant,
    /// Calls in a row that a server took and ended.
    turned_away: u32,
}

impl Default for Tending {
    /// From here on.
    fn default() -> Self {
        Self {
            up: false,
            losses: 0,
            carrier_losses: None,
            flapped: false,
            tried: Instant::now(),
            turned_away: 0,
        }
    }
}

impl Tending {
    /// Whether the link is not there.
    pub fn is_down(&self) -> bool {
        !self.up
    }

    /// Notes the link as it is, and lets a memif client without one call its server again, which the driver does only
    /// when it is started. Its queues give and take nothing meanwhile.
    pub fn look(
        &mut self,
        up: bool,
        carrier_losses: Option<u64>,
        port: Option<&mut Port<'_>>,
        uri: &PortUri,
    ) {
        let has_gone = self.up && !up;
        self.flapped = self.up && up && carrier_losses > self.carrier_losses;
        self.losses += u32::from(has_gone || self.flapped);
        (self.up, self.carrier_losses) = (up, carrier_losses);
        let Some(port) = port else { return };
        let traits = uri.kind.traits();
        let calls_again = traits.calls && !traits.calls_once;
        let is_taken = calls_again && port.is_started();
        let config = port.granted();
        let pause = pause(
            is_taken,
            has_gone,
            config.rx_queues.max(config.tx_queues),
            self.turned_away,
            || is_called(uri),
        );
        if !up && calls_again && self.tried.elapsed() >= pause {
            self.turned_away = if is_taken && !has_gone {
                self.turned_away.saturating_add(1)
            } else {
                0
            };
            let _ = port.stop();
            // Fails as long as nobody serves.
            let _ = port.start();
            self.tried = Instant::now();
        } else if up {
            (self.tried, self.turned_away) = (Instant::now(), 0);
        }
    }
}

/// How long after a call without a link the next one comes, where a server took it (`is_taken`) with so many queues.
fn pause(
    is_taken: bool,
    has_gone: bool,
    queues: u16,
    turned_away: u32,
    is_called: impl FnOnce() -> bool,
) -> Duration {
    match is_taken {
        // Whoever went is called at once, as it may be back already.
        true if has_gone => Duration::ZERO,
        true if queues > 1 && turned_away >= TURNED_AWAY_MAX => HANDSHAKE,
        // Not turned away, as a server that starts does it.
        true if is_called() => HANDSHAKE,
        _ => LOOK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_turns_several_queues_away_is_called_seldom() {
        let pause = |is_taken, queues, turned_away| pause(is_taken, false, queues, turned_away, || false);
        assert_eq!(pause(true, 2, TURNED_AWAY_MAX - 1), LOOK);
        assert_eq!(pause(true, 2, TURNED_AWAY_MAX), HANDSHAKE);
        assert_eq!(pause(true, 1, 100), LOOK);
        assert_eq!(pause(false, 2, 100), LOOK, "nobody serves");
    }
}
