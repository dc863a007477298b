//! Reads a port URI.

use super::error::{KINDS, Kind, Reader, hint, kinds};
use super::options::Options;
use super::{KernelIo, MacAddress, PciAddress, PortKind, PortUri, UriError, XdpMode};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Linux interface names end here (`IFNAMSIZ` with its NUL).
const INTERFACE_NAME_MAX: usize = 15;
/// `sun_path` less its NUL.
const SOCKET_PATH_MAX: usize = 107;

/// DPDK takes a device's arguments apart at these, and a driver whose arguments it cannot read falls back on its defaults: another
/// peer, another name.
pub const TAKEN_APART: [char; 4] = [',', '=', '[', ']'];

impl FromStr for PortUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        if text.is_empty() {
            return Err(UriError::Empty);
        }
        if text.contains(char::is_control) {
            let escaped = text.escape_debug().to_string();
            return Err(UriError::wrong(
                &escaped,
                "a control character is in its name; write it without",
            ));
        }
        let end = text.find([':', ',']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let Some(kind) = KINDS.into_iter().find(|kind| kind.word == word) else {
            return Err(unknown_kind(text, word));
        };
        let reader = Reader { uri: text, kind };
        if let ("vdev", Some(arguments)) = (word, rest.strip_prefix(':')) {
            let arguments = reader.target(arguments, "DPDK's device arguments")?.to_owned();
            return Ok(Self::new(PortKind::Vdev { arguments }));
        }
        let (target, options) = match rest.strip_prefix(':') {
            Some(rest) => rest
                .split_once(',')
                .map_or((rest, None), |(target, options)| (target, Some(options))),
            None => ("", rest.strip_prefix(',')),
        };
        let parts: Vec<&str> = options.iter().flat_map(|options| options.split(',')).collect();
        reader.read(target, &parts)
    }
}

fn unknown_kind(uri: &str, word: &str) -> UriError {
    let meant = if uri.parse::<PciAddress>().is_ok() {
        format!(", did you mean pci:{uri}?")
    } else if uri.parse::<MacAddress>().is_ok() {
        format!(", did you mean mac:{uri}?")
    } else {
        hint(word, KINDS.iter().map(|kind| kind.word))
    };
    let meant = if meant.is_empty() && !uri.contains([':', ',', '/']) {
        format!(", did you mean xdp:{uri} or packet:{uri}?")
    } else {
        meant
    };
    let kinds = kinds();
    UriError::wrong(
        uri,
        format!("no kind of port is called '{word}'{meant}; kinds: {kinds}"),
    )
}

