//! What a round does, drawn from its seed alone: the same seed is the same round on any machine.

use serde::Serialize;

/// What a round is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Ring,
    Null,
    Memif,
    Veth,
    Forward,
    Capture,
    Kill,
    Thief,
    Stop,
    Filter,
    LongRing,
    LongMemif,
}

/// Every kind: its name, what it does, and whether rounds are drawn of it.
pub const KINDS: [(Kind, &str, &str, bool); 12] = [
    (
        Kind::Ring,
        "ring",
        "send through the embedded reflector, with its faults",
        true,
    ),
    (
        Kind::Null,
        "null",
        "send into a port that swallows everything",
        true,
    ),
    (
        Kind::Memif,
        "memif",
        "send and reflect over memif, with faults at the far side",
        true,
    ),
    (
        Kind::Veth,
        "veth",
        "send and reflect over a virtual wire, by AF_PACKET or AF_XDP",
        true,
    ),
    (
        Kind::Forward,
        "forward",
        "send, forward by rules that are exchanged under load, reflect; over memif",
        true,
    ),
    (
        Kind::Capture,
        "capture",
        "send, capture into files, read them back; over memif or a virtual wire",
        true,
    ),
    (
        Kind::Kill,
        "kill",
        "kill -9 of the reflector, the forwarder or the sender, and a successor",
        true,
    ),
    (
        Kind::Thief,
        "thief",
        "a busy process takes a worker's core in bursts",
        true,
    ),
    (Kind::Stop, "stop", "SIGSTOP and SIGCONT of one side", true),
    (
        Kind::Filter,
        "filter",
        "filter run in XDP, its rules exchanged under load",
        true,
    ),
    (
        Kind::LongRing,
        "long-ring",
        "flood through the embedded reflector (--packets)",
        false,
    ),
    (
        Kind::LongMemif,
        "long-memif",
        "flood through a reflector over memif (--packets)",
        false,
    ),
];

/// Those that rounds are drawn of.
pub fn drawn() -> impl Iterator<Item = Kind> {
    KINDS.iter().filter(|kind| kind.3).map(|kind| kind.0)
}

impl Kind {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|kind| kind.0 == self).map_or("", |kind| kind.1)
    }
}

/// Sizes that are asked for: single ones, all in turn, a mix.
const SIZES: [&str; 7] = ["84", "128", "512", "1518", "84-1518", "imix", "84,256,1024"];
const FAULTS: [&str; 5] = ["drop", "duplicate", "reorder", "corrupt", "delay"];
/// Events of a round (kills, stops, reloads, bursts), at most.
const EVENTS_MAX: usize = 8;

/// The process that something is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    Reflector,
    Forwarder,
    Sender,
}

/// Something that is done to a run under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When, in thousandths of the sending time.
    pub at: u32,
    /// For how long, ms, where it lasts.
    pub lasts_ms: u32,
}

/// A round.
#[allow(clippy::struct_excessive_bools, reason = "each is a coin of its own")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub seed: u32,
    pub kind: Kind,
    /// How long it sends.
    pub seconds: u32,
    /// Thousands of packets a second; none is as fast as it goes.
    pub rate_kpps: Option<u32>,
    pub size: &'static str,
    /// Receive and transmit queues a port.
    pub queues: u32,
    pub streams: u32,
    pub flows: u32,
    pub burst: u32,
    pub is_ipv6: bool,
    pub verify: &'static str,
    /// Whether the side that sends makes the socket.
    pub sender_serves: bool,
    /// `AF_XDP`, or else `AF_PACKET`; memif, or else a virtual wire.
    pub is_xdp: bool,
    pub is_memif: bool,
    /// On hugepages, where the machine has some.
    pub is_huge: bool,
    /// As `--fault` takes them; none where it is empty.
    pub faults: String,
    pub victim: Victim,
    /// Busy processes that take a core, and which one.
    pub core: u32,
    pub events: Vec<Event>,
}

