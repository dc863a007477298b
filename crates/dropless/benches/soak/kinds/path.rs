//! The path of a round, and the command lines of its ends.

use crate::plan::{Kind, Plan};
use crate::round::{Round, wait_for, wait_until};
use crate::support::proc::is_served;
use crate::support::wire::Wire;
use crate::support::{Namespace, Running};

/// Who serves a memif, and whether whoever calls copies nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    Sender,
    Reflector,
    /// The same; the sender shows it its own buffers.
    ReflectorWithoutCopy,
}

/// Where both ends of a round meet.
pub enum Path {
    /// At a socket in the directory of the round, which one side serves.
    Memif(Serves),
    /// On a wire, by sockets of this kind.
    Wire(Box<Wire>, &'static str),
}

impl Path {
    pub fn new(round: &Round<'_>) -> Self {
        let plan = round.plan;
        if !plan.is_wire() {
            // It calls once, so that nobody may be followed by another.
            let without_copy = round.is_huge && plan.kind != Kind::Kill;
            return Self::Memif(match (plan.sender_serves, without_copy) {
                (true, _) => Serves::Sender,
                (false, false) => Serves::Reflector,
                (false, true) => Serves::ReflectorWithoutCopy,
            });
        }
        let kind = if plan.is_xdp { "xdp" } else { "packet" };
        Self::Wire(Box::new(Wire::between(round.lab, plan.queues)), kind)
    }

    pub fn is_memif(&self) -> bool {
        matches!(self, Self::Memif(_))
    }

    pub fn near(&self) -> (Option<&Namespace>, String) {
        match self {
            Self::Memif(Serves::Sender) => (None, "memif:m.sock,server".into()),
            Self::Memif(Serves::Reflector) => (None, "memif:m.sock".into()),
            Self::Memif(Serves::ReflectorWithoutCopy) => (None, "memif:m.sock,zero-copy".into()),
            Self::Wire(wire, kind) => (Some(&wire.near), format!("{kind}:near0")),
        }
    }

    pub fn far(&self) -> (Option<&Namespace>, String) {
        match self {
            Self::Memif(Serves::Sender) => (None, "memif:m.sock".into()),
            Self::Memif(_) => (None, "memif:m.sock,server".into()),
            Self::Wire(wire, kind) => (Some(&wire.far), format!("{kind}:far0")),
        }
    }

    /// A reflector at the far end, which takes packets.
    pub fn reflect(&self, round: &Round<'_>) -> Running {
        let (within, port) = self.far();
        let plan = round.plan;
        let line = format!(
            "reflect --port {port} {} --queues {} {}",
            self.core(1),
            plan.queues,
            seeded_fault(plan)
        );
        let mut running = round.start(within, &line);
        self.wait_until_it_serves(&mut running, "reflecting on");
        running
    }

    /// A sender at the near end, which sends.
    pub fn send(&self, round: &Round<'_>, further: &str) -> Running {
        let (within, port) = self.near();
        round.start(
            within,
            &format!(
                "send --port {port} {} {} {further}",
                self.core(0),
                load(round.plan)
            ),
        )
    }

    /// Two that start at once would not see which core the other takes.
    fn core(&self, core: u32) -> String {
        if matches!(self, Self::Memif(Serves::Sender)) {
            format!("--cores {core}")
        } else {
            String::new()
        }
    }

    /// Until the far end takes packets; of a memif, until its socket can be called, or at once where it calls.
    pub fn wait_until_it_serves(&self, running: &mut Running, ready: &str) {
        match self {
            Self::Memif(Serves::Sender) => {}
            Self::Memif(_) => wait_until(running, |_| is_served("m.sock")),
            Self::Wire(..) => wait_for(running, ready),
        }
    }
}

/// The flags of a reflector that injects faults: it takes a seed for these alone.
fn seeded_fault(plan: &Plan) -> String {
    if plan.faults.is_empty() {
        String::new()
    } else {
        format!("{} --seed {}", fault(plan), plan.seed)
    }
}

/// The flag of whoever injects faults.
pub fn fault(plan: &Plan) -> String {
    if plan.faults.is_empty() {
        String::new()
    } else {
        format!("--fault {}", plan.faults)
    }
}

/// The flags of a sender that belong to its load.
pub fn load(plan: &Plan) -> String {
    let to = if plan.is_ipv6 { "2001:2::2" } else { "198.18.0.2" };
    let rate = plan.rate_kpps.map_or("max".into(), |rate| format!("{rate}kpps"));
    let streams = if plan.streams > 1 { plan.streams } else { 0 };
    let streams = (0..streams).map(|stream| format!("--stream name=s{stream},dscp={stream}"));
    let streams: Vec<String> = streams.collect();
    // Somebody else may have the core for a while: what is due then is sent later.
    format!(
        "--duration {}s --rate {rate} --backlog 1000000 --drain 5s --to {to} --size {} --burst {} --flows {} --verify {} --seed {} \
         --tx-queues {q} --rx-queues {q} {}",
        plan.seconds,
        plan.size,
        plan.burst,
        plan.flows,
        plan.verify,
        plan.seed,
        streams.join(" "),
        q = plan.queues
    )
}
