//! `--stream`, `--to` and `--from`: what the probes of each stream look like.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, anyhow, bail, ensure};
use measure::fields::given_twice;

use super::destination::{Destination, Family, TO_PORT};
use super::{PathArgs, ProbeArgs};
use crate::about::{About as _, ensure_about};
use crate::plan::{FAR_V4, StreamPlan, count, is_group};

const FROM_PORT: u16 = 49152;
const NEAR_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);

/// The stream of the plain flags, its size left open: `None` for the smallest.
pub fn plain(path: &PathArgs, probe: &ProbeArgs) -> Result<StreamPlan> {
    let to = match &path.to {
        Some(text) => Destination::parse(text, Family::wanted(path, path.from.as_deref())).about("--to")?,
        None => Destination {
            address: IpAddr::V4(FAR_V4),
            ports: (TO_PORT, TO_PORT),
            host: None,
        },
    };
    let stream = StreamPlan {
        name: "0".into(),
        size: String::new(),
        rate: None,
        flows: flows(&probe.flows)?,
        to: to.address,
        to_host: to.host,
        to_ports: to.ports,
        from: source(path.from.as_deref(), to.address).about("--from")?,
        vlans: path.vlan.clone(),
        dscp: probe.dscp,
        ttl: probe.ttl,
    };
    check_vlans(&stream.vlans).about("--vlan")?;
    Ok(stream)
}

/// The bytes of UDP payload that `--payload` asks for, or the fewest.
pub fn payload(wanted: Option<usize>) -> Result<usize> {
    let payload = wanted.unwrap_or(wire::PROBE_LEN);
    ensure_about!(
        "--payload",
        payload >= wire::PROBE_LEN,
        "--payload {payload} is below the probe: at least {} bytes are needed; use --payload {0}",
        wire::PROBE_LEN
    );
    Ok(payload)
}

/// One stream from the plain flags, or one for each `--stream` on top of them; without a size, with so many bytes of UDP payload.
pub fn all(base: StreamPlan, texts: &[String], path: &PathArgs, payload: usize) -> Result<Vec<StreamPlan>> {
    if texts.is_empty() {
        return Ok(vec![with_size(base, payload)?]);
    }
    let one = |(index, text): (usize, &String)| {
        let stream = one(text, index, &base, path).with_context(|| format!("--stream '{text}'"))?;
        with_size(stream, payload)
    };
    let each = texts.iter().enumerate().map(one);
    each.collect::<Result<_>>().about("--stream")
}

/// A stream without a size gets that which carries so much payload behind its own headers.
fn with_size(mut stream: StreamPlan, payload: usize) -> Result<StreamPlan> {
    if stream.size.is_empty() {
        let headers = stream.minimum_size() - wire::PROBE_LEN;
        let most = measure::FRAME_SIZE_MAX - headers;
        ensure_about!(
            "--payload",
            payload <= most,
            "--payload {payload} is more than the largest frame carries behind {headers} bytes of headers and FCS; use --payload {most}, or less"
        );
        stream.size = (headers + payload).to_string();
    }
    Ok(stream)
}

/// Whether a `--stream` says something of this field.
pub fn names(text: &str, field: &str) -> bool {
    let is_of = |item: &String| item.split_once('=').is_some_and(|(name, _)| name == field);
    items(text).iter().any(is_of)
}

/// The fields of a `--stream`. A comma also separates sizes: an item without `=` goes on with the one before.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for item in text.split(',') {
        match items.last_mut() {
            Some(last) if !item.contains('=') => {
                last.push(',');
                last.push_str(item);
            }
            _ => items.push(item.into()),
        }
    }
    items
}

fn one(text: &str, index: usize, base: &StreamPlan, path: &PathArgs) -> Result<StreamPlan> {
    let mut stream = StreamPlan {
        name: index.to_string(),
        ..base.clone()
    };
    let (mut from, mut to) = (path.from.as_deref(), None);
    let fields = items(text);
    if let Some(field) = given_twice(fields.iter().map(String::as_str)) {
        bail!("`{field}` is given twice; give it once");
    }
    for item in &fields {
        let (field, value) = item
            .split_once('=')
            .ok_or_else(|| anyhow!("`{item}` is not FIELD=VALUE; write e.g. size=128,rate=50kpps"))?;
        match field {
            "name" => stream.name = value.into(),
            "size" => stream.size = value.into(),
            "rate" => {
                value.parse::<measure::RateSpec>()?;
                stream.rate = Some(value.into());
            }
            "flows" => stream.flows = flows(value)?,
            "to" => to = Some(value),
            "from" => from = Some(value),
            "dscp" => {
                stream.dscp = value
                    .parse()
                    .ok()
                    .filter(|dscp| *dscp < 64)
                    .ok_or_else(|| anyhow!("dscp={value} is not between 0 and 63"))?;
            }
            "ttl" => {
                stream.ttl = value
                    .parse()
                    .map_err(|_| anyhow!("ttl={value} is not between 0 and 255"))?;
            }
            "vlan" => {
                stream.vlans = value
                    .split(['.', ','])
                    .map(|id| id.parse().map_err(|_| anyhow!("vlan={value} is not ID or ID.ID")))
                    .collect::<Result<_>>()?;
                check_vlans(&stream.vlans)?;
            }
            _ => bail!(
                "unknown field `{field}`; fields are name, size, rate, flows, to, from, dscp, ttl, vlan"
            ),
        }
    }
    if let Some(text) = to {
        let to = Destination::parse(text, Family::wanted(path, from))?;
        (stream.to, stream.to_host, stream.to_ports) = (to.address, to.host, to.ports);
    }
    stream.from = source(from, stream.to)?;
    Ok(stream)
}

fn check_vlans(vlans: &[u16]) -> Result<()> {
    ensure_about!(
        "--vlan",
        vlans.len() <= 2,
        "--vlan takes one id, or two for QinQ (outer,inner); {} were given",
        vlans.len()
    );
    for id in vlans {
        ensure!((1..4095).contains(id), "VLAN id {id} is not between 1 and 4094");
    }
    Ok(())
}

fn flows(text: &str) -> Result<u32> {
    let flows = count(text, "--flows")?;
    ensure_about!(
        "--flows",
        (1..=16_000_000).contains(&flows),
        "--flows {text} is not between 1 and 16M"
    );
    Ok(flows as u32)
}

fn source(text: Option<&str>, to: IpAddr) -> Result<SocketAddr> {
    let Some(text) = text else {
        let ip = if to.is_ipv4() {
            IpAddr::V4(NEAR_V4)
        } else {
            IpAddr::V6(NEAR_V6)
        };
        return Ok(SocketAddr::new(ip, FROM_PORT));
    };
    let source = text
        .parse::<SocketAddr>()
        .or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, FROM_PORT)))
        .map_err(|_| {
            anyhow!("--from {text} is not IP or IP:PORT; write IPv6 with a port as [2001:db8::1]:49152")
        })?;
    ensure_about!(
        "--from",
        !is_group(source.ip()),
        "--from {text} is not a unicast address; nobody could send to it"
    );
    ensure_about!(
        "--from",
        source.port() > 0,
        "--from {text}: nothing comes back to port 0; write one from 1 on, or leave it out"
    );
    Ok(source)
}
