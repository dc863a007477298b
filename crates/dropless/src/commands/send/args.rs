//! Arguments of `dropless send`.

use std::path::PathBuf;

use anyhow::Result;
use measure::SizeMix;

use crate::about::{About as _, ensure_about};
use crate::args::send_plan::send_plan;
use crate::args::stream;
use crate::args::{ExplainArgs, MachineArgs, PathArgs, ProbeArgs, RunArgs};
use crate::plan::{SendPlan, count, interval_ns, kernel, nonzero_ns, optional};

/// How long it sends, where nothing else is said.
const DURATION_NS: u64 = 10_000_000_000;

/// Cells of intervals (of a cache line or two each, a stream and interval) that nobody has asked for, at most.
const CELLS_UNASKED: usize = 4096;

/// All that a plan says. Named one by one: of a group the parser would name arguments that nobody gave.
const OF_THE_PLAN: [&str; 38] = [
    "ports",
    "eal",
    "to",
    "from",
    "to_mac",
    "from_mac",
    "via",
    "vlan",
    "wait",
    "size",
    "payload",
    "streams",
    "rate",
    "duration",
    "count",
    "flows",
    "burst",
    "backlog",
    "drain",
    "seed",
    "ttl",
    "dscp",
    "verify",
    "fault",
    "tx_queues",
    "rx_queues",
    "cores",
    "checksum_offload",
    "descriptors",
    "buffers",
    "no_huge",
    "dpdk_tools",
    "force",
    "tx_only",
    "expect",
    "interval",
    "explain",
    "pause",
];

/// Send UDP probes, receive them back, and account for every one
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "Examples:
  dropless send                                       embedded ring, in-process reflector
  dropless send --port xdp:eth1 --to 10.0.0.2 --rate 1Mpps
  dropless send --port pci:0000:3b:00.0 --to 10.0.0.2 --size imix --rate 50% --flows 1000
  dropless send --port memif:/run/x.sock,server --rate max --duration 30s --json
  dropless send --fault drop=0.1% --rate 100kpps      does the ledger find it?
  dropless send --rate 1Mpps --expect 'loss<0.001%' --expect 'latency_p99<100us'
  dropless send --stream 'name=voice,size=128,rate=50kpps' --stream 'name=bulk,size=1518,rate=2Gbps'")]
pub struct Args {
    /// Where probes go
    #[command(flatten)]
    pub path: PathArgs,

    /// Frame size with FCS: 64 | 64,512,1518 | imix | 64-1518 [default: the smallest]
    #[arg(long, value_name = "SIZE", conflicts_with = "payload", help_heading = "Load")]
    pub size: Option<String>,
    /// UDP payload instead of frame size, bytes
    #[arg(long, value_name = "BYTES", help_heading = "Load")]
    pub payload: Option<usize>,
    /// A stream of its own: name=, size=, rate=, flows=, to=, from=, dscp=, ttl=, vlan=; repeat for several
    #[arg(long = "stream", value_name = "FIELDS", help_heading = "Load")]
    pub streams: Vec<String>,
    /// 3.5Mpps | 10Gbps (layer 1) | 8GbpsL2 | 50% | max [default: max on ring and null, else 100kpps]
    #[arg(long, value_name = "RATE", help_heading = "Load")]
    pub rate: Option<String>,
    /// How long to send [default: 10s, or until --count]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    /// How many packets to send
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub count: Option<String>,
    /// Queues, cores and memory
    #[command(flatten)]
    pub machine: MachineArgs,
    /// What probes look like, and how they are judged
    #[command(flatten)]
    pub probe: ProbeArgs,

    /// Only send: nothing is expected back
    #[arg(long, help_heading = "Measurement")]
    pub tx_only: bool,
    /// Exit 1 unless it holds, e.g. 'loss<0.001%', 'latency_p99<100us'; repeat for several
    #[arg(long = "expect", value_name = "CONDITION", help_heading = "Measurement")]
    pub expect: Vec<String>,
    /// Length of a statistics interval, 1 ms and up [default: a 200th of --duration, 10ms to 1s]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub interval: Option<String>,

