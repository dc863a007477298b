//! What filters the frames on the wire: `dropless filter run`, and what is compared with it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use libbpf_rs::{Link, MapCore as _, Object};
use nix::sys::signal::Signal;
use serde::Serialize;

use crate::attempt::{caught, line_of};
use crate::frames::{self, Frame, Prefix, Rule};
use crate::support::{Lab, Running};
use crate::wire::{Flood, Wire, compile, load, within};

const STARTING: Duration = Duration::from_secs(60);

/// A filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Filter {
    Dropless,
    XdpTools,
    Hash,
    Everything,
    Nothing,
    NftInput,
    NftPrerouting,
    NftIngress,
    IptablesInput,
    IptablesRaw,
}

impl Filter {
    /// As the page calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropless => "dropless filter run",
            Self::XdpTools => "xdp-filter",
            Self::Hash => "XDP, one hash look-up",
            Self::Everything => "XDP, drops without a look",
            Self::Nothing => "no filter",
            Self::NftInput => "nftables, inet filter input",
            Self::NftPrerouting => "nftables, inet prerouting",
            Self::NftIngress => "nftables, netdev ingress",
            Self::IptablesInput => "iptables-nft, INPUT",
            Self::IptablesRaw => "iptables-nft, raw PREROUTING",
        }
    }

    pub const fn is_nftables(self) -> bool {
        matches!(self, Self::NftInput | Self::NftPrerouting | Self::NftIngress)
    }

    pub const fn is_iptables(self) -> bool {
        matches!(self, Self::IptablesInput | Self::IptablesRaw)
    }

    const fn is_xdp(self) -> bool {
        matches!(
            self,
            Self::Dropless | Self::XdpTools | Self::Hash | Self::Everything
        )
    }

    /// Whether it did what it should: a filter that drops nothing is fast.
    pub fn check(self, flood: &Flood, drops: bool) -> Result<(), String> {
        let most = flood.handled - flood.handled / 50;
        let good = match (drops, self.is_xdp()) {
            (true, true) => flood.dropped_by_xdp >= most,
            (true, false) => flood.delivered < flood.handled / 50 + 100,
            (false, _) => flood.dropped_by_xdp == 0,
        };
        if flood.handled == 0 {
            return Err(format!("{}: no frame came", self.name()));
        }
        if good {
            Ok(())
        } else {
            Err(format!(
                "{}: decided otherwise than it should: {flood:?}",
                self.name()
            ))
        }
    }
}

/// Rules, as each filter has them.
#[derive(Clone, Copy)]
pub enum Rules<'r> {
    /// Packets from this address are denied.
    Source(u32),
    /// Tuples are.
    Tuples(&'r [Rule]),
    /// Packets from these prefixes are.
    Prefixes(&'r [Prefix]),
}

/// A filter in force; it goes with this.
pub enum InForce<'w> {
    Dropless(Option<Running>),
    Linked { _link: Link, _object: Box<Object> },
    Shell { wire: &'w Wire, undo: &'static str },
    Nothing,
}

impl Drop for InForce<'_> {
    fn drop(&mut self) {
        match self {
            Self::Dropless(running) => {
                if let Some(running) = running.take() {
                    running.signal(Signal::SIGINT);
                    running.wait(STARTING);
                }
            }
            Self::Shell { wire, undo } => {
                wire.far.run("sh", &["-c", undo]);
            }
            Self::Linked { .. } | Self::Nothing => {}
        }
    }
}

/// Our rules as files.
pub fn write_rules(lab: &Lab, rules: Rules<'_>) -> Result<PathBuf, String> {
    let path = lab.path("bench.rules");
    let text = match rules {
        Rules::Source(address) => format!("deny from {}\n", std::net::Ipv4Addr::from(address)),
        Rules::Tuples(rules) => frames::ours(rules),
        Rules::Prefixes(prefixes) => {
            let list = frames::list(prefixes);
            fs::write(lab.path("bad.txt"), list).map_err(|error| format!("bad.txt: {error}"))?;
            "define bad = file \"bad.txt\"\ndeny from @bad\n".into()
        }
    };
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// `dropless filter run` on the far end, with all that is not the kernel's on this core, if one is said.
pub fn start_ours(lab: &Lab, wire: &Wire, rules: Rules<'_>, core: Option<usize>) -> Result<Running, String> {
    let path = write_rules(lab, rules)?.display().to_string();
    let arguments = [
        "filter", "run", &path, "--dev", "far0", "--mode", "native", "--json",
    ];
    let mut running = match core {
        None => lab.dropless(&arguments).within(&wire.far).spawn(),
        Some(core) => {
            let program = env!("CARGO_BIN_EXE_dropless");
            let core = core.to_string();
            let words = [
                "-c",
                &core,
                "env",
                "-C",
                &lab.directory().display().to_string(),
                program,
            ]
            .map(str::to_owned);
            let words: Vec<&str> = words.iter().map(String::as_str).chain(arguments).collect();
            wire.far.spawn("taskset", &words)
        }
    };
    running.wait_for("native mode", STARTING);
    Ok(running)
}

/// Puts a filter in force.
pub fn start<'w>(lab: &Lab, wire: &'w Wire, filter: Filter, rules: Rules<'_>) -> Result<InForce<'w>, String> {
    let tuples = || match rules {
        Rules::Tuples(rules) => Ok(rules),
        _ => Err(format!("{} is compared by tuples alone", filter.name())),
    };
    let source = || match rules {
        Rules::Source(source) => Ok(source),
        _ => Err(format!("{} is compared by one address alone", filter.name())),
    };
    let nft = |family: &str, hook: &str| {
        let text = frames::nft(tuples()?, family, hook);
        restore(
            lab,
            wire,
            &text,
            "nft -f",
            "nft delete table inet bench 2>/dev/null || nft delete table netdev bench",
        )
    };
    let iptables = |table: &str, chain: &str, undo| {
        restore(
            lab,
            wire,
            &frames::iptables(tuples()?, table, chain),
            "iptables-nft-restore <",
            undo,
        )
    };
    match filter {
        Filter::Nothing => Ok(InForce::Nothing),
        Filter::Dropless => Ok(InForce::Dropless(Some(start_ours(lab, wire, rules, None)?))),
        Filter::Hash => linked(wire, "hash", Some(source()?)),
        Filter::Everything => linked(wire, "everything", None),
        Filter::XdpTools => {
            let address = std::net::Ipv4Addr::from(source()?);
            // What it pins may go with the mount: the interface holds the program, and that its maps.
            let script = format!(
                "mount -t bpf bpf /sys/fs/bpf && xdp-filter load --mode native -f ipv4 -p allow far0 && xdp-filter ip -m src {address}"
            );
            wire.far.run("unshare", &["-m", "sh", "-c", &script]);
            Ok(InForce::Shell {
                wire,
                undo: "ip link set dev far0 xdp off",
            })
        }
        Filter::NftInput => nft("inet", "input"),
        Filter::NftPrerouting => nft("inet", "prerouting"),
        Filter::NftIngress => nft("netdev", "ingress device far0"),
        Filter::IptablesInput => iptables("filter", "INPUT", "iptables-nft -F"),
        Filter::IptablesRaw => iptables("raw", "PREROUTING", "iptables-nft -t raw -F"),
    }
}

fn restore<'w>(
    lab: &Lab,
    wire: &'w Wire,
    text: &str,
    with: &str,
    undo: &'static str,
) -> Result<InForce<'w>, String> {
    let path = lab.path("theirs.rules");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    wire.far.run("sh", &["-c", &format!("{with} {}", path.display())]);
    Ok(InForce::Shell { wire, undo })
}

