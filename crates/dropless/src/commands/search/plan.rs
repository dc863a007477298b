//! The plan of a search: what is looked for, between which rates, and the `send` run that every trial is.

use std::path::Path;

use anyhow::{Context, Result};
use measure::search::{
    Ceiling, Estimate, Extent, Goal, Method, Mlr, Pace, Range, Rfc2544, Rfc2544Settings, Search, Test,
    estimate,
};
use measure::units::RateError;
use measure::{Rate, RateSpec, SizeMix};
use serde::{Deserialize, Serialize};

use super::args::SearchArgs;
use crate::about::{About as _, bail_about, ensure_about};
use crate::args::send_plan::{one_stream, send_plan};
use crate::plan::foreign::{Foreign, Named};
use crate::plan::{SendPlan, trial_duration};

/// Version of this format.
pub const VERSION: u32 = 1;
/// The frame sizes of RFC 2544, section 9.1, for Ethernet.
const STANDARD_SIZES: [&str; 7] = ["64", "128", "256", "512", "1024", "1280", "1518"];
/// The lowest rate tried is the highest, divided by this.
const RANGE: f64 = 1000.0;
/// A range for estimates where the highest rate is not known: only the ratio counts.
const ANY_PPS: f64 = 1e7;
/// A burst that has not left so long after it was due never will: its port takes nothing more.
const BURST_OVERTIME_NS: u64 = 10_000_000_000;
/// What the start of a run and its report take, about.
const START_S: f64 = 1.0;

/// A search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchPlan {
    /// Version of this format.
    pub version: u32,
    /// Always `search`.
    pub command: String,
    /// How the rate is looked for.
    pub method: Method,
    /// What is looked for.
    pub goals: Vec<Goal>,
    /// What is asked of the tests of RFC 2544.
    pub rfc2544: Rfc2544Settings,
    /// Frame sizes, each searched for on its own.
    pub sizes: Vec<String>,
    /// The highest rate; `None` is what our sender reaches.
    pub max_rate: Option<String>,
    /// The lowest rate.
    pub min_rate: Option<String>,
    /// Rest between two trials, ns.
    pub settle_ns: u64,
    /// The run that every trial is, but for rate, length and frame size.
    pub send: SendPlan,
}

impl SearchPlan {
    /// Makes a plan of the command line, and refuses what cannot be.
    pub fn from_args(args: &SearchArgs) -> Result<Self> {
        let method = Method::from(args.method);
        let send = trial(args)?;
        let settle = match (&args.settle, method) {
            (Some(text), _) => measure::units::parse_duration(text)
                .context("--settle")
                .about("--settle")?,
            // RFC 2544, section 23.
            (None, Method::Rfc2544) => std::time::Duration::from_secs(5),
            (None, Method::Mlr) => std::time::Duration::ZERO,
        };
        let smallest = send.streams[0].minimum_size().to_string();
        let mut sizes: Vec<String> = args.sizes.iter().map(|size| size.trim().to_owned()).collect();
        if sizes.is_empty() {
            sizes.push(smallest);
        } else if sizes.iter().any(|size| size == "standard") {
            sizes.retain(|size| size != "standard");
            sizes.splice(0..0, STANDARD_SIZES.map(str::to_owned));
        }
        refuse_the_other_methods(args, method)?;
        let plan = Self {
            version: VERSION,
            command: "search".into(),
            method,
            goals: goals(args, method)?,
            rfc2544: rfc2544(args)?,
            sizes,
            max_rate: args.max_rate.clone(),
            min_rate: args.min_rate.clone(),
            settle_ns: settle.as_nanos() as u64,
            send,
        };
        plan.validate()?;
        Ok(plan)
    }

    /// Reads the plan of a search that was interrupted, or of somebody else's.
    pub fn load(directory: &Path) -> Result<Foreign<Self>> {
        let named = Named {
            flag: "--resume",
            path: &directory.join(report::rundir::file::PLAN),
            advice: "name the run directory of a `dropless search`",
        };
        let plan: Self = named.read("search", VERSION)?;
        plan.validate()?;
        Ok(Foreign::new(plan, |plan| &plan.send.machine, &named))
    }

