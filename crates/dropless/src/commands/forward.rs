//! `dropless forward`: hands frames on between two ports, by rules, until it is told to stop.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::args::RunArgs;
use crate::args::forwarding::ForwardingArgs;
use crate::plan::{ForwardMode, ForwardPlan};
use crate::run;
use crate::run::forward::{FileRules, ForwardJob};
use crate::run::on_interface::tags::ThroughXdp;
use crate::run::rulebook::Rules;

/// Hand frames on from port to port, by rules: a bump in the wire
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless forward --port xdp:eth1 --port xdp:eth2                     a cable that counts
  dropless forward --port xdp:eth1 --port xdp:eth2 --rules edge.rules  and lets through what the rules allow
  dropless forward --port memif:/run/a.sock,server --port pci:0000:3b:00.0 --queues 2 --cores 2-5
  dropless forward --port packet:eth1 --port packet:eth2 --mode mac --to-mac 02:00:00:00:00:0a --to-mac 02:00:00:00:00:0b
  dropless forward --port xdp:eth1 --port xdp:eth2 --flows 1000000     and says who talked to whom
  dropless forward --port xdp:eth1 --port xdp:eth2 --kernel tap:host1  and the host is still reached by eth1's address
  kill -HUP PID                                                        reads the rules again: no frame meets half a set

The rule language: docs/guide/rules.md; `dropless filter check` looks a file over.

Exit codes: 0 nothing was lost (what a rule denies is no loss); 1 frames were lost;
2 nothing came, or the numbers cannot be believed. With --expect conditions decide.")]
pub struct Args {
    /// The two ports: what comes in by one leaves by the other
    #[arg(
        long = "port",
        short = 'p',
        value_name = "URI",
        required = true,
        help_heading = "Path"
    )]
    pub ports: Vec<String>,
    /// Which frames pass, by a rule file; SIGHUP reads it again [default: all]
    #[arg(long, short = 'r', value_name = "FILE", help_heading = "Path")]
    pub rules: Option<PathBuf>,
    /// MAC addresses: as they are, from the port that a frame leaves by to --to-mac, or swapped
    #[arg(
        long,
        value_enum,
        value_name = "io|mac|swap",
        hide_possible_values = true,
        default_value_t = ForwardMode::Io,
        help_heading = "Path"
    )]
    pub mode: ForwardMode,
    /// How long to forward, once the ports are open [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub duration: Option<String>,
    /// The path, the machine, and what is measured
    #[command(flatten)]
    pub forwarding: ForwardingArgs,
    /// What this prints, where it writes, and how it is watched
    #[command(flatten)]
    pub run: RunArgs,
}

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<ForwardPlan> {
        let rules = self.rules.as_deref();
        self.forwarding
            .plan(&self.ports, rules, self.mode, self.duration.as_deref())
    }
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let plan = args.plan()?;
    let through = ThroughXdp::of_ports(plan.ports());
    let judges = |path: &Path| FileRules::new(path, Rules::read(path)?, through);
    let rules = plan.rules.as_deref().map(judges).transpose()?;
    let job = ForwardJob::<FileRules>::new((plan.clone(), plan.clone()), rules, args.run.output.quiet);
    plan.named(run::run(job, &args.run.settings()?))
}