fn linked<'w>(wire: &Wire, program: &'static str, source: Option<u32>) -> Result<InForce<'w>, String> {
    let object = Box::new(load(&compile("smallest.bpf.c")?)?);
    if let Some(source) = source {
        let found = object
            .maps()
            .find(|map| map.name() == "denied")
            .ok_or("no map denied")?;
        let updated =
            libbpf_rs::MapCore::update(&found, &source.to_be_bytes(), &[0; 8], libbpf_rs::MapFlags::ANY);
        updated.map_err(|error| format!("denied: {error}"))?;
    }
    let object_ref = &object;
    let link = within(&wire.far, || attach(object_ref, program))?;
    Ok(InForce::Linked {
        _link: link,
        _object: object,
    })
}

fn attach(object: &Object, name: &str) -> Result<Link, String> {
    let index = nix::net::if_::if_nametoindex("far0").map_err(|error| format!("far0: {error}"))?;
    let program = object.progs_mut().find(|program| program.name() == name);
    let program = program.ok_or_else(|| format!("no program {name}"))?;
    program
        .attach_xdp(i32::try_from(index).unwrap_or(0))
        .map_err(|error| format!("{name}: {error}"))
}

/// What came of a filter once.
#[derive(Clone, Debug, Serialize)]
pub struct Contest {
    /// Which row of the table.
    pub row: &'static str,
    pub filter: Filter,
    pub flood: Flood,
    /// Nanoseconds of the program alone, where it is one.
    pub program_ns: Option<f64>,
}

/// A row of the table: who takes part, with which rules and frames.
pub struct Row<'r> {
    pub name: &'static str,
    pub filters: &'r [Filter],
    pub rules: Rules<'r>,
    pub frames: &'r [Frame],
    /// Whether all frames are to be dropped, or none.
    pub drops: bool,
    /// The program is measured alone, too.
    pub timed: bool,
}

impl Row<'_> {
    /// Measures all of them once, in turn or the other way round.
    pub fn measure(
        &self,
        lab: &Lab,
        wire: &Wire,
        (backwards, lasts, core): (bool, Duration, usize),
    ) -> (Vec<Contest>, Vec<String>) {
        let mut filters = self.filters.to_vec();
        if backwards {
            filters.reverse();
        }
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for filter in filters {
            let once = || self.once(lab, wire, filter, lasts, core);
            let reason = |words: String| format!("{}: {}", filter.name(), line_of(&words));
            match caught(once).map_err(reason).and_then(|measured| measured) {
                Ok(contest) => done.push(contest),
                Err(reason) => failed.push(reason),
            }
        }
        (done, failed)
    }

    fn once(
        &self,
        lab: &Lab,
        wire: &Wire,
        filter: Filter,
        lasts: Duration,
        core: usize,
    ) -> Result<Contest, String> {
        let in_force = start(lab, wire, filter, self.rules)?;
        // What passes is for another host: the kernel has no more to do with it than to see that.
        let to = if self.drops {
            wire.mac()
        } else {
            [2, 0, 0, 0, 0, 9]
        };
        let flood = wire.flood(self.frames, to, lasts)?;
        filter.check(&flood, self.drops)?;
        let timed = self.timed && filter.is_xdp();
        let program_ns = timed
            .then(|| crate::wire::time(wire, self.frames, core))
            .transpose()?;
        drop(in_force);
        Ok(Contest {
            row: self.name,
            filter,
            flood,
            program_ns,
        })
    }
}
