//! The load of one port: rates, schedule, templates and neighbours, worked out before anything is sent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anyhow::{Context as _, Result, bail};
use dataplane::resolve::{NeighbourQuery, Question, request};
use host::Medium;
use measure::{Entry, Note, Rate, Schedule, StreamWeights};
use wire::neighbour::parse_reply;
use wire::{Addresses, ReflectorCounters, Template, TemplateSpec};

use super::asking;
use super::wiring::Times;
use crate::about::ensure_about;
use crate::plan::{SendPlan, StreamPlan};
use crate::run::open::{Dpdk, OpenPort};
use crate::run::signals::Interrupt;

/// Who takes the packets of a port that has no neighbours to ask.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Requests, one a second, until a neighbour is given up.
const ATTEMPTS: usize = 3;

/// What one port is to send.
pub struct Load {
    /// Packets per second of the whole port.
    pub rate: Rate,
    /// The cycle of streams and templates.
    pub schedule: Vec<Entry>,
    /// Mean frame size with FCS over the cycle.
    pub mean_size: f64,
    /// Who this port is.
    pub me: Addresses,
    /// Destination MAC address of each stream.
    pub to_mac: Vec<[u8; 6]>,
    /// Whether a neighbour was asked for its MAC address.
    pub asked: bool,
    /// The first stream to each far side that is asked, and what that side had counted before, if it said so.
    pub before: Vec<(usize, Option<ReflectorCounters>)>,
    pub notes: Vec<Note>,
}

/// Packets that a stream sends in a row where there is no rate to keep: the cost of a packet is then nearly the same
/// whatever the number of streams.
const TURN: usize = 64;

/// Works out the load of port number `index`.
pub fn of_port(plan: &SendPlan, index: usize, open: &OpenPort<'_>) -> Result<Load> {
    let link_bps = link_mbps(open).map(|mbps| f64::from(mbps) * 1e6);
    let mut streams = Vec::new();
    let (mut total_pps, mut bits) = (0.0, 0.0);
    for stream in &plan.streams {
        let mix = stream.sizes()?;
        let pps = match &stream.rate {
            None => 1.0,
            Some(text) => match text.parse::<measure::RateSpec>()?.resolve(mix.mean(), link_bps)? {
                Rate::Pps(pps) => pps,
                Rate::Max => bail!(
                    "stream `{}`: rate max is not a share; give a number, or one --rate max for all",
                    stream.name
                ),
            },
        };
        total_pps += pps;
        bits += pps * mix.mean();
        streams.push((pps, mix));
    }
    let schedule = Schedule::build(&StreamWeights::of(&streams))?;
    let mean_size = bits / total_pps;
    let is_streams = plan.streams.iter().all(|stream| stream.rate.is_some());
    let rate = if is_streams {
        Rate::Pps(total_pps)
    } else {
        plan.rate_spec()?.resolve(mean_size, link_bps)?
    };
    // A count of packets is dealt out one by one, so that a short run has them of every stream.
    let schedule = match rate {
        Rate::Max if streams.len() > 1 && plan.count.is_none() => schedule.in_turns(TURN),
        _ => schedule,
    };
    let mut notes = Vec::new();
    if let (Rate::Pps(pps), Some(link_bps)) = (rate, link_bps) {
        let line = link_bps / ((mean_size + 20.0) * 8.0);
        ensure_about!(
            if is_streams { "--stream" } else { "--rate" },
            pps <= line * 1.0001,
            "--rate asks for {} on port {}, whose line rate is {} at {mean_size:.0} bytes; use --rate 100% or less",
            report::number::pps(pps),
            open.uri,
            report::number::pps(line)
        );
    }
    if schedule.share_error() > 1e-3 {
        notes.push(Note::new(
            "stream_rates",
            format!(
                "stream rates are met within {:.2}% (the cycle of streams is bounded)",
                schedule.share_error() * 100.0
            ),
        ));
    }
    let mac = plan.from_mac.map_or(open.mac, |mac| mac.0);
    let mut ips: Vec<IpAddr> = plan.streams.iter().map(|stream| stream.source(index)).collect();
    ips.sort_unstable();
    ips.dedup();
    Ok(Load {
        rate,
        schedule: schedule.entries().to_vec(),
        mean_size,
        me: Addresses { mac, ips },
        to_mac: Vec::new(),
        asked: false,
        before: Vec::new(),
        notes,
    })
}

