//! A flood that begins, and `dropless guard`: how much of it passes until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde::Serialize;

use crate::frames::{Chance, FRAMES, Frame};
use crate::machine::Machine;
use crate::support::Lab;
use crate::wire::{Ends, Wire, send_steadily};

const STARTING: Duration = Duration::from_secs(60);
const LASTS: Duration = Duration::from_secs(3);
/// What answers of time servers come from.
const NTP: u16 = 123;
/// Of so many packets one is not of the flood.
const OURS: usize = 64;

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Guarded {
    /// Packets a second of the flood.
    pub rate: f64,
    /// Those that passed, at that rate.
    pub seconds: f64,
    /// As guard itself says it.
    pub told_s: Option<f64>,
}

/// Sends answers of time servers that nobody asked, from invented sources.
pub fn measure(lab: &Lab, machine: &Machine) -> Result<Guarded, String> {
    let wire = Wire::new(lab, machine.second, machine.worker)?;
    let arguments = [
        "guard",
        "--dev",
        "far0",
        "--json",
        "--threshold",
        "amplification=5kpps",
    ];
    let mut running = lab.dropless(&arguments).within(&wire.far).spawn();
    running.wait_for("guarding far0", STARTING);
    // It looks ten times a second, and is to have seen that nothing comes.
    std::thread::sleep(LASTS / 3);
    let mut chance = Chance::new(0xF100D);
    // Blocking everything is nothing that guard does: one of so many packets is somebody's.
    let mut frame = |at: usize| Frame {
        source_port: if at % OURS == 0 { 5000 } else { NTP },
        ..Frame::from(1 << 24 | chance.below(190 << 24))
    };
    let frames: Vec<Frame> = (0..FRAMES).map(&mut frame).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let _ends = Ends(Arc::clone(&is_over));
    let (near, to, over, core) = (
        wire.near.name().to_owned(),
        wire.mac(),
        Arc::clone(&is_over),
        machine.second,
    );
    let before = wire.received_and_dropped();
    let begun = Instant::now();
    let sender = std::thread::spawn(move || send_steadily(&near, core, (&frames, to), &over));
    std::thread::sleep(LASTS);
    is_over.store(true, Ordering::Relaxed);
    let sent = sender.join().map_err(|_| "the sender died".to_owned())??;
    let rate = sent as f64 / begun.elapsed().as_secs_f64();
    let after = wire.received_and_dropped();
    running.signal(Signal::SIGINT);
    let ended = running.wait(STARTING);
    let dropped = after.1 - before.1;
    if dropped == 0 {
        return Err(format!("nothing was dropped: {ended}"));
    }
    let received = after.0 - before.0;
    let flood = received - received / OURS as u64;
    let rate = rate * (OURS - 1) as f64 / OURS as f64;
    Ok(Guarded {
        rate,
        seconds: flood.saturating_sub(dropped) as f64 / rate,
        told_s: ended.json()["blocks"][0]["stopped_after_s"].as_f64(),
    })
}