/// Numbers by chance that a seed repeats (splitmix64).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u32) -> Self {
        Self(u64::from(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + (self.next() % u64::from(high - low + 1)) as u32
    }

    pub fn one_in(&mut self, count: u32) -> bool {
        self.between(1, count) == 1
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
}

/// The seed of the round after the one of `seed`.
pub fn after(seed: u32) -> u32 {
    (Draw::new(seed).next() >> 32) as u32
}

impl Plan {
    /// The round of this seed, of so many seconds where these are not drawn, too.
    pub fn draw(seed: u32, seconds: Option<u32>) -> Self {
        // The first number of a seed is the next one's seed.
        let mut draw = Draw::new(!seed);
        let kind = draw.pick(&drawn().collect::<Vec<_>>());
        let of_seed = if draw.one_in(10) {
            draw.between(20, 60)
        } else {
            draw.between(5, 12)
        };
        let seconds = seconds.unwrap_or(of_seed);
        let mut plan = Self {
            seed,
            kind,
            seconds,
            rate_kpps: (!draw.one_in(3)).then(|| draw.between(5, 300)),
            size: draw.pick(&SIZES),
            queues: draw.pick(&[1, 1, 2]),
            streams: draw.pick(&[1, 1, 2, 5]),
            flows: draw.pick(&[1, 1, 16, 1000]),
            burst: draw.pick(&[64, 64, 1, 32, 16]),
            is_ipv6: draw.one_in(4),
            verify: draw.pick(&["checksum", "payload"]),
            sender_serves: draw.one_in(2),
            is_xdp: draw.one_in(2),
            is_memif: draw.one_in(2),
            is_huge: draw.one_in(2),
            faults: faults(&mut draw),
            victim: draw.pick(&[Victim::Reflector, Victim::Forwarder, Victim::Sender]),
            core: draw.between(0, 1),
            events: events(&mut draw),
        };
        plan.confine();
        plan
    }

    /// A round that floods for as long as it takes to tell, of `--packets`.
    pub fn long(seed: u32, kind: Kind) -> Self {
        Self {
            kind,
            seconds: 60,
            rate_kpps: None,
            size: "84",
            queues: 1,
            streams: 1,
            flows: 1,
            burst: 64,
            is_ipv6: false,
            verify: "checksum",
            sender_serves: false,
            is_huge: true,
            faults: String::new(),
            events: Vec::new(),
            ..Self::draw(seed, None)
        }
    }

    /// Whether both ends are on a virtual wire.
    pub fn is_wire(&self) -> bool {
        match self.kind {
            Kind::Veth | Kind::Filter => true,
            Kind::Thief | Kind::Stop | Kind::Capture => !self.is_memif,
            _ => false,
        }
    }

    /// What its kind cannot have, or would only drown in, it does not have.
    fn confine(&mut self) {
        let pace = |this: &mut Self, most: u32| {
            this.rate_kpps = Some(this.rate_kpps.map_or(most, |rate| rate.min(most)));
        };
        match self.kind {
            Kind::Filter => pace(self, 20),
            // A gigabyte of the largest frames, at most.
            Kind::Capture => pace(
                self,
                (650 / self.seconds).min(if self.is_memif { 150 } else { 40 }),
            ),
            // Two pollers and a kernel share the cores: this much the wire carries beside a thief.
            Kind::Thief if !self.is_memif => pace(self, 40),
            _ => {}
        }
        if !matches!(self.kind, Kind::Ring | Kind::Memif | Kind::Veth) {
            self.faults.clear();
        }
        // A socket of the kernel has all of a wire, and an end of memif that serves has one queue.
        let has_several = match self.kind {
            Kind::Ring | Kind::Null => true,
            Kind::Filter => false,
            _ => self.is_wire() && self.is_xdp,
        };
        if !has_several {
            self.queues = 1;
        }
        // Their rules are of ports of IPv4.
        if matches!(self.kind, Kind::Filter | Kind::Forward) {
            self.is_ipv6 = false;
            self.streams = 1;
        }
    }
}

/// Up to three faults, each of some per mille of the packets.
fn faults(draw: &mut Draw) -> String {
    let count = draw.between(0, 3);
    let mut chosen: Vec<&str> = (0..count).map(|_| draw.pick(&FAULTS)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let one = |name: &str, draw: &mut Draw| {
        let share = f64::from(draw.between(1, 20)) / 10.0;
        if name == "delay" {
            format!("{name}={share}%:{}ms", draw.between(1, 20))
        } else {
            format!("{name}={share}%")
        }
    };
    let named: Vec<String> = chosen.into_iter().map(|name| one(name, draw)).collect();
    named.join(",")
}

/// In order; the last quarter is left to settle in.
fn events(draw: &mut Draw) -> Vec<Event> {
    let count = draw.between(1, EVENTS_MAX as u32);
    let one = |draw: &mut Draw| Event {
        at: draw.between(50, 750),
        lasts_ms: draw.between(5, 800),
    };
    let mut events: Vec<Event> = (0..count).map(|_| one(draw)).collect();
    events.sort_by_key(|event| event.at);
    events
}
