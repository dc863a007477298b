//! A flood with legitimate packets in it, and rules that tell them apart: all of these must arrive.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Serialize;

use crate::frames::{Chance, FRAMES, Frame};
use crate::machine::Machine;
use crate::support::Lab;
use crate::wire::{Flood, Wire};

const STARTING: Duration = Duration::from_secs(60);
/// Of so many packets one is legitimate.
const LEGITIMATE: usize = 8;
/// From one packet to the next: two million a second, of which the wire's ring of 256 holds what comes in an eighth of a
/// millisecond. With more of them it would overflow before the filter sees anything.
const EVERY: Duration = Duration::from_nanos(500);
/// What answers of time servers come from: they are the flood.
const NTP: u16 = 123;

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Flooded {
    /// As the counters of the wire, the interface and IP have it.
    pub flood: Flood,
    /// Legitimate packets among them.
    pub legitimate: u64,
}

impl Flooded {
    /// Legitimate packets that did not arrive, wherever they went: also those for which the wire had no room.
    pub fn lost(&self) -> u64 {
        self.legitimate.saturating_sub(self.flood.delivered)
    }
}

/// Sends them from invented sources while the rules are in force.
pub fn measure(lab: &Lab, machine: &Machine, lasts: Duration) -> Result<Flooded, String> {
    let wire = Wire::new(lab, machine.second, machine.worker)?;
    let rules = lab.path("flood.rules").display().to_string();
    fs::write(&rules, format!("deny udp sport {NTP}\n")).map_err(|error| format!("{rules}: {error}"))?;
    let arguments = [
        "filter", "run", &rules, "--dev", "far0", "--mode", "native", "--json",
    ];
    let mut running = lab.dropless(&arguments).within(&wire.far).spawn();
    running.wait_for("native mode", STARTING);
    let mut chance = Chance::new(0xF100D);
    let mut frame = |at: usize| Frame {
        source_port: if at % LEGITIMATE == 0 { 5000 } else { NTP },
        // IP takes nothing from 127.0.0.0/8 off a wire.
        ..Frame::from((1 << 24) + chance.below(126 << 24))
    };
    let frames: Vec<Frame> = (0..FRAMES).map(&mut frame).collect();
    let flood = wire.paced(&frames, wire.mac(), (lasts, EVERY))?;
    running.signal(Signal::SIGINT);
    let ended = running.wait(STARTING);
    // The filter's own account is to be that of the interface.
    let [allowed, denied] = ["allowed", "denied"].map(|name| ended.number(&format!("judged.{name}")));
    if (allowed + denied, denied) != (flood.handled, flood.dropped_by_xdp) {
        return Err(format!(
            "{allowed} allowed and {denied} denied are not the interface's: {flood:?}"
        ));
    }
    Ok(Flooded {
        flood,
        // The list begins anew with each sender, and holds whole turns.
        legitimate: flood.offered / LEGITIMATE as u64,
    })
}
