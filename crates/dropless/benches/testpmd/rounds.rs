//! Alternating rounds: both programs in each, the order swapped from one to the next, and what came of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::args::Args;
use crate::attempt::attempt;
use crate::machine::{Machine, stolen, stolen_share};
use crate::row::Row;
use crate::statistics::median;

/// What every measurement has to know.
pub struct Bench<'a> {
    /// The command line.
    pub args: &'a Args,
    /// The machine.
    pub machine: &'a Machine,
    tsc_hz: f64,
}

impl<'a> Bench<'a> {
    /// Measures as `args` say, on `machine`.
    pub fn new(args: &'a Args, machine: &'a Machine) -> Self {
        let tsc_hz = dpdk::calibrate(Duration::from_millis(20)).hz;
        Self {
            args,
            machine,
            tsc_hz,
        }
    }

    /// Nanoseconds that a cache line takes from the worker's core to the second one's and back, at the quickest of 500
    /// times: cores that share a cache take a fraction of what others do.
    fn line_there_and_back_ns(&self) -> Option<f64> {
        let (worker, second) = (self.machine.worker, self.machine.second);
        if worker == second {
            return None;
        }
        let (low, high) = dpdk::tsc_offset_bounds(worker, second, 500).ok()?;
        Some((high - low) as f64 / self.tsc_hz * 1e9)
    }

    /// Length of one measurement.
    pub fn seconds(&self) -> Duration {
        Duration::from_secs_f64(self.args.seconds)
    }

    /// The same as dropless reads it.
    pub fn duration(&self) -> String {
        format!("{}ms", self.seconds().as_millis())
    }

    /// Core of the worker.
    pub fn worker(&self) -> String {
        self.machine.worker.to_string()
    }

    /// Core of the second worker.
    pub fn second(&self) -> String {
        self.machine.second.to_string()
    }

    /// Whether both programs keep their packets on hugepages.
    pub fn huge(&self) -> bool {
        self.machine.huge
    }
}

/// What one program did once.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// Packets a second by the wall clock: returned ones where they come back.
    pub rate_pps: f64,
    /// Mean share of a core that a worker got.
    pub share: Option<f64>,
    /// Packets sent, where they come back.
    pub sent: Option<u64>,
    /// Of these, lost.
    pub lost: Option<u64>,
    /// Where, by name.
    pub lost_at: BTreeMap<String, u64>,
    /// Why dropless itself says that this is no measurement.
    pub invalid: Option<String>,
}

impl Measured {
    /// Packets for each second that a worker really had its core.
    pub fn rate_per_cpu_second(&self) -> Option<f64> {
        self.share
            .filter(|share| *share > 0.0)
            .map(|share| self.rate_pps / share)
    }
}

/// All rounds of one row.
#[derive(Serialize)]
pub struct Rounds {
    /// Which row.
    #[serde(skip)]
    pub row: &'static Row,
    /// The ratio to reach; none where the figure is only reported.
    pub target: Option<f64>,
    /// dropless, round by round.
    pub ours: Vec<Measured>,
    /// testpmd, or the build before, round by round.
    pub theirs: Vec<Measured>,
    /// Share of all processor time that the hypervisor gave to others meanwhile.
    pub stolen_share: f64,
    /// Nanoseconds of a cache line between the two cores and back, before and after each measurement of dropless.
    pub line_ns: Vec<f64>,
    /// Why it could not be measured.
    pub failed: Option<String>,
}

/// Measures a row; a failure ends the row and not the run.
pub fn of_row(bench: &Bench, row: &'static Row) -> Rounds {
    let mut rounds = Rounds {
        row,
        target: row.target.filter(|_| bench.args.before.is_none()),
        ours: Vec::new(),
        theirs: Vec::new(),
        stolen_share: 0.0,
        line_ns: Vec::new(),
        failed: None,
    };
    let before = stolen();
    for round in 0..bench.args.rounds {
        if bench.machine.interrupted() {
            rounds.failed.get_or_insert("interrupted".into());
        }
        if rounds.failed.is_some() {
            break;
        }
        if let Err(reason) = rounds.add(bench, round) {
            rounds.failed = Some(reason);
        }
    }
    rounds.stolen_share = stolen_share(before);
    rounds
}

