//! The validated plan of a run: what `plan.json` holds and `--plan` replays. Made whole before anything starts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use dataplane::BURST_MAX;
use dataplane::fault::FaultSpec;
use host::cores::CoreSet;
use host::{MacAddress, PortKind, PortUri};
use measure::{Expectation, RateSpec, SizeMix};
use serde::{Deserialize, Serialize};
use wire::{Template, Verify, VlanTag};

use crate::args::reflect::ReflectArgs;
use crate::args::send::{SendArgs, VerifyArg};
use crate::stream;

/// Version of `plan.json`.
pub const VERSION: u32 = 1;
/// Lanes are 16 bits in the probe.
const LANES_MAX: usize = 1 << 16;
/// `RTE_MAX_QUEUES_PER_PORT` of every DPDK that distributions ship.
const QUEUES_MAX: u16 = 1024;

/// What every version of a plan begins with.
#[derive(Deserialize)]
struct Head {
    version: u32,
    command: String,
}

/// Probes from one stream description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// Shown in the report.
    pub name: String,
    /// Frame sizes with FCS, as the user writes them.
    pub size: String,
    /// Rate of this stream, as the user writes it; `None` shares what the whole run sends.
    pub rate: Option<String>,
    /// Flows.
    pub flows: u32,
    /// Destination.
    pub to: IpAddr,
    /// First and last destination port.
    pub to_ports: (u16, u16),
    /// Source.
    pub from: SocketAddr,
    /// Tags, outermost first.
    pub vlans: Vec<u16>,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
}

impl StreamPlan {
    /// The tags as they stand in a frame: the outer of two is a service tag (IEEE 802.1ad).
    pub fn vlan_tags(&self) -> Vec<VlanTag> {
        let service = self.vlans.len() > 1;
        let tag = |(index, &id)| VlanTag {
            tpid: if service && index == 0 { 0x88A8 } else { 0x8100 },
            id,
            pcp: 0,
        };
        self.vlans.iter().enumerate().map(tag).collect()
    }

    /// The smallest frame, with FCS, that holds a probe with these headers.
    pub fn minimum_size(&self) -> usize {
        Template::minimum_frame_size(self.to.is_ipv6(), self.vlans.len())
    }

    /// The frame sizes and their shares.
    pub fn sizes(&self) -> Result<SizeMix> {
        Ok(self.size.parse::<SizeMix>()?)
    }
}

/// How much of a frame is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifyPlan {
    /// Magic, run and length.
    None,
    /// Checksums.
    Checksum,
    /// Checksums and payload pattern.
    Payload,
}

impl From<VerifyPlan> for Verify {
    fn from(plan: VerifyPlan) -> Self {
        match plan {
            VerifyPlan::None => Self::None,
            VerifyPlan::Checksum => Self::Checksum,
            VerifyPlan::Payload => Self::Payload,
        }
    }
}

/// What `send` and `reflect` both need of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePlan {
    /// Ports.
    pub ports: Vec<PortUri>,
    /// Further EAL arguments.
    pub eal: Option<String>,
    /// Worker cores; empty lets the run choose.
    pub cores: CoreSet,
    /// Packets a burst.
    pub burst: usize,
    /// Descriptors a queue.
    pub descriptors: u16,
    /// Packet buffers; `None` lets the run choose.
    pub buffers: Option<u32>,
    /// Ordinary pages even where hugepages are free.
    pub no_huge: bool,
    /// Take a device from the kernel although this machine is reached through it.
    #[serde(default)]
    pub force: bool,
    /// How long to wait for a link, ns.
    pub wait_ns: u64,
}

