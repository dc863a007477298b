//! The validated plan of a comparison: what is tried, over what, and what is missing for the rest.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use host::cores::{self, Core};
use host::{PortUri, Sys};
use measure::comparison::Method;
use measure::search::{Ceiling, Goal, Mlr, Range};
use serde::Serialize;

use super::Args;
use super::firewall;
use super::missing::{absent, carries, has_tool, lacks, no_namespaces};
use report::published::own_id;
use wire::Template;

use crate::about::ensure_about;
use crate::plan::{USUAL_FRAME, optional, packet_rate, parse_cores, trial_duration};
use crate::run::kernel_port::interface_with;

/// No rate below this is searched: less is no question of the way.
const FLOOR_PPS: f64 = 1000.0;
/// What starting, asking and draining add to a trial.
pub const TRIAL_OVERHEAD: Duration = Duration::from_millis(1500);
/// Where whole frames come from, on a real network.
const FROM_PORT: u16 = 49152;
/// Ends of the virtual wire.
pub const NEAR: &str = "198.18.0.1";
pub const FAR: &str = "198.18.0.2";

/// One way, with the ports that its two ends are given.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    pub method: Method,
    /// The sender's port.
    pub near: String,
    /// The reflector's port; `None` where it runs on another machine.
    pub far: Option<String>,
    pub near_arguments: Vec<String>,
    /// Our own address, where the kernel would answer, beside us, that nobody listens.
    pub guarded: Option<SocketAddr>,
    /// The interface towards another machine.
    pub interface: Option<String>,
    /// Why it cannot be tried.
    pub missing: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ComparePlan {
    pub version: u32,
    pub command: &'static str,
    pub wanted_pps: Option<f64>,
    pub rates_pps: Vec<f64>,
    pub latency_pps: f64,
    pub size: usize,
    #[serde(rename = "duration_ns", serialize_with = "as_ns")]
    pub duration: Duration,
    pub trials: u32,
    pub firewall_rules: u32,
    /// Of the sender and of the reflector; the second is not used where that runs on another machine.
    pub cores: [usize; 2],
    pub far: Option<IpAddr>,
    pub ways: Vec<Way>,
}

fn as_ns<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(duration.as_nanos() as u64)
}

