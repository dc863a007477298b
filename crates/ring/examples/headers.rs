//! Joins a ring by its name and prints once a second what came: packets, bytes, and frames by their `EtherType`.
//!
//! `cargo run --example headers NAME [lossy]`, beside `dropless capture --port URI --ring NAME`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ring::share::{Joined, door_at};

/// What came since the last line.
#[derive(Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    types: BTreeMap<u16, u64>,
}

impl Counts {
    fn see(&mut self, frame: &[u8]) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        if let Some(ether_type) = frame.get(12..14).and_then(|bytes| bytes.first_chunk()) {
            *self.types.entry(u16::from_be_bytes(*ether_type)).or_default() += 1;
        }
    }

    fn print(&self, lost: u64) {
        print!("{} packets, {} bytes, {lost} lost:", self.packets, self.bytes);
        for (ether_type, count) in &self.types {
            print!(" {ether_type:#06x} {count}");
        }
        println!();
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headers: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: headers NAME [lossy]")?;
    let is_lossless = arguments.next().is_none_or(|kind| kind != "lossy");
    let mut joined = Joined::new(&door_at(Path::new(&name)), "headers", is_lossless)?;
    let mut counts = Counts::default();
    let mut printed = Instant::now();
    loop {
        // Asked before the ring is: what is not there by then never comes.
        let is_over = joined.consumer.is_ended() || joined.is_alone();
        while let Some(packets) = joined.consumer.packets()? {
            for packet in packets.iter() {
                counts.see(packet?.data);
            }
        }
        if is_over || printed.elapsed() >= Duration::from_secs(1) {
            std::mem::take(&mut counts).print(joined.consumer.counts().1);
            printed = Instant::now();
        }
        if is_over {
            return Ok(());
        }
        sleep(Duration::from_millis(1));
    }
}