    fn validate(&self) -> Result<()> {
        for goal in &self.goals {
            goal.check()?;
        }
        for (index, goal) in self.goals.iter().enumerate() {
            let same = self.goals[..index].iter().any(|other| other.name == goal.name);
            ensure_about!(
                "--goal",
                !same,
                "two goals are called `{}`; give each --goal a name=",
                goal.name
            );
        }
        for (index, size) in self.sizes.iter().enumerate() {
            ensure_about!(
                "--sizes",
                !self.sizes[..index].contains(size),
                "--sizes has {size} twice{}; name each size once",
                if STANDARD_SIZES.contains(&size.as_str()) {
                    " (`standard` may have it)"
                } else {
                    ""
                }
            );
        }
        let settings = &self.rfc2544;
        ensure_about!(
            if settings.latency_trials == 0 {
                "--latency-trials"
            } else {
                "--burst-repeats"
            },
            settings.latency_trials > 0 && settings.burst_repeats > 0,
            "--latency-trials and --burst-repeats must be 1 or more; leave a --test out instead"
        );
        for size in &self.sizes {
            let plan = self.sized(size)?;
            plan.validate()?;
            let max = self.max_pps(size)?;
            self.min_pps(size, max.unwrap_or(f64::INFINITY))?;
        }
        Ok(())
    }

    /// The run of a trial of frames of `size`, rate and length left open.
    fn sized(&self, size: &str) -> Result<SendPlan> {
        let mut plan = self.send.clone();
        let mix = size.parse::<SizeMix>();
        let mix = mix.with_context(|| format!("--sizes {size}")).about("--sizes")?;
        plan.streams[0].size = mix.to_string();
        Ok(plan)
    }

    /// The mean frame size of a size.
    pub fn mean_bytes(&self, size: &str) -> Result<f64> {
        Ok(self.sized(size)?.streams[0].sizes()?.mean())
    }

    /// The run of a trial: `None` for a rate is as fast as the sender can.
    pub fn trial(&self, size: &str, rate_pps: Option<f64>, extent: Extent, number: u64) -> Result<SendPlan> {
        let mut plan = self.sized(size)?;
        let ports = plan.machine.ports.len() as f64;
        plan.rate = match rate_pps {
            Some(pps) => format!("{}pps", pps / ports),
            None => self.max_rate.clone().unwrap_or_else(|| "max".into()),
        };
        (plan.duration_ns, plan.count) = match extent {
            Extent::DurationNs(ns) => (Some(ns), None),
            Extent::Packets(packets) => {
                let seconds = rate_pps.map_or(0.0, |pps| packets as f64 / pps);
                let ns = (seconds * 1e9) as u64;
                (Some(ns.saturating_add(BURST_OVERTIME_NS)), Some(packets))
            }
        };
        plan.seed = self.send.seed.wrapping_add(number) % 1_000_000_000;
        Ok(plan)
    }

    /// The highest rate for frames of `size`; `None` where it must be measured.
    pub fn max_pps(&self, size: &str) -> Result<Option<f64>> {
        match &self.max_rate {
            Some(text) => self.resolve("--max-rate", text, size),
            None => Ok(None),
        }
    }

    /// The lowest rate for frames of `size`, below the highest.
    pub fn min_pps(&self, size: &str, max: f64) -> Result<f64> {
        let Some(text) = &self.min_rate else {
            return Ok(max / RANGE);
        };
        let Some(min) = self.resolve("--min-rate", text, size)? else {
            bail_about!(
                "--min-rate",
                "--min-rate {text} is no rate of its own; write it in pps or bps, e.g. 10kpps"
            )
        };
        ensure_about!(
            "--min-rate",
            min < max,
            "--min-rate is {}, and the highest rate is {}: nothing lies between them; give a lower --min-rate",
            report::number::pps(min),
            report::number::pps(max)
        );
        Ok(min)
    }