impl<'a> Reader<'a> {
    fn read(&self, target: &'a str, parts: &[&'a str]) -> Result<PortUri, UriError> {
        let (output, parts) = self.split_output(parts);
        let mut options = Options::new(self, parts)?;
        let queues = options.value("queues", "a number of queues from 1")?;
        let kind = match self.kind.word {
            "ring" | "null" => self.embedded(target, &mut options)?,
            "xdp" | "packet" | "tap" => self.interface(target, &mut options)?,
            "memif" | "vhost" | "virtio-user" => self.socket(target, &mut options)?,
            "pcap" => self.pcap(target, output)?,
            "kernel" => self.kernel(target, &mut options)?,
            "vdev" => return Err(self.no_target("DPDK's device arguments")),
            _ => self.hardware(target)?,
        };
        options.finish()?;
        Ok(PortUri { kind, queues })
    }

    /// A pcap port has a second file where others have their first option.
    fn split_output<'p>(&self, parts: &'p [&'a str]) -> (Option<&'a str>, &'p [&'a str]) {
        match parts.split_first() {
            Some((first, rest)) if self.kind.word == "pcap" && !first.starts_with("queues=") => {
                (Some(first), rest)
            }
            _ => (None, parts),
        }
    }

    fn embedded(&self, target: &str, options: &mut Options<'_>) -> Result<PortKind, UriError> {
        let good = target
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !good || target.len() > 16 {
            return Err(self.bad_target(target, "a name of at most 16 letters and digits"));
        }
        let name = (!target.is_empty()).then(|| target.to_owned());
        if self.kind.word == "null" {
            let wanted = "a frame length of 64 to 16384 bytes";
            return Ok(PortKind::Null {
                name,
                size: options.value_if("size", wanted, |n| (64..=16384).contains(n))?,
            });
        }
        let wanted = "a power of two from 64 to 1048576";
        let fits = |slots: &u32| slots.is_power_of_two() && (64..=1 << 20).contains(slots);
        Ok(PortKind::Ring {
            name,
            direct: options.flag("direct")?,
            size: options.value_if("size", wanted, fits)?,
        })
    }

    fn interface(&self, target: &str, options: &mut Options<'_>) -> Result<PortKind, UriError> {
        let name = self.argument(target, "the name of an interface")?.to_owned();
        let strange = name.contains(['/', ':'])
            || name.contains(char::is_whitespace)
            || name.contains(char::is_control);
        if strange || name.len() > INTERFACE_NAME_MAX || name == "." || name == ".." {
            return Err(self.bad_target(
                &name,
                "the name of an interface (at most 15 bytes, no '/', ':' or blank)",
            ));
        }
        Ok(match self.kind.word {
            "tap" => {
                let unicast = |mac: &MacAddress| mac.0[0] & 1 == 0;
                PortKind::Tap {
                    name,
                    mac: options.value_if("mac", "a unicast MAC address", unicast)?,
                }
            }
            "packet" => PortKind::Packet {
                interface: name,
                qdisc_bypass: options.flag("qdisc-bypass")?,
            },
            _ => PortKind::Xdp {
                interface: name,
                start: options.value("start", "the number of a queue")?,
                mode: options
                    .value(
                        "mode",
                        "copy or auto (zero copy where the interface's driver has it)",
                    )?
                    .unwrap_or_default(),
            },
        })
    }

    fn socket(&self, target: &str, options: &mut Options<'_>) -> Result<PortKind, UriError> {
        let path = PathBuf::from(self.argument(target, "the path of a socket")?);
        if target.len() > SOCKET_PATH_MAX {
            return Err(self.bad_target(target, "a socket path of at most 107 bytes (the kernel's limit)"));
        }
        Ok(match self.kind.word {
            "memif" => {
                let (server, zero_copy) = (options.flag("server")?, options.flag("zero-copy")?);
                if server && zero_copy {
                    return Err(self.wrong(
                        "server and zero-copy exclude each other; give zero-copy to the client's end",
                    ));
                }
                let wanted = "log2 of the ring's slots, 5 to 14";
                PortKind::Memif {
                    path,
                    server,
                    id: options.value("id", "a number")?.unwrap_or(0),
                    zero_copy,
                    size_log2: options.value_if("size", wanted, |n| (5..=14).contains(n))?,
                }
            }
            "vhost" => PortKind::Vhost {
                path,
                client: options.flag("client")?,
            },
            _ => PortKind::VirtioUser {
                path,
                server: options.flag("server")?,
            },
        })
    }

    fn pcap(&self, input: &str, output: Option<&str>) -> Result<PortKind, UriError> {
        let file = |name: &str| (name != "-").then(|| PathBuf::from(name));
        let input = file(self.argument(input, "a pcap file to read, or -")?);
        let output = output.filter(|name| !name.is_empty());
        let output = output
            .map(|name| self.argument(name, "a pcap file to write"))
            .transpose()?
            .and_then(file);
        if input.is_none() && output.is_none() {
            return Err(self.bad_target("-", "a port: it needs a file to read or a file to write"));
        }
        Ok(PortKind::Pcap { input, output })
    }

    fn kernel(&self, target: &str, options: &mut Options<'_>) -> Result<PortKind, UriError> {
        let io = options.value("io", "call, mmsg or uring")?.unwrap_or_default();
        let target = self.target(target, "a local IP address")?;
        let bare = target.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let (address, port) = if let Ok(address) = bare.unwrap_or(target).parse::<IpAddr>() {
            (address, None)
        } else if let Ok(socket) = target.parse::<SocketAddr>() {
            (socket.ip(), Some(socket.port()))
        } else {
            return Err(self.bad_target(target, "ADDR or ADDR:PORT ([ADDR]:PORT for IPv6)"));
        };
        Ok(PortKind::Kernel { address, port, io })
    }

    fn hardware(&self, target: &str) -> Result<PortKind, UriError> {
        let bad = |wanted| self.bad_target(target, wanted);
        Ok(match self.kind.word {
            "pci" => PortKind::Pci {
                address: self.target(target, "a PCI address")?.parse().map_err(bad)?,
            },
            "vmbus" => PortKind::Vmbus {
                id: self
                    .target(target, "the UUID of a VMBus device")?
                    .parse()
                    .map_err(bad)?,
            },
            _ => PortKind::Mac {
                address: self.target(target, "a MAC address")?.parse().map_err(bad)?,
            },
        })
    }

    fn target<'t>(&self, target: &'t str, wanted: &str) -> Result<&'t str, UriError> {
        if target.is_empty() {
            Err(self.no_target(wanted))
        } else {
            Ok(target)
        }
    }

    /// A target that becomes part of a device's arguments.
    fn argument<'t>(&self, target: &'t str, wanted: &str) -> Result<&'t str, UriError> {
        let target = self.target(target, wanted)?;
        match target.chars().find(|c| TAKEN_APART.contains(c)) {
            Some(found) => Err(self.wrong(format!(
                "'{found}' is in '{target}', and DPDK takes arguments apart there; choose a name without it"
            ))),
            None => Ok(target),
        }
    }

    fn no_target(&self, wanted: &str) -> UriError {
        let Kind { word, form, .. } = self.kind;
        self.wrong(format!("{word} needs {wanted} after the colon; write {form}"))
    }

    fn bad_target(&self, target: &str, wanted: &str) -> UriError {
        self.wrong(format!("'{target}' is not {wanted}"))
    }
}

impl FromStr for KernelIo {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Call, Self::Mmsg, Self::Uring];
        all.into_iter().find(|io| io.name() == text).ok_or(())
    }
}

impl FromStr for XdpMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Auto, Self::Copy];
        all.into_iter().find(|mode| mode.name() == text).ok_or(())
    }
}