impl ComparePlan {
    pub fn from_args(args: &Args, sys: &Sys) -> Result<Self> {
        let wanted_pps = optional(args.rate.as_deref(), "--rate", packet_rate)?;
        let rates = args.rates.split(',').map(|text| packet_rate(text, "--rates"));
        let mut rates_pps = rates.collect::<Result<Vec<_>>>()?;
        rates_pps.extend(wanted_pps);
        rates_pps.sort_by(f64::total_cmp);
        rates_pps.dedup();
        let least = Template::minimum_frame_size(args.far.is_some_and(|far| far.is_ipv6()), 0);
        let size = args.size.unwrap_or(least);
        ensure!(
            (least..=USUAL_FRAME).contains(&size),
            "--size {size} is not between {least} and {USUAL_FRAME}"
        );
        ensure!(
            (1..=64).contains(&args.trials),
            "--trials {} is not between 1 and 64",
            args.trials
        );
        ensure!(
            args.firewall_rules <= 10_000,
            "--firewall-rules {} is above 10000",
            args.firewall_rules
        );
        let duration = trial_duration("--duration", &args.duration)?;
        ensure!(
            duration >= Duration::from_millis(200),
            "--duration {} is too short to see what a rate costs; give 200ms or more",
            args.duration
        );
        let method = |name: &String| name.parse().map_err(|error| anyhow!("--methods: {error}"));
        let chosen: Vec<Method> = args.methods.iter().map(method).collect::<Result<_>>()?;
        let network = Network::of(args, sys)?;
        let mut ways: Vec<Way> = Method::ALL
            .into_iter()
            .filter(|method| chosen.is_empty() || chosen.contains(method))
            .map(|method| network.way(method, args, sys))
            .collect();
        if chosen.is_empty() && args.near_port.is_none() {
            // Not asked for, and nothing to be said of it but how it is asked for, which the help page does.
            ways.retain(|way| way.method != Method::Ports);
        }
        ensure_about!(
            "--near-port",
            args.near_port.is_none() || ways.iter().any(|way| way.method == Method::Ports),
            "--near-port is of the way `ports`; add that to --methods, or leave it out"
        );
        if args.firewall_rules > 0 {
            ensure!(
                ways.iter().any(|way| way.method.is_sockets()),
                "--firewall-rules: none of these ways goes through the kernel's firewall; leave it out, or add one to --methods: {}",
                Method::ALL
                    .into_iter()
                    .filter(|method| method.is_sockets())
                    .map(Method::name)
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            ensure!(
                has_tool("nft"),
                "--firewall-rules needs nft, which is not installed; fix: apt-get install nftables"
            );
        }
        Ok(Self {
            version: 1,
            command: "compare",
            wanted_pps,
            rates_pps,
            latency_pps: packet_rate(&args.latency_rate, "--latency-rate")?,
            size,
            duration,
            trials: args.trials,
            firewall_rules: args.firewall_rules,
            cores: two_cores(args, sys)?,
            far: args.far,
            ways,
        })
    }

    /// The ways that can be tried.
    pub fn possible(&self) -> impl Iterator<Item = &Way> {
        self.ways.iter().filter(|way| way.missing.is_none())
    }

    /// Whether firewall rules are on the path of this way.
    pub fn has_rules(&self, method: Method) -> bool {
        self.firewall_rules > 0 && method.is_sockets()
    }

    /// Trials of one way, at most: without a rate, the search, each rate, latency, and what firewall rules cost.
    pub fn trials_of(&self, way: &Way) -> u32 {
        let rules = u32::from(self.has_rules(way.method)) * firewall::TRIALS;
        2 + self.trials + self.rates_pps.len() as u32 + rules
    }

    pub fn trials_in_all(&self) -> u32 {
        self.possible().map(|way| self.trials_of(way)).sum()
    }

    pub fn trials_after(&self, way: &Way) -> u32 {
        let later = self
            .possible()
            .skip_while(|other| other.method != way.method)
            .skip(1);
        later.map(|way| self.trials_of(way)).sum()
    }

    /// The search for the highest rate without loss of a way whose sender reached `reached_pps`: what `dropless search`
    /// does, but each rate is decided by one trial.
    pub fn search(&self, reached_pps: f64) -> Mlr {
        let ns = self.duration.as_nanos() as u64;
        let goal = Goal {
            relative_width: measure::comparison::NEAR_ENOUGH,
            initial_duration_ns: ns,
            final_duration_ns: ns,
            duration_sum_ns: ns,
            preceding_targets: 0,
            ..Goal::ndr()
        };
        let range = Range {
            min_pps: FLOOR_PPS,
            max_pps: reached_pps.max(2.0 * FLOOR_PPS),
            ceiling: Ceiling::Sender,
        };
        Mlr::new(vec![goal], range)
    }

    /// The cores that are used on this machine, in words.
    pub fn cores_in_words(&self) -> String {
        match self.cores {
            [near, _] if self.far.is_some() => format!("core {near}"),
            [near, far] => format!("cores {near} and {far}"),
        }
    }

    pub fn shares_a_core(&self) -> bool {
        self.far.is_none() && self.cores[0] == self.cores[1]
    }

    /// How long all of it takes, at most.
    pub fn takes(&self) -> Duration {
        (self.duration + TRIAL_OVERHEAD) * self.trials_in_all()
    }

    /// What is between the two ends.
    pub fn link(&self) -> String {
        let mut ways = self.possible();
        let both = |way: &Way| match &way.far {
            Some(far) => format!("{} and {far}", way.near),
            None => way.near.clone(),
        };
        let ports = ways.find(|way| way.method == Method::Ports).map(both);
        let wire = match self.far {
            Some(far) => Some(format!("the network to {far}")),
            None => self
                .lays_a_wire()
                .then(|| "a virtual wire (veth) between two network namespaces of this machine".to_owned()),
        };
        match (wire, ports) {
            (Some(wire), Some(ports)) => format!("{wire}, and by {ports}"),
            (Some(wire), None) => wire,
            (None, ports) => ports.unwrap_or_else(|| "shared memory".to_owned()),
        }
    }

    /// Whether any way goes over a virtual wire of our own.
    pub fn lays_a_wire(&self) -> bool {
        self.far.is_none() && self.possible().any(|way| way.method.needs_a_wire())
    }
}

/// What is between the ends, as far as addresses go.
enum Network {
    /// A virtual wire of our own, or why there is none.
    Virtual(Option<String>),
    /// Another machine, and from where it is reached.
    Real {
        near: IpAddr,
        interface: Option<String>,
        far: IpAddr,
    },
}

impl Network {
    fn of(args: &Args, sys: &Sys) -> Result<Self> {
        let Some(far) = args.far else {
            return Ok(Self::Virtual(no_namespaces()));
        };
        let near = near_address(far).with_context(|| format!("--far {far}: there is no route to it"))?;
        ensure!(
            near != far,
            "--far {far} is this machine; leave --far out, or name the other one"
        );
        let interface = interface_with(sys, near);
        Ok(Self::Real { near, interface, far })
    }