    /// A rate of all ports together; `None` where it depends on the link or the sender.
    fn resolve(&self, flag: &'static str, text: &str, size: &str) -> Result<Option<f64>> {
        let spec = text.parse::<RateSpec>().context(flag).about(flag)?;
        if let RateSpec::Percent(_) | RateSpec::Max = spec {
            let mut ports = self.send.machine.ports.iter();
            let is_of_link = spec != RateSpec::Max;
            if is_of_link && ports.any(|port| !port.kind.traits().medium.may_have_speed()) {
                return Err(RateError::NoLinkSpeed).context(flag).about(flag);
            }
            return Ok(None);
        }
        Ok(match spec.resolve(self.mean_bytes(size)?, None)? {
            Rate::Pps(pps) => Some(pps * self.send.machine.ports.len() as f64),
            Rate::Max => None,
        })
    }

    /// The machine that does the searching.
    pub fn search(&self, range: Range) -> Search {
        match self.method {
            Method::Mlr => Search::Mlr(Mlr::new(self.goals.clone(), range)),
            Method::Rfc2544 => Search::Rfc2544(Rfc2544::new(&self.rfc2544, range)),
        }
    }

    /// How long the shortest trial is: a look at what the sender can do is as long.
    pub fn first_ns(&self) -> u64 {
        let shortest = self.goals.iter().map(|goal| goal.initial_duration_ns).min();
        shortest.unwrap_or(1_000_000_000).min(1_000_000_000)
    }

    /// How long the search of one size takes, where a trial takes so much beyond its own time.
    pub fn estimate(&self, size: &str, pace: Pace) -> Result<Estimate> {
        let known = self.max_pps(size)?;
        // Far above what is given as the lowest: an estimate refuses nothing.
        let above = |min_pps: f64| if min_pps.is_finite() { min_pps * RANGE } else { 0.0 };
        let max_pps = match known {
            Some(max_pps) => max_pps,
            None => ANY_PPS.max(above(self.min_pps(size, f64::INFINITY)?)),
        };
        let range = Range {
            min_pps: self.min_pps(size, max_pps)?,
            max_pps,
            ceiling: Ceiling::Asked,
        };
        let one = estimate(&self.search(range), range, pace);
        if known.is_some() {
            return Ok(one);
        }
        let look_s = self.first_ns() as f64 / 1e9 + pace.overhead_s;
        Ok(one.and(Estimate {
            trials: 1,
            seconds: look_s,
            trials_max: 1,
            seconds_max: look_s,
        }))
    }

    /// What a trial takes beyond its own time, before any was measured: with RFC 2544 half of them wait for what is lost.
    pub fn pace(&self) -> Pace {
        let waits_s = match self.method {
            Method::Rfc2544 => self.send.drain_ns as f64 / 2e9,
            Method::Mlr => 0.0,
        };
        Pace {
            overhead_s: START_S + waits_s + self.settle_ns as f64 / 1e9,
        }
    }
}