/// Finds the MAC address that each stream's packets go to.
pub fn find_neighbours<'e>(
    plan: &SendPlan,
    load: &mut Load,
    dpdk: Option<Dpdk<'_, 'e>>,
    open: &mut OpenPort<'e>,
    interrupt: &Interrupt,
) -> Result<()> {
    let fixed = match (&plan.to_mac, open.uri.kind.traits().has_neighbours) {
        (Some(mac), _) => Some(mac.0),
        (None, false) => Some(open.far.as_ref().map_or(NOBODY, |far| far.mac)),
        (None, true) => None,
    };
    if let Some(mac) = fixed {
        load.to_mac = vec![mac; plan.streams.len()];
        return Ok(());
    }
    load.asked = true;
    if open.sockets().is_some() {
        // The kernel finds them.
        load.to_mac = vec![NOBODY; plan.streams.len()];
        return Ok(());
    }
    let mut known: BTreeMap<(IpAddr, Vec<u16>), [u8; 6]> = BTreeMap::new();
    for stream in &plan.streams {
        let target = plan.via.unwrap_or(stream.to);
        let key = (target, stream.vlans.clone());
        let mac = match known.get(&key) {
            Some(mac) => *mac,
            None => ask(stream, target, load, dpdk, open, interrupt)?,
        };
        known.insert(key, mac);
        load.to_mac.push(mac);
    }
    Ok(())
}

/// Asks each far side what it has counted so far. Seldomer each time: a kernel that nobody listens on answers each question
/// with an error, and has few of these to give. Behind one that is silent nobody waits for another.
pub fn ask_before<'e>(
    plan: &SendPlan,
    (load, index): (&mut Load, usize),
    dpdk: Option<Dpdk<'_, 'e>>,
    open: &mut OpenPort<'e>,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut is_silent = false;
    for stream in plan.far_sides() {
        let nonce = crate::run::random();
        let question = Question {
            frame: &ReflectorCounters::question(&spec(plan, load, index, stream, 0), nonce)?,
            me: &load.me,
            waits: &asking::waits([50, 100, 150]),
        };
        let answer = |frame: &[u8]| ReflectorCounters::read(frame, nonce);
        let before = if is_silent {
            None
        } else {
            asking::over(open, dpdk, &question, &answer, interrupt)?
        };
        is_silent |= before.is_none();
        load.before.push((stream, before));
    }
    Ok(())
}

fn ask<'e>(
    stream: &StreamPlan,
    target: IpAddr,
    load: &Load,
    dpdk: Option<Dpdk<'_, 'e>>,
    open: &mut OpenPort<'e>,
    interrupt: &Interrupt,
) -> Result<[u8; 6]> {
    let protocol = if target.is_ipv4() { "ARP" } else { "NDP" };
    let nobody = format!(
        "nobody answered {protocol} for {target} on port {} ({ATTEMPTS} requests in {ATTEMPTS} s); check --to and the far side, give --via for a router, or --to-mac",
        open.uri
    );
    let query = NeighbourQuery {
        me: load.me.clone(),
        vlans: stream.vlan_tags(),
        target,
    };
    let frame = request(&query).with_context(|| nobody.clone())?;
    let question = Question {
        frame: &frame,
        me: &load.me,
        waits: &asking::waits([1000; ATTEMPTS]),
    };
    let answer = |frame: &[u8]| parse_reply(frame, target);
    let mac = asking::over(open, dpdk, &question, &answer, interrupt)?;
    if mac.is_none() && interrupt.is_set() {
        bail!("interrupted while asking for {target} on port {}", open.uri);
    }
    mac.context(nobody)
}

/// The templates of one transmit queue, in the order that the schedule's entries count them.
pub fn templates(
    plan: &SendPlan,
    load: &Load,
    (port, lane_base): (usize, usize),
    times: &Times,
    offload: bool,
) -> Result<Vec<Template>> {
    let mut templates = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        for (size, _) in stream.sizes()?.sizes() {
            let template = Template::new(&TemplateSpec {
                frame_size: size,
                lane: times.first_lane.wrapping_add((lane_base + index) as u16),
                ..spec(plan, load, port, index, times.run)
            })?;
            templates.push(if offload {
                template.with_checksum_offload()
            } else {
                template
            });
        }
    }
    Ok(templates)
}

/// What the frames of a stream have in common, whatever their size and lane.
pub fn spec(plan: &SendPlan, load: &Load, port: usize, index: usize, run: u8) -> TemplateSpec {
    let stream = &plan.streams[index];
    TemplateSpec {
        src_mac: load.me.mac,
        dst_mac: load.to_mac[index],
        vlans: stream.vlan_tags(),
        frame_size: 0,
        ttl: stream.ttl,
        dscp: stream.dscp,
        run,
        ..stream.ends(port)
    }
}

/// The speed of the link behind a port. Drivers of software make one up, those of `xdp:` and `packet:` too: the kernel
/// knows what is behind its interface.
fn link_mbps(open: &OpenPort<'_>) -> Option<u32> {
    if open.uri.kind.traits().medium == Medium::Nic {
        return open.device()?.link().ok()?.speed_mbps;
    }
    host::interface::interface(&host::Sys::live(), open.interface()?)?
        .link?
        .speed_mbps
}

/// The rate of all ports together; `None` where one has no schedule.
pub fn total_rate(loads: &[Load]) -> Option<f64> {
    let rates = loads.iter().map(|load| match load.rate {
        Rate::Pps(pps) => Some(pps),
        Rate::Max => None,
    });
    rates.sum()
}
