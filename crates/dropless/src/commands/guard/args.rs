//! Arguments of `dropless guard`.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail, ensure};
use clap::{ArgGroup, ValueEnum, ValueHint};
use guard::{Cap, Class, Limit};
use measure::RateSpec;
use measure::fields::given_twice;
use measure::units::parse_count;

use crate::about::{About as _, bail_about, ensure_about};
use crate::args::RunArgs;
use crate::args::forwarding::ForwardingArgs;
use crate::args::on_interface::groups;
use crate::plan::{ForwardMode, GuardPlan, GuardSource, ThresholdPlan, nonzero_ns, optional, packet_rate};

/// More rules at once would be no narrow ones.
const RULES_MAX: u64 = 1024;
/// A rate is a whole number of packets or bits.
const RATE_MAX: f64 = 1e15;

/// Find floods, and block them by the narrowest rules that explain them, for as long as they last
#[derive(clap::Args, Debug)]
#[command(
    group(ArgGroup::new("source").required(true).args(["dev", "ports", "replay"])),
    mut_arg("force", |force| {
        force
            .conflicts_with("replay")
            .help("Also if --rules, or taking a NIC from the kernel, cut off the SSH session that this is typed in; it is not spared then")
    }),
    after_help = "Examples:
  dropless guard --dev eth1 --dry-run              what would be blocked, and why; nothing is
  dropless guard --dev eth1 --rules edge.rules --allow peers.rules --threshold syn=50kpps,udp=2Gbps
  dropless guard --dev eth1 --learn 10m --baseline eth1.json
  dropless guard --port xdp:eth1 --port xdp:eth2   the same between two ports, as `forward` goes
  dropless guard --port pci:0000:3b:00.0 --port pci:0000:3b:00.1 --queues 2 --cores 2-5
  dropless guard --replay attack.pcapng            the same over a capture; no interface is touched
Classes of --threshold, each for what one destination gets and for what one source sends to all:
amplification syn fragment icmp udp tcp other all; and malformed for all together. What is above one
for 0.2 s is a flood, and so are three pulses within 2 s.
What stands under Path, Machine and Measurement goes with --port, and so do --verbose and
--no-doctor; --force with --dev, too, --groups with --dev alone; --mode, --duration and --metrics
not with --replay.
Exit codes: 0 it went to its end; 2 it did not, or could not begin. Between ports as of `forward`:
1 frames were lost (what a rule denies is no loss); with --expect conditions decide."
)]
pub struct Args {
    /// Interface whose packets are watched, and judged in XDP as they arrive
    #[arg(
        long,
        value_name = "INTERFACE",
        conflicts_with_all = ForwardingArgs::FLAGS,
        conflicts_with_all = OF_RUNS,
    )]
    dev: Option<String>,
    /// The two ports between which packets are forwarded, watched and judged: what comes in by one leaves by the other
    #[arg(long = "port", short = 'p', value_name = "URI")]
    ports: Vec<String>,
    /// Watch the packets of a capture file instead, by their times; - for standard input
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ForwardingArgs::FLAGS,
        conflicts_with_all = OF_RUNS,
    )]
    replay: Option<PathBuf>,
    /// Your own rules, after those that block [default: all passes]
    #[arg(long, value_name = "RULES", value_hint = ValueHint::FilePath)]
    rules: Option<PathBuf>,
    /// A rule file of `allow` rules: what they meet is never blocked
    #[arg(long, value_name = "RULES", value_hint = ValueHint::FilePath)]
    allow: Option<PathBuf>,
    /// What is a flood: CLASS=RATE in packets or bits a second, such as syn=50kpps,udp=2Gbps
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threshold: Vec<String>,
    /// Learn what is usual of a destination for so long; then a multiple of that is a flood
    #[arg(long, value_name = "TIME")]
    learn: Option<String>,
    /// With --learn: so many times the usual rate
    #[arg(long, value_name = "N", default_value_t = 5.0, requires = "learn")]
    factor: f64,
    /// With --learn: but never less than this
    #[arg(long, value_name = "RATE", default_value = "2kpps", requires = "learn")]
    floor: String,
    /// Take up what is usual from this file, and keep it there each minute
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    baseline: Option<PathBuf>,
    /// A rule stays so long after it has met a flood
    #[arg(long, value_name = "TIME", default_value = "60s")]
    expire: String,
    /// What may be blocked at most: rules=32, rates=8 of them, share=100% of all packets, cost=0% of the legitimate ones that
    /// are known, prefix=16 and prefix6=32 as the shortest source prefixes
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cap: Vec<String>,
    /// Only say what would be blocked
    #[arg(long)]
    dry_run: bool,
    /// Of --dev: where packets meet the rules, native [default] or generic; of --port: what becomes of MAC addresses, io [default], mac or swap
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        hide_possible_values = true,
        conflicts_with = "replay"
    )]
    mode: Option<AnyMode>,
    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", conflicts_with = "replay")]
    duration: Option<String>,
    /// Groups of addresses that rates remember
    #[arg(long, value_name = "N", default_value = "1M", conflicts_with_all = ["replay", "ports"])]
    groups: String,

    /// The path, the machine and what is measured, between two ports
    #[command(flatten)]
    forwarding: ForwardingArgs,
    /// What this prints, where it writes, and how it is watched
    #[command(flatten)]
    pub run: RunArgs,
}

