//! The plan of a `send` run.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use dataplane::fault::FaultSpec;
use host::{MacAddress, Medium, PortTraits};
use measure::{Note, RateSpec, Summary, expect};
use serde::{Deserialize, Serialize};

use super::foreign::{Foreign, Named};
use super::kernel;
use super::{LANES_MAX, MachinePlan, StreamPlan, VERSION, VerifyPlan, check_interval, is_group};
use crate::about::{About as _, bail_about, ensure_about};

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
    /// After how much quiet the path has nothing left to give, ns, where that is known; else after `drain_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_ns: Option<u64>,
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

impl SendPlan {
    /// Reads a plan that an earlier run wrote, or somebody else.
    pub fn load(path: &Path) -> Result<Foreign<Self>> {
        let named = Named {
            flag: "--plan",
            path,
            advice: "name the plan.json of a `dropless send` run",
        };
        let plan: Self = named.read("send", VERSION)?;
        plan.validate()?;
        Ok(Foreign::new(plan, |plan| &plan.machine, &named))
    }

    /// Refuses to wait for next to nothing.
    fn validate_waits(&self) -> Result<()> {
        ensure_about!(
            "--drain",
            self.drain_ns >= 1_000_000,
            "with a --drain below 1 ms every packet would count as late; use --drain 1ms or more"
        );
        ensure!(
            self.quiet_ns.is_none_or(|quiet| quiet >= 1_000_000),
            "the plan's quiet_ns is below 1 ms: what is under way for longer would count as lost"
        );
        Ok(())
    }

    /// Refuses a router that nobody would ask for.
    fn validate_router(&self) -> Result<()> {
        let Some(via) = self.via else { return Ok(()) };
        if let Some(mac) = self.to_mac {
            bail_about!(
                "--via",
                "--via {via} is asked for its MAC address, and --to-mac {mac} gives one; leave one of them out"
            );
        }
        let mut ports = self.machine.ports.iter();
        if let Some(port) = ports
            .find(|port| !port.kind.traits().has_neighbours && port.kind.traits().medium != Medium::Sockets)
        {
            bail_about!(
                "--via",
                "--via {via} means nothing to port {port}, where nobody is asked for a MAC address; leave --via out"
            );
        }
        Ok(())
    }

