//! Is the cost per packet flat? The same work with more and more flows, or streams, in alternating rounds.

use serde::Serialize;

use crate::attempt::attempt;
use crate::machine::{stolen, stolen_share};
use crate::ours;
use crate::rounds::{Bench, Measured, rate, rate_per_cpu_second};

/// One series.
pub struct Flat {
    /// Its name on the command line.
    pub name: &'static str,
    /// The work.
    pub work: &'static str,
    /// The port, and what else it takes.
    port: &'static [&'static str],
    /// What counts up.
    of: Of,
    /// How many, each time.
    pub counts: &'static [u32],
}

/// What there is more and more of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Flows,
    /// At full rate: they take turns.
    Streams,
    /// With a rate each: every packet is of another stream than the one before.
    RatedStreams,
}

/// What all streams with a rate come to, packets a second: more than any core makes.
const RATES: u32 = 400_000_000;
const NULL: &[&str] = &["--port", "null", "--tx-only"];
const RING: &[&str] = &["--port", "ring,direct"];
const FLOWS: &[u32] = &[1, 1000, 1_000_000];
const STREAMS: &[u32] = &[1, 10, 100, 1000];

/// All series.
pub const FLATS: [Flat; 6] = [
    Flat {
        name: "flat-null-flows",
        work: "send into null, flows",
        port: NULL,
        of: Of::Flows,
        counts: FLOWS,
    },
    Flat {
        name: "flat-null-streams",
        work: "send into null, streams",
        port: NULL,
        of: Of::Streams,
        counts: STREAMS,
    },
    Flat {
        name: "flat-null-rated",
        work: "send into null, streams with a rate each",
        port: NULL,
        of: Of::RatedStreams,
        counts: STREAMS,
    },
    Flat {
        name: "flat-ring-flows",
        work: "send and verify over ring, flows",
        port: RING,
        of: Of::Flows,
        counts: FLOWS,
    },
    Flat {
        name: "flat-ring-streams",
        work: "send and verify over ring, streams",
        port: RING,
        of: Of::Streams,
        counts: STREAMS,
    },
    Flat {
        name: "flat-ring-rated",
        work: "send and verify over ring, streams with a rate each",
        port: RING,
        of: Of::RatedStreams,
        counts: STREAMS,
    },
];

/// All rounds of one series.
#[derive(Serialize)]
pub struct FlatRounds {
    /// Which series.
    #[serde(skip)]
    pub flat: &'static Flat,
    /// For each count, round by round.
    pub measured: Vec<Vec<Measured>>,
    /// Share of all processor time that the hypervisor gave to others meanwhile.
    pub stolen_share: f64,
    /// Why it could not be measured.
    pub failed: Option<String>,
}

/// One line of a series.
pub struct Cost {
    /// Flows or streams.
    pub count: u32,
    /// Nanoseconds a packet by the wall clock.
    pub ns: f64,
    /// Beside the first line's.
    pub ratio: f64,
    /// Nanoseconds a packet of the time that the worker had.
    pub cpu_ns: Option<f64>,
    /// Beside the first line's.
    pub cpu_ratio: Option<f64>,
}

/// Measures a series; a failure ends it and not the run.
pub fn measure(bench: &Bench, flat: &'static Flat) -> FlatRounds {
    let mut all = FlatRounds {
        flat,
        measured: vec![Vec::new(); flat.counts.len()],
        stolen_share: 0.0,
        failed: None,
    };
    let before = stolen();
    for round in 0..bench.args.rounds {
        if let Err(reason) = all.add(bench, round) {
            all.failed = Some(reason);
            break;
        }
    }
    all.stolen_share = stolen_share(before);
    all
}

impl FlatRounds {
    fn add(&mut self, bench: &Bench, round: u32) -> Result<(), String> {
        let last = self.flat.counts.len() - 1;
        for place in 0..=last {
            if bench.machine.interrupted() {
                return Err("interrupted".into());
            }
            // What drifts in the machine falls on the first as on the last.
            let place = if round % 2 == 1 { last - place } else { place };
            let arguments = self.flat.arguments(self.flat.counts[place], &bench.worker());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let send = if self.flat.of == Of::RatedStreams {
                ours::send_at
            } else {
                ours::send
            };
            self.measured[place].push(attempt(&[], |lab| send(bench, &lab, &arguments))?);
        }
        Ok(())
    }

    /// The cost per packet, line by line.
    pub fn costs(&self) -> Vec<Cost> {
        let ns = |place: usize| rate(&self.measured[place]).map(|rate| 1e9 / rate);
        let cpu_ns = |place: usize| rate_per_cpu_second(&self.measured[place]).map(|rate| 1e9 / rate);
        let cost = |(place, &count): (usize, &u32)| {
            let cpu_ratio = cpu_ns(place).zip(cpu_ns(0)).map(|(this, first)| this / first);
            Some(Cost {
                count,
                ns: ns(place)?,
                ratio: ns(place)? / ns(0)?,
                cpu_ns: cpu_ns(place),
                cpu_ratio,
            })
        };
        self.flat.counts.iter().enumerate().filter_map(cost).collect()
    }
}

impl Flat {
    fn arguments(&self, count: u32, core: &str) -> Vec<String> {
        let mut arguments: Vec<String> = self.port.iter().map(ToString::to_string).collect();
        arguments.extend(["--cores".into(), core.into()]);
        if self.of == Of::Flows {
            arguments.extend(["--flows".into(), count.to_string()]);
            return arguments;
        }
        let rate = match self.of {
            Of::RatedStreams => format!(",rate={}pps", RATES / count),
            _ => String::new(),
        };
        for stream in 0..count {
            arguments.extend(["--stream".into(), format!("name=s{stream}{rate}")]);
        }
        arguments
    }
}
