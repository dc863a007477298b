//! `xdp:` and `packet:`: an interface of the kernel, shared with the kernel.

use super::look::{Look, Prepared};
use super::namespace;
use crate::capability::Capability;
use crate::interface::{Interface, Sort};
use crate::nearest::nearest;
use crate::pci::PciDevice;
use crate::roles::{Role, in_words};
use crate::{Fix, Problem, Warning};
use itertools::Itertools as _;

/// A program without XDP fragments gets one page, less headroom and the shared info at its end.
const XDP_MTU_MAX: u32 = 3498;
/// Enough for the buffers of a few queues.
const LOCKED_BYTES_WANTED: u64 = 64 << 20;

/// `AF_XDP`.
pub fn xdp(look: &Look<'_>, name: &str, start: Option<u16>) -> Result<Prepared, Problem> {
    let interface = find(look, name)?;
    let wanted = [Capability::NetAdmin, Capability::NetRaw, Capability::Bpf];
    look.capabilities(&wanted, "AF_XDP")?;
    look.own_driver()?;
    protocol(look, "XDP", "CONFIG_XDP_SOCKETS")?;
    locked_memory(look)?;
    usable(look, interface)?;
    let roles = look.roles.get(name);
    if roles.is_some_and(|roles| roles.contains(&Role::SshSession)) {
        refused_role(look, &[interface])?;
    }
    let effect = "AF_XDP takes the packets of its queues away from the kernel";
    let mut notes = notes(look, interface, effect);
    queues(look, interface, start.unwrap_or(0), &mut notes)?;
    if let Some(id) = crate::xdp::program(look.sys, name) {
        let found = format!("an XDP program (id {id}) runs on {name} already");
        let fix = Fix::one(format!("ip link set dev {name} xdp off")).or("end whoever uses it first");
        return Err(look.problem(found, fix));
    }
    if let Some(mtu) = interface.mtu.filter(|mtu| *mtu > XDP_MTU_MAX) {
        let text = format!("{name} has an MTU of {mtu}: many drivers refuse XDP above {XDP_MTU_MAX}");
        let fix = Fix::one(format!("ip link set {name} mtu 1500"))
            .undone_by([format!("ip link set {name} mtu {mtu}")]);
        notes.push(Warning::new("xdp-mtu", text).with_fix(fix));
    }
    Ok(prepared(look, interface).with_notes(notes))
}

/// `AF_PACKET`.
pub fn packet(look: &Look<'_>, name: &str) -> Result<Prepared, Problem> {
    let interface = find(look, name)?;
    look.capabilities(&[Capability::NetRaw], "AF_PACKET")?;
    look.own_driver()?;
    protocol(look, "PACKET", "CONFIG_PACKET")?;
    usable(look, interface)?;
    let effect = "what dropless sends goes between the packets of the kernel, and it sees those that come";
    Ok(prepared(look, interface).with_notes(notes(look, interface, effect)))
}

fn prepared(look: &Look<'_>, interface: &Interface) -> Prepared {
    Prepared {
        numa_node: interface.numa_node,
        interface: Some(interface.name.clone()),
        ..Prepared::of(look.uri)
    }
}

/// The interface of this name, or where else it is, or what was probably meant.
fn find<'l>(look: &'l Look<'_>, name: &str) -> Result<&'l Interface, Problem> {
    if let Some(interface) = look.interfaces.iter().find(|interface| interface.name == name) {
        // One of the same name may be here, and what is read of it would be another one's.
        namespace::check_sys(look.sys, &look.uri.to_string())?;
        return Ok(interface);
    }
    if let Some((found, fix)) = namespace::hidden(look.sys, name) {
        return Err(look.problem(found, Fix::one(fix)));
    }
    let names = || look.interfaces.iter().map(|interface| interface.name.as_str());
    let found = format!(
        "no interface is called {name} (there are: {})",
        names().join(", ")
    );
    let kind = look.uri.kind.traits().name;
    let fix = match nearest(name, names()) {
        Some(near) => match look.roles.get(near) {
            Some(roles) => Fix::one("dropless ports").or(format!(
                "write {kind}:{near}, with care: it carries {} of this machine",
                in_words(roles)
            )),
            None => Fix::advice(format!("write {kind}:{near}")),
        },
        None => Fix::one("dropless ports"),
    };
    Err(look.problem(found, fix))
}

fn usable(look: &Look<'_>, interface: &Interface) -> Result<(), Problem> {
    let name = &interface.name;
    if interface.sort == Sort::NotEthernet {
        let fix = Fix::advice("choose an Ethernet interface; dropless ports lists them");
        return Err(look.problem(format!("interface {name} does not carry Ethernet frames"), fix));
    }
    if !interface.enabled {
        let fix = Fix::one(format!("ip link set {name} up")).undone_by([format!("ip link set {name} down")]);
        return Err(look.problem(format!("interface {name} is down"), fix));
    }
    Ok(())
}