/// A `send` run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendPlan {
    /// Version of this format.
    pub version: u32,
    /// Always `send`.
    pub command: String,
    /// The machine's part.
    pub machine: MachinePlan,
    /// Streams, at least one.
    pub streams: Vec<StreamPlan>,
    /// Rate of the whole run, as the user writes it; of several ports, each sends at this rate.
    pub rate: String,
    /// Catch-up bound, packets; `None` is the transmit ring.
    pub backlog: Option<u64>,
    /// How long to send, ns.
    pub duration_ns: Option<u64>,
    /// How many packets to send.
    pub count: Option<u64>,
    /// How long a packet may be under way, ns.
    pub drain_ns: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Destination MAC address, if not asked for.
    pub to_mac: Option<MacAddress>,
    /// Source MAC address, if not the port's.
    pub from_mac: Option<MacAddress>,
    /// Neighbour to send through.
    pub via: Option<IpAddr>,
    /// Transmit queues a port.
    pub tx_queues: u16,
    /// Receive queues a port.
    pub rx_queues: u16,
    /// NIC checksum offload.
    pub checksum_offload: bool,
    /// What is checked in a frame.
    pub verify: VerifyPlan,
    /// Nothing is expected back.
    pub tx_only: bool,
    /// Faults of the in-process reflector.
    pub fault: Option<FaultSpec>,
    /// Conditions of success.
    pub expect: Vec<String>,
    /// Length of a statistics interval, ns.
    pub interval_ns: u64,
}

/// A `reflect` run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReflectPlan {
    /// Version of this format.
    pub version: u32,
    /// Always `reflect`.
    pub command: String,
    /// The machine's part.
    pub machine: MachinePlan,
    /// Addresses to answer for.
    pub addresses: Vec<IpAddr>,
    /// Return probes only.
    pub only_ours: bool,
    /// Faults to inject.
    pub fault: Option<FaultSpec>,
    /// Seed of the faults.
    pub seed: u64,
    /// Queue pairs a port.
    pub queues: u16,
    /// How long to reflect, ns.
    pub duration_ns: Option<u64>,
    /// End after this long without a packet, ns.
    pub idle_exit_ns: Option<u64>,
    /// Length of a statistics interval, ns.
    pub interval_ns: u64,
}

/// The far end's default address (RFC 2544 appendix C.2.2).
pub const FAR_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The far end's default IPv6 address (RFC 5180 section 8).
pub const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2);

impl SendPlan {
    /// Reads a plan that an earlier run wrote.
    pub fn load(path: &Path) -> Result<Self> {
        let shown = path.display();
        let advice = "name the plan.json of a `dropless send` run";
        let text =
            std::fs::read_to_string(path).map_err(|error| anyhow!("--plan {shown}: {error}; {advice}"))?;
        let foreign = |error: serde_json::Error| {
            anyhow!("--plan {shown} is not the plan of a send run ({error}); {advice}")
        };
        // The version first: what a later one looks like is not known here.
        let head: Head = serde_json::from_str(&text).map_err(foreign)?;
        ensure!(
            head.version <= VERSION,
            "--plan {shown} has version {}, and this dropless knows up to {VERSION}; use a newer dropless",
            head.version
        );
        ensure!(
            head.command == "send",
            "--plan {shown} is the plan of a {} run; {advice}",
            head.command
        );
        let plan: Self = serde_json::from_str(&text).map_err(foreign)?;
        plan.validate()?;
        Ok(plan)
    }

