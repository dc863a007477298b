//! The counters of the drivers, asked for now and then.

use std::time::{Duration, Instant};

use measure::PortSummary;
use measure::place::{RX_MISSED, of_reflector};

use crate::run::open::{OpenPort, losses};

/// Each time may cost a call into the kernel, or reads over PCI.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// What they said last.
#[derive(Default)]
pub struct Drivers {
    ports: Vec<PortSummary>,
    /// What the near ends of in-process reflectors missed.
    far_missed: u64,
    asked: Option<Instant>,
}

impl Drivers {
    /// Asks again, if it is time to.
    pub fn ask(&mut self, ports: &[OpenPort<'_>]) {
        let is_time = self.asked.is_none_or(|at| at.elapsed() >= ASK_EVERY);
        if is_time {
            self.ports = ports.iter().map(OpenPort::summary).collect();
            self.far_missed = ports.iter().map(OpenPort::far_missed).sum();
            self.asked = Some(Instant::now());
        }
    }

    /// What each place of theirs has lost by then.
    pub fn places(&self) -> impl Iterator<Item = (String, u64)> {
        let lost = self.ports.iter().flat_map(losses);
        let lost = lost.map(|(name, count)| (name.to_owned(), count));
        lost.chain([(of_reflector(RX_MISSED), self.far_missed)])
    }

    /// The ports as they were then.
    pub fn ports(&self) -> &[PortSummary] {
        &self.ports
    }
}
