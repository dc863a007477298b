//! The ring of a running capture, as one more of its consumers.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use capture::input::{Interface, Packet, Reader};
use capture::ring::share::Joined;
use report::Console;
use report::number::{count, counted};

use super::reading::Reading;

/// How this calls itself there.
const NAME: &str = "dropless read";
/// Between two looks where nothing came.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes packets until the capture ends, or nothing more is wanted. Returns how many were overwritten before.
pub fn read(door: &Path, is_lossless: bool, reading: &mut Reading) -> Result<u64> {
    let mut joined = Joined::new(door, NAME, is_lossless)?;
    let interfaces = interfaces(joined.consumer.preamble())?;
    let before = reading.seen();
    let taken = loop {
        let is_last = joined.consumer.is_ended() || joined.is_alone();
        let taken = take(&mut joined, &interfaces, reading);
        reading.pause()?;
        if taken.is_err() || is_last || reading.is_over() {
            break taken;
        }
        std::thread::sleep(PAUSE);
    };
    let (_, lost) = joined.consumer.counts();
    let name = report::input::clean(&door.display().to_string());
    if !reading.is_over() && joined.has_died() {
        reading.tell_died(&name)?;
    }
    Console::json_or_text(true).human(&format!(
        "{} read from {name}, {} overwritten before\n",
        counted(reading.seen() - before, "packet"),
        count(lost)
    ))?;
    taken.map(|()| lost)
}

/// Takes what is there now.
fn take(joined: &mut Joined, interfaces: &[Interface], reading: &mut Reading) -> Result<()> {
    while !reading.is_over() {
        let Some(packets) = joined.consumer.packets()? else {
            break;
        };
        for packet in packets.iter() {
            let told = Packet::of_block(packet?.block, interfaces);
            let told = told.map_err(|what| anyhow!("the ring is damaged: {what}"))?;
            reading.take(&told)?;
            if reading.is_over() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The interfaces of a ring: it begins as a file does.
fn interfaces(preamble: Vec<u8>) -> Result<Vec<Interface>> {
    let mut reader = Reader::new("the ring's head".into(), Cursor::new(preamble))?;
    while reader.next_packet()?.is_some() {}
    Ok(reader.interfaces().to_vec())
}