    /// Makes a plan of the command line.
    pub fn from_args(args: &SendArgs) -> Result<Self> {
        let mut ports = parse_ports(&args.ports)?;
        if ports.is_empty() {
            ports.push("ring".parse()?);
        }
        let embedded = ports
            .iter()
            .all(|port| matches!(port.kind, PortKind::Ring { .. } | PortKind::Null { .. }));
        let count = args
            .count
            .as_deref()
            .map(|text| count(text, "--count"))
            .transpose()?;
        let duration_ns = match (&args.duration, count) {
            (Some(text), _) => Some(nonzero_ns(text, "--duration")?),
            (None, Some(_)) => None,
            (None, None) => Some(10_000_000_000),
        };
        let plan = Self {
            version: VERSION,
            command: "send".into(),
            streams: stream::from_args(args)?,
            machine: MachinePlan {
                ports,
                eal: args.eal.clone(),
                cores: parse_cores(args.cores.as_deref())?,
                burst: args.burst,
                descriptors: args.descriptors,
                buffers: args.buffers,
                no_huge: args.no_huge,
                force: args.force,
                wait_ns: duration_ns_or_zero(&args.wait, "--wait")?,
            },
            rate: args
                .rate
                .clone()
                .unwrap_or_else(|| if embedded { "max" } else { "100kpps" }.into()),
            backlog: args.backlog,
            duration_ns,
            count,
            drain_ns: duration_ns_or_zero(&args.drain, "--drain")?,
            seed: args.seed.unwrap_or_else(clock_seed),
            to_mac: args
                .to_mac
                .as_deref()
                .map(|text| mac(text, "--to-mac"))
                .transpose()?,
            from_mac: args
                .from_mac
                .as_deref()
                .map(|text| mac(text, "--from-mac"))
                .transpose()?,
            via: args.via,
            tx_queues: args.tx_queues,
            rx_queues: args.rx_queues,
            checksum_offload: args.checksum_offload,
            verify: match args.verify {
                VerifyArg::None => VerifyPlan::None,
                VerifyArg::Checksum => VerifyPlan::Checksum,
                VerifyArg::Payload => VerifyPlan::Payload,
            },
            tx_only: args.tx_only,
            fault: args.fault.as_deref().map(str::parse).transpose()?,
            expect: args.expect.clone(),
            interval_ns: nonzero_ns(&args.interval, "--interval")?,
        };
        plan.validate()?;
        Ok(plan)
    }

    fn validate(&self) -> Result<()> {
        self.machine.validate()?;
        ensure!(
            self.tx_queues > 0 && self.rx_queues > 0,
            "a port needs at least one queue each way; use --tx-queues 1 --rx-queues 1"
        );
        check_queues("--tx-queues", self.tx_queues)?;
        check_queues("--rx-queues", self.rx_queues)?;
        check_interval(self.interval_ns)?;
        ensure!(
            self.drain_ns >= 1_000_000,
            "--drain 0 would call every packet late; use --drain 1ms or more"
        );
        ensure!(
            self.count != Some(0),
            "--count 0 sends nothing; give the number of packets"
        );
        ensure!(!self.streams.is_empty(), "a send run needs at least one stream");
        let lanes = self.lanes();
        ensure!(
            lanes <= LANES_MAX,
            "{lanes} lanes (ports x transmit queues x streams) are more than {LANES_MAX}; use fewer streams or queues"
        );
        for stream in &self.streams {
            let (minimum, sizes) = (stream.minimum_size(), stream.sizes()?);
            for (size, _) in sizes.sizes() {
                ensure!(
                    size >= minimum,
                    "frame size {size} is below the probe: stream `{}` needs at least {minimum} bytes (headers, 18-byte probe, FCS); use --size {minimum}",
                    stream.name
                );
                ensure!(
                    size <= 9618,
                    "frame size {size} is above the largest jumbo frame, 9618; use a smaller --size"
                );
            }
            ensure!(
                stream.from.is_ipv4() == stream.to.is_ipv4(),
                "stream `{}` goes from {} to {}: both must be IPv4, or both IPv6; give --from of the same family",
                stream.name,
                stream.from.ip(),
                stream.to
            );
            ensure!(
                stream.from.ip() != stream.to,
                "stream `{}` goes from {} to itself; give --from another address",
                stream.name,
                stream.to
            );
            ensure!(
                self.via.is_none_or(|via| via.is_ipv4() == stream.to.is_ipv4()),
                "stream `{}` goes to {}, and --via is of the other family; give the router's address of the same family",
                stream.name,
                stream.to
            );
        }
        if let Some(mac) = self.from_mac.filter(|mac| mac.0[0] & 1 == 1) {
            bail!("--from-mac {mac} is a group address, which no sender has; use one like 02:00:00:00:00:01");
        }
        let null = |port: &PortUri| matches!(port.kind, PortKind::Null { .. });
        if let Some(port) = self.machine.ports.iter().find(|port| null(port) && !self.tx_only) {
            bail!("port {port} swallows what is sent, and nothing comes back; use --tx-only, or --port ring");
        }
        let given = self.streams.iter().filter(|stream| stream.rate.is_some()).count();
        ensure!(
            given == 0 || given == self.streams.len(),
            "{given} of {} streams have a rate; give every --stream a rate=, or none and one --rate",
            self.streams.len()
        );
        self.rate_spec()?;
        for text in &self.expect {
            text.parse::<Expectation>()?;
        }
        ensure!(
            self.fault.is_none() || self.has_reflector(),
            "--fault acts in the in-process reflector, and no port of this run has one; use --port ring, or give --fault to the far `dropless reflect`"
        );
        Ok(())
    }

