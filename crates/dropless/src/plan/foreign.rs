//! Plans that were read from a file: whoever wrote one may be anybody, so that it moves packets and does nothing else
//! unless the user says that it may.

use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use host::Medium;
use report::{input, out};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::MachinePlan;

/// The flag that lets a plan do everything.
pub const TRUST: &str = "--trust-plan";

/// What every version of a plan begins with.
#[derive(Deserialize)]
struct Head {
    version: u32,
    command: String,
}

/// How a file that holds a plan was named, and what else to name.
#[derive(Clone, Copy, Debug)]
pub struct Named<'n> {
    /// The flag.
    pub flag: &'n str,
    /// The file.
    pub path: &'n Path,
    /// What to do where it is none.
    pub advice: &'n str,
}

impl Named<'_> {
    /// The plan in it, of a `command` run and at most this version. What it holds is not looked at further.
    pub fn read<P: DeserializeOwned>(&self, command: &str, version: u32) -> Result<P> {
        let Self { flag, path, advice } = self;
        let shown = path.display();
        let text = input::text_file(path)
            .map_err(|error| anyhow!("{flag} {shown}: {}; {advice}", error.without_path()))?;
        let foreign = |error: serde_json::Error| {
            anyhow!("{flag} {shown} is not the plan of a {command} run ({error}); {advice}")
        };
        // Names stay as they are, since paths are among them; they are cleaned where they are shown.
        let value: Value = serde_json::from_str(&text).map_err(foreign)?;
        // The version first: what a later one looks like is not known here.
        let head = Head::deserialize(&value).map_err(foreign)?;
        ensure!(
            head.version <= version,
            "{flag} {shown} has version {}, and this dropless knows up to {version}; use a newer dropless",
            head.version
        );
        ensure!(
            head.command == command,
            "{flag} {shown} is the plan of a {} run; {advice}",
            head.command
        );
        P::deserialize(&value).map_err(foreign)
    }
}

/// A plan that is not the user's own words.
#[derive(Debug)]
pub struct Foreign<P> {
    plan: P,
    /// What it does but moving packets, a few words each.
    acts: Vec<String>,
    /// The flag and the file.
    named: String,
}

impl<P> Foreign<P> {
    /// The plan in the file `named`, which wants this of the machine.
    pub fn new(plan: P, machine: impl Fn(&P) -> &MachinePlan, named: &Named<'_>) -> Self {
        Self {
            acts: machine(&plan).acts(),
            plan,
            named: format!("{} {}", named.flag, named.path.display()),
        }
    }

    /// The plan, where it does nothing but moving packets, or `is_trusted`; then what it does is told.
    pub fn accept(self, is_trusted: bool) -> Result<P> {
        let Self { plan, acts, named } = self;
        let acts = acts.join("; ");
        ensure!(
            acts.is_empty() || is_trusted,
            "{named} does more than send packets: {acts}; if you trust who wrote it: {TRUST}"
        );
        if !acts.is_empty() {
            let line = input::clean(&format!("note: {named} does more than send packets: {acts}"));
            let _ = out::print_stderr(&(line + "\n"));
        }
        Ok(plan)
    }
}

impl MachinePlan {
    /// What it does but moving packets, a few words each: code that it has DPDK load or run, files that it names, and a
    /// device that it takes from the kernel by force.
    pub fn acts(&self) -> Vec<String> {
        let mut acts: Vec<String> = Vec::new();
        if let Some(arguments) = self.eal.as_deref().filter(|words| !words.trim().is_empty()) {
            acts.push(format!("it passes `{arguments}` to DPDK, which can load code"));
        }
        for port in &self.ports {
            match port.kind.traits().medium {
                Medium::Unknown => acts.push(format!("port {port} is DPDK's to make what it likes of")),
                Medium::Files => acts.push(format!("port {port} reads and writes the files that it names")),
                Medium::Process
                | Medium::Nic
                | Medium::SharedInterface
                | Medium::OwnInterface
                | Medium::Peer
                | Medium::Sockets => {}
            }
        }
        if self.force {
            acts.push(
                "it takes a device from the kernel although this machine may be reached through it".into(),
            );
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(ports: &[&str], eal: Option<&str>) -> Value {
        serde_json::json!({
            "ports": ports, "eal": eal, "cores": "", "burst": 64, "descriptors": 1024, "buffers": null,
            "no_huge": true, "wait_ns": 0,
        })
    }

    fn foreign(value: &Value) -> Foreign<MachinePlan> {
        let plan = MachinePlan::deserialize(value).expect("a plan");
        let named = Named {
            flag: "--plan",
            path: Path::new("p.json"),
            advice: "",
        };
        Foreign::new(plan, |plan| plan, &named)
    }

    #[test]
    fn what_acts_is_refused_by_name_unless_it_is_trusted() {
        let mut forced = machine(&["pci:0000:3b:00.0"], None);
        forced["force"] = true.into();
        for (value, word) in [
            (machine(&["ring"], Some("-d /tmp/evil.so")), "`-d /tmp/evil.so`"),
            (
                machine(&["ring", "pcap:-,/etc/cron.d/x"], None),
                "pcap:-,/etc/cron.d/x",
            ),
            (machine(&["pcap:/etc/shadow"], None), "pcap:/etc/shadow"),
            (
                machine(&["vdev:net_pcap0,tx_pcap=/etc/x"], None),
                "vdev:net_pcap0",
            ),
            (forced, "from the kernel"),
        ] {
            let error = foreign(&value).accept(false).expect_err("it acts").to_string();
            assert!(
                error.starts_with("--plan p.json does more than send packets: ") && error.contains(word),
                "{error}"
            );
            assert!(
                error.ends_with("if you trust who wrote it: --trust-plan"),
                "{error}"
            );
            foreign(&value).accept(true).expect("it is trusted");
        }
    }

    #[test]
    fn what_only_moves_packets_needs_no_trust() {
        let ports = [
            "ring",
            "null",
            "xdp:eth0",
            "packet:eth0",
            "tap:dl0",
            "memif:/run/x.sock,server",
            "vhost:/run/x.sock",
            "virtio-user:/run/x.sock",
            "kernel:10.0.0.1",
            "pci:0000:3b:00.0",
        ];
        for port in ports {
            foreign(&machine(&[port], Some(" "))).accept(false).expect(port);
        }
    }
}
