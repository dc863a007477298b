//! Ports together: their links are waited for before a run, and what they still have to send is at its end.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use host::{Medium, PortUri};

use super::open::OpenPort;
use super::peer;
use super::signals::Interrupt;
use super::waiting::Waiting;

/// Waits until every link is up and takes frames; says which one does not.
pub fn wait_for_links(ports: &mut [OpenPort<'_>], limit: Duration, interrupt: &Interrupt) -> Result<()> {
    let begun = Instant::now();
    for open in ports {
        // A memif server turns callers away while it starts: they must call again.
        while !open.tend().up || !open.takes_frames() {
            if interrupt.is_set() {
                bail!("interrupted while waiting for the link of port {}", open.uri);
            }
            if begun.elapsed() >= limit {
                let (what, fix) = if open.link().up {
                    let fix = "bring the interface up in the guest, or give --wait more time";
                    ("a guest that posts no receive buffers", fix.to_owned())
                } else {
                    ("no link", link_hint(&open.uri))
                };
                bail!(
                    "port {} has {what} after {:.1} s; fix: {fix}",
                    open.uri,
                    limit.as_secs_f64()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// How long ports may take to send what their drivers took, at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// Waits until all that the drivers took is out, or does not become so in time: then it is counted as not sent. Whether any was
/// waited for.
pub fn drain(ports: &mut [OpenPort<'_>]) -> bool {
    let mut waiting = Waiting::begin();
    let mut has_waited = false;
    loop {
        let with_rest = ports.iter().filter(|open| open.send_the_rest());
        if with_rest.count() == 0 || waiting.look(true) >= DRAIN {
            break;
        }
        has_waited = true;
        std::thread::sleep(Duration::from_millis(1));
    }
    for open in ports {
        open.give_the_rest_up();
        open.kernel.expire();
    }
    has_waited
}

fn link_hint(uri: &PortUri) -> String {
    if uri.kind.traits().medium == Medium::Peer {
        peer::hint(uri)
    } else {
        "check cable and peer, or give --wait more time".into()
    }
}