    /// Sequence spaces of the run.
    pub fn lanes(&self) -> usize {
        self.machine.ports.len() * usize::from(self.tx_queues) * self.streams.len()
    }

    /// Whether a port goes through the in-process reflector.
    pub fn has_reflector(&self) -> bool {
        self.machine.ports.iter().any(is_reflected_ring)
    }

    /// The asked rate of one port.
    pub fn rate_spec(&self) -> Result<RateSpec> {
        Ok(self.rate.parse::<RateSpec>()?)
    }

    /// The largest frame, with FCS.
    pub fn largest_frame(&self) -> Result<usize> {
        let mut largest = 64;
        for stream in &self.streams {
            largest = largest.max(stream.sizes()?.largest());
        }
        Ok(largest)
    }
}

impl ReflectPlan {
    /// Makes a plan of the command line.
    pub fn from_args(args: &ReflectArgs) -> Result<Self> {
        let addresses = if args.address.is_empty() {
            vec![IpAddr::V4(FAR_V4), IpAddr::V6(FAR_V6)]
        } else {
            args.address.clone()
        };
        let plan = Self {
            version: VERSION,
            command: "reflect".into(),
            machine: MachinePlan {
                ports: parse_ports(&args.ports)?,
                eal: args.eal.clone(),
                cores: parse_cores(args.cores.as_deref())?,
                burst: args.burst,
                descriptors: args.descriptors,
                buffers: args.buffers,
                no_huge: args.no_huge,
                force: args.force,
                wait_ns: duration_ns_or_zero(&args.wait, "--wait")?,
            },
            addresses,
            only_ours: args.only_ours,
            fault: args.fault.as_deref().map(str::parse).transpose()?,
            seed: args.seed.unwrap_or_else(clock_seed),
            queues: args.queues,
            duration_ns: args
                .duration
                .as_deref()
                .map(|text| nonzero_ns(text, "--duration"))
                .transpose()?,
            idle_exit_ns: args
                .idle_exit
                .as_deref()
                .map(|text| nonzero_ns(text, "--idle-exit"))
                .transpose()?,
            interval_ns: nonzero_ns(&args.interval, "--interval")?,
        };
        plan.machine.validate()?;
        ensure!(plan.queues > 0, "a port needs at least one queue; use --queues 1");
        check_queues("--queues", plan.queues)?;
        check_interval(plan.interval_ns)?;
        ensure!(
            !plan.machine.ports.iter().any(is_reflected_ring),
            "port ring has its reflector built in, nobody could send to this one; use `dropless send`, or a port that another program can reach"
        );
        Ok(plan)
    }
}

impl MachinePlan {
    fn validate(&self) -> Result<()> {
        ensure!(
            !self.ports.is_empty(),
            "no port: give at least one --port; `dropless ports` lists what is here"
        );
        ensure!(
            (1..=BURST_MAX / 2).contains(&self.burst),
            "--burst {} is not between 1 and {}",
            self.burst,
            BURST_MAX / 2
        );
        ensure!(
            (64..=32768).contains(&self.descriptors),
            "--descriptors {} is not between 64 and 32768; 1024 is usual",
            self.descriptors
        );
        for (index, port) in self.ports.iter().enumerate() {
            if let Some(twin) = self.ports[..index].iter().find(|other| same_device(other, port)) {
                bail!("ports {twin} and {port} are the same device; give each port once");
            }
        }
        let insists = |port: &&PortUri| {
            matches!(
                port.kind,
                PortKind::Xdp {
                    mode: host::XdpMode::ZeroCopy,
                    ..
                }
            )
        };
        if let Some(port) = self.ports.iter().find(insists) {
            bail!(
                "port {port}: DPDK's driver falls back to copying where the interface's has no zero copy, and cannot be told not to; use mode=auto"
            );
        }
        if self
            .ports
            .iter()
            .any(|port| matches!(port.kind, PortKind::Kernel { .. }))
        {
            bail!(
                "port kind kernel: is not a packet port of send and reflect yet; use packet:IF for the kernel's own path"
            );
        }
        Ok(())
    }
}