/// A flag of the method that was not chosen would do nothing: it says that another search was meant.
fn refuse_the_other_methods(args: &SearchArgs, method: Method) -> Result<()> {
    let of_mlr = [
        ("--initial-duration", args.initial_duration.is_some()),
        ("--final-duration", args.final_duration.is_some()),
        ("--duration-sum", args.duration_sum.is_some()),
    ];
    let of_rfc2544 = [
        ("--test", !args.tests.is_empty()),
        ("--trial-duration", args.trial_duration.is_some()),
        ("--latency-trials", args.latency_trials.is_some()),
        ("--latency-duration", args.latency_duration.is_some()),
        ("--burst-repeats", args.burst_repeats.is_some()),
        ("--burst-duration", args.burst_duration.is_some()),
    ];
    let given = |flags: &[(&'static str, bool)]| {
        let given = flags.iter().filter(|(_, is_given)| *is_given);
        given.map(|(flag, _)| *flag).collect::<Vec<_>>()
    };
    match method {
        Method::Mlr => {
            let flags = given(&of_rfc2544);
            let Some(first) = flags.first() else { return Ok(()) };
            let flags = flags.join(", ");
            bail_about!(
                first,
                "{flags}: only RFC 2544 has this; add --method rfc2544, or leave it out"
            )
        }
        Method::Rfc2544 => {
            let flags = given(&of_mlr);
            let Some(first) = flags.first() else { return Ok(()) };
            let flags = flags.join(", ");
            bail_about!(
                first,
                "{flags}: only --method mlr has this; with rfc2544 say --trial-duration, or leave it out"
            )
        }
    }
}

/// A time in ns, or what it is unless it is given.
fn time(flag: &'static str, text: Option<&String>, default: &str) -> Result<u64> {
    let text = text.map_or(default, String::as_str);
    Ok(trial_duration(flag, text)?.as_nanos() as u64)
}

fn goals(args: &SearchArgs, method: Method) -> Result<Vec<Goal>> {
    if method == Method::Rfc2544 {
        ensure_about!(
            "--goal",
            args.goals.is_empty(),
            "--goal is for --method mlr; RFC 2544 knows throughput only, and that is without loss"
        );
        return Ok(Vec::new());
    }
    let base = Goal::parse(&format!("ndr,width={}", args.width), &Goal::ndr()).about("--width")?;
    let base = Goal {
        initial_duration_ns: time("--initial-duration", args.initial_duration.as_ref(), "1s")?,
        final_duration_ns: time("--final-duration", args.final_duration.as_ref(), "1s")?,
        duration_sum_ns: time("--duration-sum", args.duration_sum.as_ref(), "21s")?,
        ..base
    };
    let goals = if args.goals.is_empty() {
        base.check()?;
        vec![base]
    } else {
        let parse = |text: &String| Goal::parse(text, &base).about("--goal");
        args.goals.iter().map(parse).collect::<Result<Vec<_>>>()?
    };
    for goal in &goals {
        goal.can_be_met().about("--duration-sum")?;
    }
    Ok(goals)
}

fn rfc2544(args: &SearchArgs) -> Result<Rfc2544Settings> {
    let mut tests = vec![Test::Throughput];
    for text in &args.tests {
        let test: Test = text
            .parse()
            .map_err(|error: String| anyhow::anyhow!("--test: {error}"))
            .about("--test")?;
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    for (test, flags) in [
        (
            Test::Latency,
            [
                ("--latency-trials", args.latency_trials.is_some()),
                ("--latency-duration", args.latency_duration.is_some()),
            ],
        ),
        (
            Test::BackToBack,
            [
                ("--burst-repeats", args.burst_repeats.is_some()),
                ("--burst-duration", args.burst_duration.is_some()),
            ],
        ),
    ] {
        let given = flags.into_iter().find(|(_, is_given)| *is_given);
        if let Some((flag, _)) = given.filter(|_| !tests.contains(&test)) {
            bail_about!(
                flag,
                "{flag} is of a test that is not made; add --test {}, or leave it out",
                test.name()
            );
        }
    }
    Ok(Rfc2544Settings {
        tests,
        trial_ns: time("--trial-duration", args.trial_duration.as_ref(), "60s")?,
        relative_width: Goal::parse(&format!("ndr,width={}", args.width), &Goal::ndr())?.relative_width,
        latency_trials: args.latency_trials.unwrap_or(20),
        latency_ns: time("--latency-duration", args.latency_duration.as_ref(), "120s")?,
        burst_repeats: args.burst_repeats.unwrap_or(50),
        burst_ns: time("--burst-duration", args.burst_duration.as_ref(), "2s")?,
    })
}

/// The run of a trial; rate, length and size follow from the search.
fn trial(args: &SearchArgs) -> Result<SendPlan> {
    let streams = one_stream(&args.path, &args.probe)?;
    let mut plan = send_plan(&args.path, &args.machine, &args.probe, None, streams)?;
    plan.rate = "max".into();
    plan.validate()?;
    plan.check_cores()?;
    Ok(plan)
}
