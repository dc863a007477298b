//! `kernel:`: plain UDP sockets.

use super::look::{Look, Prepared, as_root};
use crate::{Fix, Problem};
use itertools::Itertools as _;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};

/// The address must be one of this machine's, the port free.
pub fn check(look: &Look<'_>, address: IpAddr, port: Option<u16>) -> Result<Prepared, Problem> {
    if address.is_unspecified() {
        return Err(look.problem(
            format!("{address} stands for every address of this machine, and replies must come from one"),
            Fix::advice("name the address; `ip address` lists what this machine has"),
        ));
    }
    let ours: Vec<IpAddr> = look.sys.addresses.iter().map(|(_, ip)| *ip).collect();
    if !address.is_loopback() && !ours.contains(&address) {
        let list = ours.iter().join(", ");
        let found = format!("{address} is not an address of this machine (it has: {list})");
        let length = if address.is_ipv4() { 32 } else { 128 };
        let fix = if address.is_multicast() {
            Fix::advice("use an address of this machine")
        } else {
            Fix::one(format!("ip address add {address}/{length} dev lo"))
                .undone_by([format!("ip address del {address}/{length} dev lo")])
        };
        return Err(look.problem(found, fix));
    }
    let Some(port) = port else {
        return Ok(Prepared::of(look.uri));
    };
    match UdpSocket::bind((address, port)).map_err(|error| error.kind()) {
        Err(ErrorKind::AddrInUse) => {
            let fix =
                format!("choose another port, or stop the process that this shows: ss -ulpn sport = :{port}");
            Err(look.problem(format!("UDP port {port} is in use"), Fix::advice(fix)))
        }
        Err(ErrorKind::PermissionDenied) => {
            Err(look.problem(format!("UDP port {port} is reserved for root"), as_root()))
        }
        _ => Ok(Prepared::of(look.uri)),
    }
}
