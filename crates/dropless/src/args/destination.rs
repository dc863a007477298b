//! `--to`: an address or the name of a host, and ports.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use anyhow::{Result, anyhow, bail, ensure};
use host::{PortKind, PortUri};

use super::PathArgs;
use crate::plan::is_group;

/// UDP echo, as RFC 2544 appendix C.2.6.4 has it.
pub const TO_PORT: u16 = 7;

/// Where probes of a stream go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The address, given or found.
    pub address: IpAddr,
    /// First and last.
    pub ports: (u16, u16),
    /// The name that was given in the place of the address.
    pub host: Option<String>,
}

/// The family that addresses must be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// What the run sends from, as far as that is given: `from`, or the address of a socket.
    pub fn wanted(path: &PathArgs, from: Option<&str>) -> Option<Self> {
        let address = |text: &str| {
            let with_port = text.parse::<SocketAddr>().map(|address| address.ip());
            with_port.or_else(|_| text.parse::<IpAddr>()).ok()
        };
        let socket = |uri: &String| match uri.parse::<PortUri>().ok()?.kind {
            PortKind::Kernel { address, .. } => Some(address),
            _ => None,
        };
        let given = from.and_then(address);
        given.or_else(|| path.ports.iter().find_map(socket)).map(Self::of)
    }
}

impl Destination {
    /// Reads `IP`, `IP:PORT`, `IP:PORT-PORT`, `[IPv6]:PORT`..., or the same with a name, which is looked up now, and never again.
    pub fn parse(text: &str, family: Option<Family>) -> Result<Self> {
        let wrong = || {
            anyhow!(
                "--to {text} is neither an address nor a host's name, alone or with ports of 1 to 65535: write IP, IP:PORT or IP:PORT-PORT, and IPv6 with a port as [2001:db8::1]:7"
            )
        };
        if let Ok(ip) = text.parse() {
            return Self::at(ip, (TO_PORT, TO_PORT), None, text);
        }
        let (host, ports) = match text.rsplit_once(':') {
            Some((host, ports)) => {
                let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
                let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
                (host, port(first).zip(port(last)).ok_or_else(wrong)?)
            }
            None => (text, (TO_PORT, TO_PORT)),
        };
        ensure!(
            ports.0 <= ports.1,
            "--to {text}: the port range ends before it begins; write {}-{}",
            ports.1,
            ports.0
        );
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Ok(ip) = bare.unwrap_or(host).parse() {
            return Self::at(ip, ports, None, text);
        }
        if !is_name(host) {
            return Err(wrong());
        }
        Self::at(resolve(host, family)?, ports, Some(host.to_owned()), text)
    }

    fn at(address: IpAddr, ports: (u16, u16), host: Option<String>, text: &str) -> Result<Self> {
        ensure!(
            !is_group(address),
            "--to {text} is not a unicast address; give the address of the one that sends probes back"
        );
        Ok(Self { address, ports, host })
    }
}

/// Whether it may be the name of a host. What ends in a number is an address with a mistake in it, which some resolvers
/// would take for another one (RFC 3696, section 2: no top-level domain is all digits).
fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    text.chars().all(is_letter)
        && last.chars().any(|letter| !letter.is_ascii_digit())
        && !last.starts_with("0x")
}

/// The first address of the wanted family, in the order of the system's resolver.
fn resolve(host: &str, family: Option<Family>) -> Result<IpAddr> {
    let found = (host, 0).to_socket_addrs().map_err(|error| {
        anyhow!("--to {host}: nobody knows a host of that name ({error}); write its IP address")
    })?;
    first(host, found.map(|address| address.ip()), family)
}

fn first(host: &str, found: impl Iterator<Item = IpAddr>, family: Option<Family>) -> Result<IpAddr> {
    let found: Vec<IpAddr> = found.collect();
    let fits = |address: &&IpAddr| family.is_none_or(|family| Family::of(**address) == family);
    match (found.iter().find(fits), found.first(), family) {
        (Some(address), ..) => Ok(*address),
        (None, Some(other), Some(family)) => bail!(
            "--to {host} is {other}, and has no {} address, from which this run sends; give --from, or the port, an address of that family",
            family.name()
        ),
        _ => bail!("--to {host}: the name has no address; write its IP address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> impl Iterator<Item = IpAddr> + use<> {
        let list: Vec<IpAddr> = list.iter().filter_map(|text| text.parse().ok()).collect();
        list.into_iter()
    }

    #[test]
    fn the_first_address_of_the_family_is_taken() {
        let both = || addresses(&["2001:db8::1", "192.0.2.1", "192.0.2.2"]);
        let taken = |family| first("x", both(), family).ok().map(|address| address.to_string());
        assert_eq!(taken(None).as_deref(), Some("2001:db8::1"));
        assert_eq!(taken(Some(Family::V4)).as_deref(), Some("192.0.2.1"));
        assert_eq!(taken(Some(Family::V6)).as_deref(), Some("2001:db8::1"));
        let none = first("x", addresses(&["192.0.2.1"]), Some(Family::V6)).map_err(|error| error.to_string());
        assert!(none.is_err_and(|error| error.contains("--to x is 192.0.2.1, and has no IPv6 address")));
        assert!(first("x", addresses(&[]), None).is_err());
    }

    #[test]
    fn an_address_with_a_mistake_is_no_name() {
        for text in [
            "10.0.0.256",
            "10.1",
            "0x7f000001",
            "a b",
            "",
            "fe80::1%eth0",
            "2001:db8::g",
        ] {
            assert!(!is_name(text), "{text}");
        }
        for text in ["localhost", "far-end.lab", "rack2.example.", "a_b"] {
            assert!(is_name(text), "{text}");
        }
    }
}
