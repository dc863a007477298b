//! The counters of the drivers, asked for now and then.

use std::time::{Duration, Instant};

use measure::PortSummary;

use crate::commands::reflect::result::port_summary;
use crate::run::open::OpenPort;

/// Each time may cost a call into the kernel, or reads over PCI.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// What they said last.
#[derive(Default)]
pub struct Drivers {
    ports: Vec<PortSummary>,
    asked: Option<Instant>,
}

impl Drivers {
    /// Asks again, if it is time to; whether it was.
    pub fn ask(&mut self, ports: &[OpenPort<'_>]) -> bool {
        let is_time = self.asked.is_none_or(|at| at.elapsed() >= ASK_EVERY);
        if is_time {
            self.ports = ports.iter().map(port_summary).collect();
            self.asked = Some(Instant::now());
        }
        is_time
    }

    /// The ports as they were then.
    pub fn ports(&self) -> &[PortSummary] {
        &self.ports
    }
}