    /// Refuses ends that cannot speak with each other.
    fn validate_ends(&self, stream: &StreamPlan) -> Result<()> {
        // A socket sends from the address in its port's name.
        let source = if self.machine.has(|traits| traits.medium == Medium::Sockets) {
            "give --to, or the port kernel:ADDR,"
        } else {
            "give --from"
        };
        ensure!(
            stream.from.is_ipv4() == stream.to.is_ipv4(),
            "stream `{}` goes from {} to {}: both must be IPv4, or both IPv6; {source} an address of the same family",
            stream.name,
            stream.from.ip(),
            stream.to
        );
        ensure!(
            stream.from.ip() != stream.to,
            "stream `{}` goes from {} to itself; {source} another address",
            stream.name,
            stream.to
        );
        ensure!(
            self.via.is_none_or(|via| via.is_ipv4() == stream.to.is_ipv4()),
            "stream `{}` goes to {}, and --via is of the other family; give the router's address of the same family",
            stream.name,
            stream.to
        );
        // Those of sockets have one flow, from the address in the port's name.
        let ports = 0..self.machine.ports.len();
        let counts_on =
            |last: Option<IpAddr>| last.is_none_or(|last| last < stream.from.ip() || is_group(last));
        ensure!(
            !ports.map(|port| stream.ends(port).last_source()).any(counts_on),
            "stream `{}` counts its source addresses up from {} beyond unicast ones ({} flows a port); {source} a lower address, or use fewer --flows",
            stream.name,
            stream.from.ip(),
            stream.flows
        );
        Ok(())
    }

    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        self.machine.validate()?;
        ensure!(
            self.tx_queues > 0 && self.rx_queues > 0,
            "a port needs at least one queue each way; use --tx-queues 1 --rx-queues 1"
        );
        check_interval(self.interval_ns)?;
        self.validate_waits()?;
        ensure_about!(
            "--count",
            self.count != Some(0),
            "--count 0 sends nothing; give the number of packets"
        );
        ensure_about!(
            "--backlog",
            self.backlog != Some(0),
            "--backlog 0 gives up all that is due; give 1 or more, or leave it out"
        );
        ensure!(!self.streams.is_empty(), "a send run needs at least one stream");
        measure::interval::slots_for(self.streams.len(), self.interval_ns, self.drain_ns)?;
        self.validate_router()?;
        let lanes = self.lanes();
        ensure!(
            lanes <= LANES_MAX,
            "{lanes} lanes (ports x transmit queues x streams) are more than {LANES_MAX}; use fewer streams or queues"
        );
        // `queues=N` of a port are those that receive.
        self.machine
            .check_queues("--tx-queues", self.tx_queues, |_| true)?;
        self.machine
            .check_queues("--rx-queues", self.rx_queues, |port| port.queues.is_none())?;
        for stream in &self.streams {
            let (minimum, sizes) = (stream.minimum_size(), stream.sizes()?);
            for (size, _) in sizes.sizes() {
                ensure!(
                    size >= minimum,
                    "frame size {size} is below the probe: stream `{}` needs at least {minimum} bytes (headers, 18-byte probe, FCS); use --size {minimum}",
                    stream.name
                );
            }
            self.validate_ends(stream)?;
        }
        if let Some(mac) = self.from_mac.filter(|mac| mac.0[0] & 1 == 1) {
            bail_about!(
                "--from-mac",
                "--from-mac {mac} is a multicast address, which cannot be a source; use one like 02:00:00:00:00:01"
            );
        }
        let first = |wanted: fn(PortTraits) -> bool| {
            let mut ports = self.machine.ports.iter();
            ports.find(|port| wanted(port.kind.traits()))
        };
        if let Some(port) = first(|traits| traits.swallows).filter(|_| !self.tx_only) {
            bail_about!(
                "--port",
                "port {port} discards what is sent, so that nothing comes back; use --port ring, or `dropless send --tx-only`"
            );
        }
        if let Some(port) = first(|traits| traits.holds_sent).filter(|_| self.tx_only) {
            bail!(
                "with --tx-only nothing receives from port {port}: it would be full at once; use --port null"
            );
        }
        for (index, stream) in self.streams.iter().enumerate() {
            ensure_about!(
                "--stream",
                self.streams[..index]
                    .iter()
                    .all(|other| other.name != stream.name),
                "two streams are called `{}`; give each --stream a name= of its own",
                stream.name
            );
        }
        let given = self.streams.iter().filter(|stream| stream.rate.is_some()).count();
        ensure_about!(
            "--stream",
            given == 0 || given == self.streams.len(),
            "{given} of {} streams have a rate; give every --stream a rate=, or none of them and one --rate",
            self.streams.len()
        );
        kernel::check_send(self)?;
        self.rate_spec()?;
        expect::check::<Summary>(&self.expect).about("--expect")?;
        ensure_about!(
            "--fault",
            self.fault.is_none() || self.has_reflector(),
            "--fault acts in the in-process reflector, and no port of this run has one; use --port ring, or give --fault to the far `dropless reflect`"
        );
        Ok(())
    }

    /// The hosts that probes go to by name, and the addresses that were found for them, once each.
    pub fn hosts(&self) -> Vec<Note> {
        let mut found = BTreeSet::new();
        for stream in &self.streams {
            found.extend(stream.to_host.as_ref().map(|host| (host, stream.to)));
        }
        let note = |(host, address)| Note::new("resolved", format!("{host} is {address}"));
        found.into_iter().map(note).collect()
    }

    /// What was asked for and does nothing in this run. It is no error: one file of flags, and one plan, is for many runs.
    pub fn without_effect(&self) -> Vec<Note> {
        let is_max = matches!(self.rate_spec(), Ok(RateSpec::Max))
            && self.streams.iter().any(|stream| stream.rate.is_none());
        let backlog = "--backlog did nothing: at --rate max no packet is due at a time, so that none is late";
        let verify = "--verify did nothing: with --tx-only nothing that comes back is looked at";
        let asked = [
            (self.backlog.is_some() && is_max, backlog),
            (self.tx_only && self.verify != VerifyPlan::Checksum, verify),
        ];
        let idle = asked.into_iter().filter(|(is_idle, _)| *is_idle);
        idle.map(|(_, text)| Note::new("did_nothing", text)).collect()
    }

    /// Sequence spaces of the run.
    pub fn lanes(&self) -> usize {
        self.machine.ports.len() * usize::from(self.tx_queues) * self.streams.len()
    }

    /// The first stream to each far side.
    pub fn far_sides(&self) -> impl Iterator<Item = usize> + '_ {
        let mut known = BTreeSet::new();
        let each = self.streams.iter().enumerate();
        let first = each.filter(move |(_, stream)| known.insert((stream.to, &stream.vlans)));
        first.map(|(index, _)| index)
    }

    /// Whether a port goes through the in-process reflector.
    pub fn has_reflector(&self) -> bool {
        self.machine.has(|traits| traits.is_reflected)
    }

    /// Refuses cores that would have nothing to do.
    pub fn check_cores(&self) -> Result<()> {
        // Some kinds of port have as many queues that receive as others that send.
        let pairs = self.tx_queues.max(self.rx_queues);
        let sending = self.machine.ports.len() * usize::from(self.tx_queues);
        let all = sending + self.machine.queues_of_all(pairs);
        let (most, those) = match (self.tx_only, self.has_reflector()) {
            (true, _) => (sending, "one for each transmit queue"),
            (_, true) => (
                all + 1,
                "one for each queue and direction, and one for the reflector",
            ),
            (_, false) => (all, "one for each queue and direction"),
        };
        self.machine
            .check_cores(most, &format!("{those}; name fewer, or use more queues"))
    }

    /// The asked rate of one port.
    pub fn rate_spec(&self) -> Result<RateSpec> {
        self.rate.parse::<RateSpec>().about("--rate")
    }

    /// The largest frame, with FCS.
    pub fn largest_frame(&self) -> Result<usize> {
        let mut largest = 64;
        for stream in &self.streams {
            largest = largest.max(stream.sizes()?.largest());
        }
        Ok(largest)
    }

    /// The MTU that the frames need, bytes: it counts neither header nor FCS nor the tag of a frame that has one. Of two tags the
    /// outer is one of 802.1ad, and for that the kernel leaves no room (`net/packet/af_packet.c`, `tpacket_snd`).
    pub fn mtu(&self) -> Result<usize> {
        let of = |stream: &StreamPlan| {
            let beside = if stream.vlans.len() == 1 { 22 } else { 18 };
            Ok(stream.sizes()?.largest().saturating_sub(beside))
        };
        let each: Result<Vec<usize>> = self.streams.iter().map(of).collect();
        Ok(each?.into_iter().max().unwrap_or(0))
    }
}
