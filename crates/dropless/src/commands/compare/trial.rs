//! Trials of one way: a reflector that stays, and a sender for each.

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use measure::search::disbelieved;
use measure::units::format_rate;
use measure::{Note, Summary, Validity};
use report::out::Console;
use report::published::Phase;

use super::cpu::CpuWatch;
use super::plan::{ComparePlan, TRIAL_OVERHEAD, Way};
use super::result::Trial;
use super::wire::Wire;
use crate::run::child::{Child, Ended, Start};
use crate::run::signals::Interrupt;
use crate::status::Trials;

/// How long a reflector may take to be ready.
pub const STARTING: Duration = Duration::from_secs(20);
/// How long it may take to end, and then the wire.
const ENDING: Duration = Duration::from_secs(15);
/// What is under way when sending ends may take this long.
const DRAIN: &str = "500ms";
/// How often a trial is made in which nothing could be sent, or whose numbers may not be believed.
const ATTEMPTS: u32 = 3;
/// How often a trial is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A sender that takes this much longer than it sends is ended.
const OVERTIME: Duration = Duration::from_secs(60);

/// What all trials of a comparison share.
pub struct Scene<'c> {
    /// What the trials say goes there.
    pub directory: &'c Path,
    pub console: Console,
    pub interrupt: &'c Interrupt,
}

/// The two ends of one way.
pub struct Ends<'c> {
    plan: &'c ComparePlan,
    way: &'c Way,
    wire: Option<&'c Wire>,
    reflector: Option<Child>,
    scene: &'c Scene<'c>,
    told: &'c mut Trials,
    tried: u32,
    /// Nobody reads it. It only keeps the kernel from telling the far side that nobody listens.
    _guard: Option<UdpSocket>,
}

impl<'c> Ends<'c> {
    /// Starts the reflector, if it is on this machine.
    pub fn start(
        plan: &'c ComparePlan,
        way: &'c Way,
        wire: Option<&'c Wire>,
        scene: &'c Scene<'c>,
        told: &'c mut Trials,
    ) -> Result<Self> {
        let mut ends = Self {
            plan,
            way,
            wire: wire.filter(|_| way.method.reaches_a_network()),
            reflector: None,
            scene,
            told,
            tried: 0,
            _guard: way.guarded.and_then(|address| UdpSocket::bind(address).ok()),
        };
        if let Some(far) = &way.far {
            let namespace = ends.wire.map(Wire::far);
            let arguments = ends.arguments("reflect", far, plan.cores[1]);
            let name = format!("{}-reflect", way.method);
            let mut reflector = ends.start_child(namespace, arguments, &name)?;
            reflector
                .await_phase(Phase::Reflecting, STARTING, scene.interrupt, || ends.told.wait())
                .context("the reflector")?;
            ends.reflector = Some(reflector);
        }
        Ok(ends)
    }

    fn start_child(&self, namespace: Option<&str>, arguments: Vec<String>, name: &str) -> Result<Child> {
        Child::start(&Start {
            arguments,
            namespace,
            directory: self.scene.directory,
            name,
            shows_log: false,
        })
    }

    fn arguments(&self, command: &str, port: &str, core: usize) -> Vec<String> {
        let runs = self.scene.directory.join("runs").display().to_string();
        let fixed = format!("{command} --json --no-doctor --cores {core}");
        let paths = ["--port", port, "--runs", &runs];
        fixed.split(' ').chain(paths).map(Into::into).collect()
    }

    /// One trial at `rate_pps`, or as fast as it goes. `why` is told. While somebody else had the core all the time, or
    /// its numbers may not be believed, it is made again.
    pub fn trial(&mut self, rate_pps: Option<f64>, why: &str) -> Result<(Trial, Summary)> {
        let mut made = self.attempt(rate_pps, why)?;
        for _ in 1..ATTEMPTS {
            if made.1.sent > 0 && disbelieved(&made.1).is_empty() {
                break;
            }
            made = self.attempt(rate_pps, why)?;
        }
        believe(&made.1)?;
        if made.1.received == 0 {
            bail!(
                "nothing came back: {}",
                said_of(&made.1, self.way.interface.as_deref())
            );
        }
        Ok(made)
    }

