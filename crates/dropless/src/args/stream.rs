//! `--stream`, `--to` and `--from`: what the probes of each stream look like.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::{PathArgs, ProbeArgs};
use crate::plan::{FAR_V4, StreamPlan, count};

/// UDP echo, as RFC 2544 appendix C.2.6.4 has it.
const TO_PORT: u16 = 7;
const FROM_PORT: u16 = 49152;
const NEAR_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);

/// The stream of the plain flags, its size left open: `None` for the smallest.
pub fn plain(path: &PathArgs, probe: &ProbeArgs) -> Result<StreamPlan> {
    let (to, to_ports) = match &path.to {
        Some(text) => destination(text)?,
        None => (IpAddr::V4(FAR_V4), (TO_PORT, TO_PORT)),
    };
    let stream = StreamPlan {
        name: "0".into(),
        size: String::new(),
        rate: None,
        flows: flows(&probe.flows)?,
        to,
        to_ports,
        from: source(path.from.as_deref(), to)?,
        vlans: path.vlan.clone(),
        dscp: probe.dscp,
        ttl: probe.ttl,
    };
    check_vlans(&stream.vlans)?;
    Ok(stream)
}

/// The frame size, with FCS, that carries so many bytes of UDP payload.
pub fn size_of_payload(stream: &StreamPlan, payload: usize) -> Result<String> {
    let headers = stream.minimum_size() - wire::PROBE_LEN;
    ensure!(
        payload >= wire::PROBE_LEN,
        "--payload {payload} is below the probe: at least {} bytes are needed; use --payload {0}",
        wire::PROBE_LEN
    );
    Ok((headers + payload).to_string())
}

/// One stream from the plain flags, or one for each `--stream` on top of them.
pub fn all(base: StreamPlan, texts: &[String], from: Option<&str>) -> Result<Vec<StreamPlan>> {
    if texts.is_empty() {
        return Ok(vec![with_size(base)]);
    }
    let each = texts.iter().enumerate();
    each.map(|(index, text)| one(text, index, &base, from).with_context(|| format!("--stream '{text}'")))
        .collect()
}

fn with_size(mut stream: StreamPlan) -> StreamPlan {
    if stream.size.is_empty() {
        stream.size = stream.minimum_size().to_string();
    }
    stream
}

fn one(text: &str, index: usize, base: &StreamPlan, explicit_from: Option<&str>) -> Result<StreamPlan> {
    let mut stream = StreamPlan {
        name: index.to_string(),
        ..base.clone()
    };
    let mut from = explicit_from;
    // A comma also separates sizes: an item without `=` goes on with the one before.
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
    for item in &items {
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
            "to" => (stream.to, stream.to_ports) = destination(value)?,
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
    stream.from = source(from, stream.to)?;
    Ok(with_size(stream))
}

fn check_vlans(vlans: &[u16]) -> Result<()> {
    ensure!(
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
    ensure!(
        (1..=16_000_000).contains(&flows),
        "--flows {text} is not between 1 and 16M"
    );
    Ok(flows as u32)
}

/// `IP`, `IP:PORT`, `IP:PORT-PORT`, `[IPv6]:PORT`...
fn destination(text: &str) -> Result<(IpAddr, (u16, u16))> {
    let wrong = || {
        anyhow!("--to {text} is not IP, IP:PORT or IP:PORT-PORT; write IPv6 with a port as [2001:db8::1]:7")
    };
    if let Ok(ip) = text.parse() {
        return Ok((checked(ip, text)?, (TO_PORT, TO_PORT)));
    }
    let (ip, ports) = text.rsplit_once(':').ok_or_else(wrong)?;
    let ip = ip
        .strip_prefix('[')
        .and_then(|ip| ip.strip_suffix(']'))
        .unwrap_or(ip);
    let ip = ip.parse().map_err(|_| wrong())?;
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (first, last) = port(first).zip(port(last)).ok_or_else(wrong)?;
    ensure!(
        first <= last,
        "--to {text}: the port range ends before it begins; write {last}-{first}"
    );
    Ok((checked(ip, text)?, (first, last)))
}

fn checked(ip: IpAddr, text: &str) -> Result<IpAddr> {
    ensure!(
        !is_group(ip),
        "--to {text} is not a unicast address; give the address of the one that sends probes back"
    );
    Ok(ip)
}

/// Whether this is no one's own address: multicast, broadcast or none at all.
fn is_group(ip: IpAddr) -> bool {
    ip.is_multicast() || ip.is_unspecified() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
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
    ensure!(
        !is_group(source.ip()),
        "--from {text} is not a unicast address; nobody could send to it"
    );
    Ok(source)
}