/// Whether this is a ring with the in-process reflector.
pub fn is_reflected_ring(port: &PortUri) -> bool {
    matches!(port.kind, PortKind::Ring { direct: false, .. })
}

fn same_device(one: &PortUri, other: &PortUri) -> bool {
    match (&one.kind, &other.kind) {
        (PortKind::Ring { name: a, .. }, PortKind::Ring { name: b, .. })
        | (PortKind::Null { name: a, .. }, PortKind::Null { name: b, .. }) => a.is_some() && a == b,
        (
            PortKind::Xdp { interface: a, .. } | PortKind::Packet { interface: a, .. },
            PortKind::Xdp { interface: b, .. } | PortKind::Packet { interface: b, .. },
        ) => a == b,
        (PortKind::Memif { path: a, id: i, .. }, PortKind::Memif { path: b, id: j, .. }) => a == b && i == j,
        (a, b) => a == b,
    }
}

fn parse_ports(texts: &[String]) -> Result<Vec<PortUri>> {
    texts.iter().map(|text| Ok(text.parse::<PortUri>()?)).collect()
}

fn parse_cores(text: Option<&str>) -> Result<CoreSet> {
    let Some(text) = text else {
        return Ok(CoreSet::default());
    };
    let cores: CoreSet = text.parse().map_err(|error| anyhow!("--cores: {error}"))?;
    ensure!(
        !cores.is_empty(),
        "--cores: the list is empty; write the cores as 0-3,5, or leave --cores out"
    );
    let mut seen = CoreSet::default();
    for part in text.split(',') {
        let part: CoreSet = part.parse().map_err(|error| anyhow!("--cores: {error}"))?;
        if let Some(core) = part.common(&seen).iter().next() {
            bail!("--cores {text} has core {core} twice; give each core once");
        }
        seen = seen.with(&part);
    }
    Ok(cores)
}

fn check_queues(flag: &str, queues: u16) -> Result<()> {
    ensure!(
        queues <= QUEUES_MAX,
        "{flag} {queues} is more than DPDK has for a port, {QUEUES_MAX}; use fewer"
    );
    Ok(())
}

fn check_interval(interval_ns: u64) -> Result<()> {
    let shown = measure::units::format_duration(interval_ns);
    ensure!(
        interval_ns >= 1_000_000,
        "--interval {shown} is too short; 1ms is the shortest"
    );
    Ok(())
}

/// A time that must not be 0.
fn nonzero_ns(text: &str, flag: &str) -> Result<u64> {
    let value = duration_ns_or_zero(text, flag)?;
    ensure!(
        value > 0,
        "{flag} {text} is no time at all; write e.g. 10s, 500ms, 2m"
    );
    Ok(value)
}

fn duration_ns_or_zero(text: &str, flag: &str) -> Result<u64> {
    let time = measure::units::parse_duration(text).map_err(|error| anyhow!("{flag}: {error}"))?;
    u64::try_from(time.as_nanos()).map_err(|_| anyhow!("{flag} {text} is longer than 584 years"))
}

/// A number with an optional k, M or G.
pub fn count(text: &str, flag: &str) -> Result<u64> {
    measure::units::parse_count(text).map_err(|error| anyhow!("{flag}: {error}"))
}

fn mac(text: &str, flag: &str) -> Result<MacAddress> {
    text.parse()
        .map_err(|error| anyhow!("{flag} {text}: {error}; write it as 02:00:00:00:00:01"))
}

fn clock_seed() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |since| since.as_nanos() as u64)
        // Short enough to be typed again.
        % 1_000_000_000
}
