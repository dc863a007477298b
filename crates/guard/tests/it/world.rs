//! A network with its usual traffic, an attack, and a guard whose rules are in force.

use guard::{Event, Guard, Limit, Sample, Settings, TICK_NS};
use rules::limit::Limiter;
use rules::{Detail, Facts, Layer, Malformed, Part, RuleSet, Tables, Verdict};

pub const SECOND: u64 = 1_000_000_000;
/// Whom everybody talks to.
pub const SERVER: u128 = v4([192, 0, 2, 1]);

pub const fn v4(address: [u8; 4]) -> u128 {
    (u32::from_be_bytes(address) as u128) << 96
}

/// Numbers that repeat from a seed (xorshift64).
#[derive(Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub fn address(&mut self) -> u128 {
        u128::from(0x0100_0000 + self.below(0xDE00_0000)) << 96
    }
}

pub type Packet = Result<Facts, Malformed>;

pub fn ip(protocol: u8, source: u128, destination: u128) -> Facts {
    Facts {
        vlan: None,
        ether_type: 0x0800,
        layer: Layer::V4,
        protocol,
        part: Part::Whole,
        source,
        destination,
        ports: None,
        detail: Detail::None,
    }
}

pub fn tcp(source: u128, ports: (u16, u16), flags: u8) -> Facts {
    Facts {
        ports: Some(ports),
        detail: Detail::Flags(flags),
        ..ip(6, source, SERVER)
    }
}

pub fn udp(source: u128, ports: (u16, u16)) -> Facts {
    Facts {
        ports: Some(ports),
        ..ip(17, source, SERVER)
    }
}

/// A client of the server that is always there.
fn client(number: u64) -> u128 {
    v4([203, 0, (number / 7) as u8, (number * 3) as u8])
}

/// One of the usual packets, and whether somebody sent it who is always there.
pub fn usual(dice: &mut Dice) -> (Packet, bool) {
    let source = client(dice.below(200));
    let high = 32768 + dice.below(20000) as u16;
    let (packet, is_always) = match dice.below(1000) {
        0..650 => (tcp(source, (high, 443), 0x10), true),
        650..700 => (tcp(source, (high, 443), 0x02), true),
        // Somebody new.
        700..720 => (
            tcp(
                v4([100, 64, dice.below(256) as u8, dice.below(256) as u8]),
                (high, 443),
                0x02,
            ),
            false,
        ),
        720..900 => (udp(source, (high, 443)), true),
        900..920 => (udp(v4([9, 9, 9, 9]), (53, high)), true),
        920..930 => (
            Facts {
                detail: Detail::Type(8),
                ..ip(1, source, SERVER)
            },
            true,
        ),
        _ => (
            Facts {
                destination: v4([192, 0, 2, 2 + dice.below(20) as u8]),
                ..tcp(source, (high, 22), 0x18)
            },
            true,
        ),
    };
    (Ok(packet), is_always)
}

/// What became of the packets of one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    pub sent: u64,
    pub dropped: u64,
}

pub struct World {
    pub guard: Guard,
    pub dice: Dice,
    pub now_ns: u64,
    pub events: Vec<Event>,
    /// The rules in force, as `forward` has them: one by one, some hundred sources a rule take most of a test.
    tables: Tables,
    limiter: Limiter,
    generation: u64,
    /// Usual packets of those who are always there, of new ones, and the attack's.
    pub always: Met,
    pub new: Met,
    pub attack: Met,
}

/// Usual packets a second.
pub const USUAL: u64 = 3000;

pub fn settings() -> Settings {
    let pps = |pps| Some(Limit::pps(pps));
    Settings {
        // Amplification, syn, fragment, icmp, udp, tcp, other, all, malformed.
        thresholds: [
            pps(2000),
            pps(2000),
            pps(2000),
            pps(1000),
            pps(5000),
            pps(10_000),
            pps(2000),
            pps(20_000),
            pps(1000),
        ],
        ..Settings::default()
    }
}

pub fn parse(text: &str) -> RuleSet {
    rules::parse("guard", &|_| Ok(text.to_owned())).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

impl World {
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            guard: Guard::new(settings, seed),
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            now_ns: 1000 * SECOND,
            events: Vec::new(),
            tables: Tables::new(&parse("default allow\n")).unwrap(),
            // More than sources send at once: none is dropped for want of an entry.
            limiter: Limiter::new(1 << 16, seed),
            generation: 0,
            always: Met::default(),
            new: Met::default(),
            attack: Met::default(),
        }
    }

    /// Packets of a time, `pps` of them from the attack.
    pub fn go_on(&mut self, seconds: f64, pps: u64, mut attack: impl FnMut(&mut Dice) -> Packet) {
        let ticks = (seconds * SECOND as f64) as u64 / TICK_NS;
        for _ in 0..ticks {
            let (usual, attacks) = (USUAL / 10, pps / 10);
            for at in 0..usual + attacks {
                let time_ns = self.now_ns + at * TICK_NS / (usual + attacks);
                // Mixed evenly.
                let is_usual = (at * usual) / (usual + attacks) != ((at + 1) * usual) / (usual + attacks);
                let (packet, is_always) = if is_usual {
                    self::usual(&mut self.dice)
                } else {
                    (attack(&mut self.dice), false)
                };
                self.guard.observe(&Sample {
                    packet: packet.into(),
                    len: 100,
                    weight: 1,
                    time_ns,
                });
                let verdict = self.tables.decide(&packet, &self.limiter, time_ns).verdict;
                let met = match (is_usual, is_always) {
                    (false, _) => &mut self.attack,
                    (true, true) => &mut self.always,
                    (true, false) => &mut self.new,
                };
                met.sent += 1;
                met.dropped += u64::from(verdict == Verdict::Deny);
            }
            self.now_ns += TICK_NS;
            self.events.extend(self.guard.tick(self.now_ns));
            if self.generation != self.guard.generation() {
                self.generation = self.guard.generation();
                let text = self.guard.rules();
                self.tables = Tables::new(&parse(&format!("{text}default allow\n"))).unwrap();
            }
        }
    }

    pub fn quiet(&mut self, seconds: f64) {
        self.go_on(seconds, 0, |_| unreachable!("nobody attacks"));
    }

    /// Forgets what was counted so far.
    pub fn forget(&mut self) {
        (self.always, self.new, self.attack) = Default::default();
    }

    pub fn blocked(&self) -> usize {
        self.events
            .iter()
            .filter(|event| matches!(event, Event::Blocked(_)))
            .count()
    }
}