    fn attempt(&mut self, rate_pps: Option<f64>, why: &str) -> Result<(Trial, Summary)> {
        self.tried += 1;
        let shown = rate_pps.map_or_else(|| "as fast as it goes".into(), format_rate);
        self.tell(&format!("{}: {shown}, {why}", self.way.method));
        let mut arguments = self.arguments("send", &self.way.near, self.plan.cores[0]);
        let rate = rate_argument(rate_pps);
        let duration = format!("{}ms", self.plan.duration.as_millis());
        let size = self.plan.size;
        let load = format!("--quiet --rate {rate} --duration {duration} --size {size} --drain {DRAIN}");
        arguments.extend(load.split(' ').map(Into::into));
        arguments.extend(self.way.near_arguments.iter().cloned());
        let name = format!("{}-{:02}", self.way.method, self.tried);
        self.tell_left();
        self.told.begin(rate_pps, STARTING);
        let mut sender = self.start_child(self.wire.map(Wire::near), arguments, &name)?;
        let mut cpu = CpuWatch::new(sender.id(), self.reflector.as_ref().map(Child::id));
        let begun = Instant::now();
        while sender.status()?.is_none() {
            if self.scene.interrupt.is_set() {
                sender.end(|| self.told.wait());
                bail!("interrupted");
            }
            if begun.elapsed() > self.plan.duration + OVERTIME {
                sender.end(|| self.told.wait());
                bail!("the sender did not end; its log is {name}.log");
            }
            cpu.look();
            self.told.look(sender.id());
            std::thread::sleep(LOOK);
        }
        self.told.finish();
        let summary: Summary = match sender.outcome()? {
            Ended::Result(summary) => *summary,
            Ended::Killed(signal) => bail!("the sender was ended by {signal}"),
            Ended::Failed(why) => bail!("{why}"),
        };
        if self.scene.interrupt.is_set() {
            bail!("interrupted");
        }
        if let Some(reflector) = &mut self.reflector {
            if reflector.status()?.is_some() {
                bail!("the reflector ended: {}", reflector.failure());
            }
        }
        let trial = Trial {
            asked_pps: rate_pps,
            sent_pps: summary.rate_tx_pps,
            received_pps: summary.rate_rx_pps,
            sent: summary.sent,
            lost: summary.lost,
            unsent: summary.ledger.unsent,
            latency_ns: summary.latency_ns,
            cpu: cpu.finish(self.plan.duration),
        };
        Ok((trial, summary))
    }

    pub fn end(mut self) {
        self.told.prepare("ending a way", ENDING);
        if let Some(mut reflector) = self.reflector.take() {
            reflector.end(|| self.told.wait());
        }
    }

    /// Tells how long the trial that begins and those after it will take.
    fn tell_left(&mut self) {
        // More trials than planned are made where a rate gets a second chance.
        let of_this = (self.plan.trials_of(self.way) + 1)
            .saturating_sub(self.tried)
            .max(1);
        let left = (self.plan.duration + TRIAL_OVERHEAD) * (of_this + self.plan.trials_after(self.way));
        self.told.left(Some(left.as_secs_f64()));
    }

    fn tell(&self, line: &str) {
        if !self.scene.console.quiet {
            let _ = report::out::print_stderr(&format!("{line}\n"));
        }
    }
}

/// What `--rate` of the sender says: to the last digit, since the trial is judged by it.
fn rate_argument(rate_pps: Option<f64>) -> String {
    rate_pps.map_or_else(|| "max".into(), |pps| format!("{pps}pps"))
}

/// Refuses a trial that is none, as a search does: that nothing is missing in it says nothing.
fn believe(summary: &Summary) -> Result<()> {
    let reasons = disbelieved(summary);
    ensure!(
        reasons.is_empty(),
        "its trials cannot be believed: {}",
        Note::texts(&reasons).join("; ")
    );
    Ok(())
}

/// What the sender said of it, whose advice leaves the name of the interface to whoever knows it.
fn said_of(summary: &Summary, interface: Option<&str>) -> String {
    // With no answer that the kernel lets through, nothing is known of the far side.
    let is_damaged = summary.notes.iter().any(|note| note.code == "wrong_checksums");
    let notes = summary
        .notes
        .iter()
        .filter(|note| !is_damaged || note.code != "far_side_silent");
    let told: Vec<&str> = summary
        .reasons
        .iter()
        .filter(|_| summary.verdict == Validity::Invalid)
        .chain(notes)
        .map(|note| note.text.as_str())
        .collect();
    let told = told.join("; ");
    match interface.filter(|_| is_damaged) {
        Some(name) => format!("{told} (INTERFACE is {name})"),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use measure::RateSpec;

    use super::*;

    #[test]
    fn the_sender_is_asked_for_the_rate_that_it_is_judged_by() {
        for pps in [0.4, 100.4, 1000.0, 1e12 / 3.0] {
            assert_eq!(rate_argument(Some(pps)).parse(), Ok(RateSpec::Pps(pps)));
        }
        assert_eq!(rate_argument(None).parse(), Ok(RateSpec::Max));
    }

    #[test]
    fn what_is_invalid_is_not_carried_but_for_what_says_who_was_the_limit() {
        let run = |code| Summary {
            sent: 1000,
            received: 1000,
            reasons: vec![Note::new(code, "the sentence")],
            ..Summary::default()
        };
        for code in ["clock_bad", "contradicted", "pool_leak", "link_lost"] {
            let told = believe(&run(code)).map_err(|error| error.to_string());
            assert_eq!(
                told,
                Err("its trials cannot be believed: the sentence".to_owned())
            );
        }
        assert!(believe(&run("underoffered")).is_ok());
        assert!(believe(&Summary::default()).is_ok());
    }
}