impl Rounds {
    fn add(&mut self, bench: &Bench, round: u32) -> Result<(), String> {
        let row = self.row;
        let mut line_ns = Vec::new();
        let mut ours = || {
            line_ns.extend(bench.line_there_and_back_ns());
            let ours = attempt(row.needs, |lab| (row.ours)(bench, &lab));
            line_ns.extend(bench.line_there_and_back_ns());
            ours
        };
        let theirs = || match (&bench.args.before, row.theirs) {
            (Some(before), _) => {
                attempt(row.needs, |lab| (row.ours)(bench, &lab.with_program(before))).map(Some)
            }
            (None, Some(side)) => attempt(row.needs, |lab| side(bench, &lab)).map(Some),
            (None, None) => Ok(None),
        };
        let (ours, theirs) = if round % 2 == 1 {
            let theirs = theirs()?;
            (ours()?, theirs)
        } else {
            (ours()?, theirs()?)
        };
        self.line_ns.extend(line_ns);
        self.ours.push(ours);
        self.theirs.extend(theirs);
        Ok(())
    }

    /// The ratio of the two medians by the wall clock: what is judged.
    pub fn ratio(&self) -> Option<f64> {
        Some(rate(&self.ours)? / rate(&self.theirs)?)
    }

    /// The ratio of the two medians by the time that the workers had.
    pub fn ratio_per_cpu_second(&self) -> Option<f64> {
        Some(rate_per_cpu_second(&self.ours)? / rate_per_cpu_second(&self.theirs)?)
    }

    /// The ratio of each round.
    pub fn ratios(&self) -> Vec<f64> {
        self.ours
            .iter()
            .zip(&self.theirs)
            .map(|(ours, theirs)| ours.rate_pps / theirs.rate_pps)
            .collect()
    }

    /// Packets that dropless lost, of all that it sent.
    pub fn lost(&self) -> Option<(u64, u64)> {
        total(&self.ours)
    }

    /// Where dropless lost them, by name, in all rounds.
    pub fn lost_at(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        for (name, count) in self.ours.iter().flat_map(|measured| &measured.lost_at) {
            *all.entry(name.as_str()).or_default() += count;
        }
        all
    }

    /// Why dropless itself says that some of it is no measurement.
    pub fn invalid(&self) -> impl Iterator<Item = &str> {
        self.ours
            .iter()
            .filter_map(|measured| measured.invalid.as_deref())
    }

    /// The smallest share of a core that workers had, in any round.
    pub fn share_min(&self) -> Option<f64> {
        let shares = self
            .ours
            .iter()
            .chain(&self.theirs)
            .filter_map(|measured| measured.share);
        shares.min_by(f64::total_cmp)
    }

    /// What keeps the row from being good.
    pub fn shortfall(&self) -> Option<&'static str> {
        let lost = self.lost().map(|(lost, _)| lost);
        let missed = |target| self.ratio().is_none_or(|ratio| ratio < target);
        if self.failed.is_some() {
            Some("NOT MEASURED")
        } else if self.row.lossless && lost != Some(0) {
            Some("NO: loss")
        } else if self.lost_at().contains_key("unexplained") {
            Some("NO: loss without a name")
        } else if self.invalid().next().is_some() {
            Some("NO: invalid")
        } else {
            self.target.is_some_and(missed).then_some("NO")
        }
    }
}

/// Packets lost and sent in all of these.
pub fn total(all: &[Measured]) -> Option<(u64, u64)> {
    let sum = |pick: fn(&Measured) -> Option<u64>| all.iter().map(pick).sum::<Option<u64>>();
    Some((sum(|measured| measured.lost)?, sum(|measured| measured.sent)?)).filter(|(_, sent)| *sent > 0)
}

/// The median rate by the wall clock.
pub fn rate(all: &[Measured]) -> Option<f64> {
    median(&all.iter().map(|measured| measured.rate_pps).collect::<Vec<_>>())
}

/// The median rate by the time that the workers had.
pub fn rate_per_cpu_second(all: &[Measured]) -> Option<f64> {
    median(
        &all.iter()
            .filter_map(Measured::rate_per_cpu_second)
            .collect::<Vec<_>>(),
    )
}