/// Of runs of packets, beside those of forwarding.
const OF_RUNS: [&str; 2] = ["verbose", "no_doctor"];

/// `--mode` of either front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnyMode {
    Native,
    Generic,
    Io,
    Mac,
    Swap,
}

impl AnyMode {
    /// On an interface: whether packets meet the rules behind the driver.
    fn is_generic(self) -> Result<bool> {
        match self {
            Self::Native => Ok(false),
            Self::Generic => Ok(true),
            Self::Io | Self::Mac | Self::Swap => bail_about!(
                "--mode",
                "--mode says with --dev where packets meet the rules, native or generic; what becomes of MAC addresses goes with --port"
            ),
        }
    }

    /// Between ports: what becomes of MAC addresses.
    fn forwards(self) -> Result<ForwardMode> {
        match self {
            Self::Io => Ok(ForwardMode::Io),
            Self::Mac => Ok(ForwardMode::Mac),
            Self::Swap => Ok(ForwardMode::Swap),
            Self::Native | Self::Generic => bail_about!(
                "--mode",
                "--mode says with --port what becomes of MAC addresses, io, mac or swap; native and generic go with --dev"
            ),
        }
    }
}

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<GuardPlan> {
        ensure_about!(
            "--factor",
            self.factor >= 1.0 && self.factor <= 1e6,
            "--factor {} is not between 1 and a million",
            self.factor
        );
        Ok(GuardPlan {
            source: self.source()?,
            rules: self.rules.clone(),
            allow: self.allow.clone(),
            thresholds: thresholds(&self.threshold).about("--threshold")?,
            learn_ns: optional(self.learn.as_deref(), "--learn", nonzero_ns)?,
            factor: self.factor,
            floor_pps: packet_rate(&self.floor, "--floor")? as u64,
            baseline: self.baseline.clone(),
            expire_ns: nonzero_ns(&self.expire, "--expire")?,
            cap: cap(&self.cap).about("--cap")?,
            dry_run: self.dry_run,
        })
    }

    fn source(&self) -> Result<GuardSource> {
        let duration = self.duration.as_deref();
        if !self.ports.is_empty() {
            let mode = self.mode.unwrap_or(AnyMode::Io).forwards()?;
            let rules = self.rules.as_deref();
            let plan = self.forwarding.plan(&self.ports, rules, mode, duration)?;
            return Ok(GuardSource::Ports(Box::new(plan)));
        }
        let Some(name) = &self.dev else {
            ensure_about!(
                "--metrics",
                self.run.status.metrics.is_none(),
                "--metrics is for --dev and --port: a file is read at once"
            );
            let file = self
                .replay
                .clone()
                .ok_or_else(|| anyhow!("--dev, --port or --replay is wanted"))?;
            return Ok(GuardSource::File(file));
        };
        Ok(GuardSource::Interface {
            name: name.clone(),
            generic: self.mode.unwrap_or(AnyMode::Native).is_generic()?,
            groups: groups(&self.groups)?,
            duration_ns: optional(duration, "--duration", nonzero_ns)?,
            force: self.forwarding.device.force,
        })
    }
}