    /// What is asked about stalls
    #[command(flatten)]
    pub explain: ExplainArgs,
    /// What this prints, where it writes, and how it is watched
    #[command(flatten)]
    pub run: RunArgs,
    /// Replay the plan.json of an earlier run, which says all but output: other arguments are refused beside it
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Output",
        conflicts_with_all = OF_THE_PLAN,
    )]
    pub plan: Option<PathBuf>,
    /// Let the plan pass arguments to DPDK, use file ports, and take devices by force: only if you know who wrote it
    #[arg(long, requires = "plan", help_heading = "Output", conflicts_with_all = OF_THE_PLAN)]
    pub trust_plan: bool,
}

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<SendPlan> {
        let mut base = stream::plain(&self.path, &self.probe)?;
        ensure_about!(
            "--size",
            self.size.as_deref() != Some(""),
            "--size is empty; write 64, 64,512,1518, 64-1518 or imix"
        );
        base.size = self.size.clone().unwrap_or_default();
        // Here, where it is not yet that of a --stream.
        if let Some(size) = &self.size {
            size.parse::<SizeMix>().about("--size")?;
        }
        let payload = stream::payload(self.payload)?;
        let streams = stream::all(base, &self.streams, &self.path, payload)?;
        let mut plan = send_plan(
            &self.path,
            &self.machine,
            &self.probe,
            Some(&self.explain),
            streams,
        )?;
        if let Some(rate) = &self.rate {
            ensure_about!(
                "--rate",
                plan.streams.iter().any(|stream| stream.rate.is_none()),
                "--rate {rate} would do nothing, since every --stream has a rate= of its own; leave it out, or these"
            );
            plan.rate.clone_from(rate);
        }
        let has_from = self.streams.iter().any(|text| stream::names(text, "from"));
        kernel::refuse_from(&plan.machine.ports, has_from, "from=").about("--stream")?;
        plan.count = optional(self.count.as_deref(), "--count", count)?;
        plan.duration_ns = match (&self.duration, plan.count) {
            (Some(text), _) => Some(nonzero_ns(text, "--duration")?),
            (None, Some(_)) => None,
            (None, None) => Some(DURATION_NS),
        };
        plan.tx_only = self.tx_only;
        plan.expect.clone_from(&self.expect);
        let lanes = plan.streams.len();
        let fits = |ns| {
            measure::interval::slots_for(lanes, ns, plan.drain_ns)
                .is_ok_and(|slots| slots * lanes <= CELLS_UNASKED)
        };
        plan.interval_ns = interval_ns(self.interval.as_deref(), plan.duration_ns, fits)?;
        plan.validate()?;
        plan.check_cores()?;
        let has_own = |text: &String| stream::names(text, "size");
        ensure_about!(
            "--size",
            self.size.is_none() || self.streams.is_empty() || !self.streams.iter().all(has_own),
            "--size would do nothing, since every --stream has a size= of its own; leave it out, or these"
        );
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    /// The plan of `dropless send` with these flags.
    fn plan(flags: &[&str]) -> Result<SendPlan> {
        let words = ["dropless", "send"].iter().chain(flags);
        let matches = crate::cli::command().try_get_matches_from(words)?;
        let (_, send) = matches.subcommand().unwrap();
        Args::from_arg_matches(send)?.plan()
    }

    #[test]
    fn a_payload_is_as_long_in_every_stream_whatever_its_headers() {
        let v6 = "to=[2001:db8::2]:7,from=2001:db8::1";
        let streams = ["name=plain", "vlan=5", v6, "size=128"].map(|text| ["--stream", text]);
        let flags = [&["--payload", "18"], streams.as_flattened()].concat();
        let plan = plan(&flags).unwrap();
        let sizes = plan.streams.iter().map(|stream| stream.size.as_str());
        assert_eq!(sizes.collect::<Vec<_>>(), ["64", "68", "84", "128"]);
    }

    #[test]
    fn what_does_nothing_is_told() {
        let told = |flags: &[&str]| {
            let is_one_way = flags.contains(&"--tx-only");
            let port = if is_one_way { "null" } else { "ring" };
            let plan = plan(&[&["--port", port], flags].concat());
            plan.unwrap().without_effect().len()
        };
        for (flags, notes) in [
            (&["--backlog", "9"][..], 1),
            (&["--backlog", "9", "--rate", "1kpps"], 0),
            (&["--backlog", "9", "--stream", "rate=1kpps"], 0),
            (&["--verify", "payload"], 0),
            (&["--verify", "payload", "--tx-only"], 1),
            (&["--tx-only"], 0),
            (&["--verify", "none", "--tx-only", "--backlog", "9"], 2),
        ] {
            assert_eq!(told(flags), notes, "{flags:?}");
        }
    }

    #[test]
    fn an_mtu_does_not_count_the_one_tag_that_a_stream_has() {
        let mtu = |streams: &[&str]| {
            let streams: Vec<&str> = streams.iter().flat_map(|text| ["--stream", text]).collect();
            plan(&streams).unwrap().mtu().unwrap()
        };
        assert_eq!(mtu(&["size=1518"]), 1500);
        assert_eq!(mtu(&["size=1526"]), 1508);
        assert_eq!(mtu(&["size=1522,vlan=5"]), 1500);
        assert_eq!(mtu(&["size=1526,vlan=5.6"]), 1508);
        assert_eq!(mtu(&["size=1521", "size=1522,vlan=5"]), 1503);
    }

    #[test]
    fn a_port_does_not_send_on_more_queues_than_it_is_given() {
        let refusal =
            |port: &str| plan(&["--tx-queues", "2", "--port", port]).map_err(|error| format!("{error:#}"));
        assert!(
            refusal("ring,queues=1")
                .unwrap_err()
                .contains("write queues=2 there")
        );
        assert!(refusal("ring,queues=2").is_ok() && refusal("ring").is_ok());
    }

    #[test]
    fn every_far_side_is_asked_once() {
        let streams = ["dscp=1", "dscp=2", "to=198.18.0.3", "vlan=5", "vlan=5,size=128"];
        let streams = streams.map(|text| ["--stream", text]);
        let plan = plan(streams.as_flattened()).unwrap();
        assert_eq!(plan.far_sides().collect::<Vec<_>>(), [0, 2, 3]);
    }

    #[test]
    fn all_but_output_is_of_the_plan() {
        let command = crate::cli::command();
        let send = command.find_subcommand("send").unwrap();
        let others = send
            .get_arguments()
            .filter(|argument| {
                argument
                    .get_help_heading()
                    .is_some_and(|heading| heading != "Output")
            })
            .map(|argument| argument.get_id().as_str());
        let mut others: Vec<&str> = others.collect();
        let mut named = OF_THE_PLAN.to_vec();
        others.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, others);
    }
}