    fn way(&self, method: Method, args: &Args, sys: &Sys) -> Way {
        let mut way = Way {
            method,
            near: String::new(),
            far: None,
            near_arguments: Vec::new(),
            guarded: None,
            interface: None,
            missing: None,
        };
        let io = match method {
            Method::KernelMmsg => ",io=mmsg",
            Method::KernelUring => ",io=uring",
            _ => "",
        };
        match (method, self) {
            (Method::Ports, _) => {
                way.near = args.near_port.clone().unwrap_or_default();
                way.far.clone_from(&args.far_port);
                let mut ends = std::iter::once(&way.near).chain(&way.far);
                let wrong = ends.find_map(|uri| uri.parse::<PortUri>().err());
                if args.near_port.is_none() || (args.far.is_none() && args.far_port.is_none()) {
                    way.missing = Some(
                        "no ports given: --near-port URI and --far-port URI, for instance two NICs joined by a cable"
                            .into(),
                    );
                } else if let Some(error) = wrong {
                    way.missing = Some(error.to_string());
                } else {
                    way.missing = std::iter::once(&way.near)
                        .chain(&way.far)
                        .find_map(|uri| absent(uri, sys));
                }
                if let Self::Real { far, .. } = self {
                    way.near_arguments = vec!["--to".into(), far.to_string()];
                }
            }
            (Method::Memif, Self::Virtual(_)) => {
                let socket = format!("memif:@dropless-compare-{}", own_id());
                way.far = Some(format!("{socket},server"));
                way.near = socket;
            }
            (Method::Memif, Self::Real { .. }) => {
                way.missing = Some("shared memory does not reach another machine".into());
            }
            (_, Self::Virtual(missing)) => {
                way.missing.clone_from(missing);
                let end = |address: &str, interface: &str| match method {
                    _ if method.is_sockets() => format!("kernel:{address}{io}"),
                    Method::Xdp => format!("xdp:{interface},queues=2"),
                    _ => format!("{method}:{interface}"),
                };
                (way.near, way.far) = (end(NEAR, "near0"), Some(end(FAR, "far0")));
            }
            (_, Self::Real { near, interface, far }) => {
                way.near_arguments = vec!["--to".into(), far.to_string()];
                way.interface.clone_from(interface);
                if method.is_sockets() {
                    way.near = format!("kernel:{near}{io}");
                } else if let Some(interface) = interface {
                    way.near = format!("{method}:{interface}");
                    let from = SocketAddr::new(*near, FROM_PORT);
                    way.near_arguments.extend(["--from".into(), from.to_string()]);
                    way.guarded = Some(from);
                    if method == Method::Xdp {
                        way.missing = carries(interface, sys);
                    }
                } else {
                    way.missing = Some(format!("no interface has the address {near}"));
                }
            }
        }
        way.missing = way.missing.or_else(|| lacks(method, &way.near, sys));
        way
    }
}

/// The address of ours that the kernel would send from.
fn near_address(far: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = if far.is_ipv4() {
        [0; 4].into()
    } else {
        [0_u16; 8].into()
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((far, 7))?;
    Ok(socket.local_addr()?.ip())
}

fn two_cores(args: &Args, sys: &Sys) -> Result<[usize; 2]> {
    let wanted = parse_cores(args.cores.as_deref())?;
    let cores: Vec<Core> = if wanted.is_empty() {
        let count = cores::allowed(sys).len().clamp(1, 2);
        cores::pick(sys, count, None, &cores::polled(sys))?.workers
    } else {
        cores::check(sys, &wanted)?;
        wanted.iter().collect()
    };
    let list: Vec<usize> = cores.iter().map(|core| core.0 as usize).collect();
    match list[..] {
        [one] if args.cores.is_none() || args.far.is_some() => Ok([one, one]),
        [near, far] => Ok([near, far]),
        _ => bail!(
            "--cores {}: name two, one for the sender and one for the reflector",
            args.cores.as_deref().unwrap_or_default()
        ),
    }
}