/// `NAME=VALUE`.
fn pair<'t>(text: &'t str, flag: &str) -> Result<(&'t str, &'t str)> {
    text.split_once('=')
        .ok_or_else(|| anyhow!("{flag} `{text}`: NAME=VALUE is wanted"))
}

fn thresholds(list: &[String]) -> Result<Vec<ThresholdPlan>> {
    let mut all: Vec<ThresholdPlan> = Vec::new();
    for text in list {
        let (name, rate) = pair(text, "--threshold")?;
        let Some(class) = Class::ALL.into_iter().find(|class| class.name() == name) else {
            let names = Class::ALL.map(Class::name).join(" ");
            bail_about!(
                "--threshold",
                "--threshold `{name}` is no class; these are: {names}"
            );
        };
        let (pps, bps) = match rate.parse() {
            Ok(RateSpec::Pps(pps)) => (Some(pps), None),
            Ok(RateSpec::BpsL1(bps) | RateSpec::BpsL2(bps)) => (None, Some(bps)),
            _ => bail_about!(
                "--threshold",
                "--threshold {text}: a rate is wanted, such as 50kpps or 2Gbps"
            ),
        };
        let whole = |rate: Option<f64>| rate.map(|rate| rate.clamp(1.0, RATE_MAX) as u64);
        let (pps, bps) = (whole(pps), whole(bps));
        match all.iter_mut().find(|known| known.class == class) {
            Some(ThresholdPlan { limit, .. }) => {
                ensure!(
                    pps.and(limit.pps).or(bps.and(limit.bps)).is_none(),
                    "--threshold {text}: {name} has a rate in this unit already; give one in packets and one in bits at most"
                );
                (limit.pps, limit.bps) = (pps.or(limit.pps), bps.or(limit.bps));
            }
            None => all.push(ThresholdPlan {
                class,
                limit: Limit { pps, bps },
            }),
        }
    }
    Ok(all)
}

fn cap(list: &[String]) -> Result<Cap> {
    let mut cap = Cap::default();
    if let Some(name) = given_twice(list.iter().map(String::as_str)) {
        bail!("--cap gives {name} twice; give it once");
    }
    for text in list {
        let (name, value) = pair(text, "--cap")?;
        let number = |most: u64| {
            let number = parse_count(value)
                .ok()
                .filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| anyhow!("--cap {text}: a number from 1 to {most} is wanted"))
        };
        let share = || {
            let percent = value
                .strip_suffix('%')
                .and_then(|number| number.parse::<f64>().ok());
            let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
            let percent = percent.ok_or_else(|| anyhow!("--cap {text}: a share is wanted, such as 1%"));
            percent.map(|percent| percent / 100.0)
        };
        match name {
            "rules" => cap.rules = number(RULES_MAX)? as usize,
            "rates" => cap.rates = number(rules::LIMITS_MAX as u64)? as usize,
            "share" => cap.share = share()?,
            "cost" => cap.cost = share()?,
            "prefix" => cap.v4_len = number(32)? as u8,
            "prefix6" => cap.v6_len = number(128)? as u8,
            other => bail_about!(
                "--cap",
                "--cap `{other}` is no limit; these are: rules rates share cost prefix prefix6"
            ),
        }
    }
    Ok(cap)
}
