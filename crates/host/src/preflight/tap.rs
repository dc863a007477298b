//! `tap:`: a new interface of this kernel.

use super::look::{Look, Prepared};
use crate::capability::Capability;
use crate::interface::Sort;
use crate::modules::{Module, module};
use crate::{Fix, Problem};

/// The name must be free, and the TUN driver there.
pub fn check(look: &Look<'_>, name: &str) -> Result<Prepared, Problem> {
    if let Some(interface) = look.interfaces.iter().find(|interface| interface.name == name) {
        let fix = Fix::advice(format!("choose another name, such as tap:{}", free_name(look)));
        if interface.sort != Sort::Tap {
            return Err(look.problem(
                format!("an interface called {name} exists and is not a TAP interface"),
                fix,
            ));
        }
        // A TAP has a carrier while a process holds it open.
        if interface.link.is_some_and(|link| link.up) {
            return Err(look.problem(format!("another process uses the TAP interface {name}"), fix));
        }
    }
    look.capabilities(&[Capability::NetAdmin], "creating a TAP interface")?;
    look.own_driver()?;
    if !look.sys.exists("/dev/net/tun") {
        let fix = match module(look.sys, "tun") {
            Module::Present => {
                Fix::all(["mkdir -p /dev/net", "mknod /dev/net/tun c 10 200"]).undone_by(["rm /dev/net/tun"])
            }
            Module::Absent => Fix::kernel_with("CONFIG_TUN"),
            Module::Loadable | Module::Unknown => Fix::one("modprobe tun").undone_by(["modprobe -r tun"]),
        };
        return Err(look.problem("/dev/net/tun does not exist", fix));
    }
    Ok(Prepared {
        interface: Some(name.to_owned()),
        ..Prepared::of(look.uri)
    })
}

fn free_name(look: &Look<'_>) -> String {
    let taken = |name: &String| look.interfaces.iter().any(|interface| &interface.name == name);
    let mut names = (0..=look.interfaces.len()).map(|n| format!("dropless{n}"));
    names.find(|name| !taken(name)).unwrap_or_default()
}