fn notes(look: &Look<'_>, interface: &Interface, effect: &str) -> Vec<Warning> {
    let name = &interface.name;
    let mut notes = Vec::new();
    if let Some(roles) = look.roles.get(name) {
        let text = format!("{name} carries {} of this machine: {effect}", in_words(roles));
        notes.push(Warning::new("carries-traffic", text));
    }
    if interface.link.is_some_and(|link| !link.up) {
        notes.push(Warning::new("no-link", format!("{name} has no link yet")));
    }
    if let Some(master) = &interface.master {
        let fix = Fix::one(format!("ip link set {name} nomaster"))
            .undone_by([format!("ip link set {name} master {master}")]);
        let text = format!("{name} belongs to {master}, which takes what it receives");
        notes.push(Warning::new("enslaved", text).with_fix(fix));
    }
    if interface.sort == Sort::Loopback {
        let text = "the loopback leads back to this kernel only: every frame sent comes back, to the kernel's sockets, too";
        notes.push(Warning::new("loopback", text));
    }
    notes
}

/// The queues asked for must exist; queues not taken go on feeding the kernel.
fn queues(
    look: &Look<'_>,
    interface: &Interface,
    start: u16,
    notes: &mut Vec<Warning>,
) -> Result<(), Problem> {
    let name = &interface.name;
    let there = u32::from(interface.rx_queues);
    let asked = look.uri.queues.map(|queues| u32::from(queues.get()));
    if there == 0 {
        return Ok(());
    }
    let end = u32::from(start) + asked.unwrap_or(1);
    if end > there {
        let last = end - 1;
        let found = format!("queues up to {last} are asked for, and {name} has {there} receive queue(s)");
        // A veth counts its queues by direction.
        let set = |count: u32| match interface.sort {
            Sort::Device => format!("ethtool -L {name} combined {count}"),
            _ => format!("ethtool -L {name} rx {count} tx {count}"),
        };
        let fix = Fix::one(set(end)).undone_by([set(there)]);
        return Err(look.problem(found, fix));
    }
    if asked.is_none() && there > 1 {
        let text = format!(
            "{name} spreads what it receives over {there} queues, and a queue that is not taken feeds the kernel"
        );
        let fix = Fix::advice(format!(
            "write xdp:{name},queues={there}, or: ethtool -L {name} combined 1"
        ));
        notes.push(Warning::new("queues-left", text).with_fix(fix));
    }
    Ok(())
}

/// The kernel lists the address families it was built with.
fn protocol(look: &Look<'_>, name: &str, option: &str) -> Result<(), Problem> {
    let Some(table) = look.sys.text("/proc/net/protocols") else {
        return Ok(());
    };
    let mut families = table.lines().map(|line| line.split_whitespace().next());
    if families.contains(&Some(name)) {
        return Ok(());
    }
    // af_packet is a module on some kernels, loaded when first used.
    let module = crate::modules::module(look.sys, &format!("af_{}", name.to_lowercase()));
    if module == crate::modules::Module::Loadable {
        return Ok(());
    }
    let fix = Fix::kernel_with(option);
    Err(look.problem(format!("this kernel was built without {option}"), fix))
}

fn locked_memory(look: &Look<'_>) -> Result<(), Problem> {
    let limit = look.sys.locked_memory_limit();
    match limit.filter(|limit| *limit < LOCKED_BYTES_WANTED) {
        Some(limit) if !look.sys.has(Capability::IpcLock) => {
            let kib = limit >> 10;
            let found = format!("AF_XDP locks its buffers in memory, and this process may lock {kib} KiB");
            let fix = Fix::one("sudo prlimit --pid $$ --memlock=unlimited")
                .undone_by([format!("sudo prlimit --pid $$ --memlock={limit}")]);
            Err(look.problem(found, fix))
        }
        _ => Ok(()),
    }
}

/// Refuses to take a device from the kernel that this machine is reached by.
pub fn refused_role(look: &Look<'_>, interfaces: &[&Interface]) -> Result<(), Problem> {
    if look.sys.force {
        return Ok(());
    }
    for Interface { name, .. } in interfaces {
        let Some(roles) = look.roles.get(name) else {
            continue;
        };
        let found = format!(
            "it is {name}, which carries {} of this machine: taking it from the kernel would cut the machine off",
            in_words(roles)
        );
        let fix = Fix::advice(format!(
            "choose another port, share it with the kernel as packet:{name}, or add --force"
        ));
        return Err(look.problem(found, fix));
    }
    Ok(())
}

/// The interfaces' names, for a sentence.
pub fn named(interfaces: &[&Interface]) -> String {
    if interfaces.is_empty() {
        return String::new();
    }
    let names = interfaces.iter().map(|interface| &interface.name).join(", ");
    format!(" (interface {names})")
}

/// The interface that a PCI function's traffic belongs to, while the kernel drives it.
pub fn first_name(device: &PciDevice, interfaces: &[Interface]) -> Option<String> {
    let interfaces = device.interfaces(interfaces);
    interfaces.first().map(|interface| interface.name.clone())
}
