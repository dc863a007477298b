//! The validated plan of a run: what `plan.json` holds and `--plan` replays. Made whole before anything starts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use host::MacAddress;
use measure::units::parse_duration;
use measure::{RateSpec, SizeMix};
use serde::{Deserialize, Serialize};
use wire::{TPID_CUSTOMER, TPID_SERVICE, Template, TemplateSpec, Verify, VlanTag};

use crate::about::{About as _, bail_about, ensure_about};

mod capture;
mod filter;
pub mod foreign;
mod forward;
mod guard;
pub(crate) mod kernel;
pub(crate) mod machine;
mod noise;
mod reflect;
mod replay;
pub mod rules;
mod send;

pub use capture::{AttachPlan, CapturePlan, FilesPlan, RingPlan};
pub use filter::{FilterPlan, SamplePlan};
pub use forward::{ForwardMode, ForwardPlan};
pub use guard::{GuardPlan, GuardSource, ThresholdPlan};
pub use machine::{MachinePlan, parse_cores};
pub use noise::NoisePlan;
pub use reflect::ReflectPlan;
pub use replay::{BufferPlan, ReplayPlan, Snapped};
pub use send::SendPlan;

/// Version of `plan.json`.
pub const VERSION: u32 = 1;
/// The largest frame of plain Ethernet, with FCS (IEEE 802.3): what buffers and links are made for where nobody asks for more.
pub const USUAL_FRAME: usize = 1518;
/// Lanes are 16 bits in the probe.
const LANES_MAX: usize = 1 << 16;
/// `RTE_MAX_QUEUES_PER_PORT` of every DPDK that distributions ship.
const QUEUES_MAX: u16 = 1024;

/// Probes from one stream description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// Shown in the report.
    pub name: String,
    /// Frame sizes with FCS, as the user writes them.
    pub size: String,
    /// Rate of this stream, as the user writes it; `None` shares what the whole run sends.
    pub rate: Option<String>,
    /// Flows.
    pub flows: u32,
    /// Destination.
    pub to: IpAddr,
    /// The name that was given for it, and looked up once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_host: Option<String>,
    /// First and last destination port.
    pub to_ports: (u16, u16),
    /// Source.
    pub from: SocketAddr,
    /// Tags, outermost first.
    pub vlans: Vec<u16>,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
}

impl StreamPlan {
    /// The tags as they stand in a frame: the outer of two is a service tag (IEEE 802.1ad).
    pub fn vlan_tags(&self) -> Vec<VlanTag> {
        let service = self.vlans.len() > 1;
        let tag = |(index, &id)| VlanTag {
            tpid: if service && index == 0 {
                TPID_SERVICE
            } else {
                TPID_CUSTOMER
            },
            id,
            pcp: 0,
        };
        self.vlans.iter().enumerate().map(tag).collect()
    }

    /// The source address on port number `port`: counted up from the first port's, past the destination.
    pub fn source(&self, port: usize) -> IpAddr {
        let (first, own) = (self.from.ip(), count_up(self.from.ip(), port));
        if (first..=own).contains(&self.to) {
            count_up(own, 1)
        } else {
            own
        }
    }

    /// Where the flows on port number `port` come from and go to, in a frame without anything else of the stream's.
    pub fn ends(&self, port: usize) -> TemplateSpec {
        TemplateSpec {
            src: SocketAddr::new(self.source(port), self.from.port()),
            dst: SocketAddr::new(self.to, self.to_ports.0),
            flows: self.flows,
            dst_ports: self.to_ports.0..=self.to_ports.1,
            ..TemplateSpec::plain(0)
        }
    }

    /// The smallest frame, with FCS, that holds a probe with these headers.
    pub fn minimum_size(&self) -> usize {
        Template::minimum_frame_size(self.to.is_ipv6(), self.vlans.len())
    }

    /// The frame sizes and their shares.
    pub fn sizes(&self) -> Result<SizeMix> {
        Ok(match self.size.parse::<SizeMix>()? {
            SizeMix::Imix(small) => SizeMix::Imix(small.max(self.minimum_size())),
            mix => mix,
        })
    }
}

/// Whether this is no one's own address: multicast, broadcast or none at all.
pub fn is_group(ip: IpAddr) -> bool {
    ip.is_multicast() || ip.is_unspecified() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// The address `by` above `ip`.
fn count_up(ip: IpAddr, by: usize) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => IpAddr::V4(u32::from(ip).wrapping_add(by as u32).into()),
        IpAddr::V6(ip) => IpAddr::V6(u128::from(ip).wrapping_add(by as u128).into()),
    }
}

/// How much of a frame is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum VerifyPlan {
    /// Magic, run and length only
    None,
    /// IPv4 header and UDP checksum, in full
    Checksum,
    /// Checksums, and every byte of the payload pattern
    Payload,
}

impl From<VerifyPlan> for Verify {
    fn from(plan: VerifyPlan) -> Self {
        match plan {
            VerifyPlan::None => Self::None,
            VerifyPlan::Checksum => Self::Checksum,
            VerifyPlan::Payload => Self::Payload,
        }
    }
}

/// The far end's default address (RFC 2544 appendix C.2.2).
pub const FAR_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The far end's default IPv6 address (RFC 5180 section 8).
pub const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2);

/// Rows that a run of a known length should have: a point on a page for each.
const ROWS_WANTED: u64 = 200;

/// Intervals that are chosen, in ms. Below 10 ms some have no packet at usual rates, and control would do little but write rows.
const INTERVALS_MS: [u64; 7] = [10, 20, 50, 100, 200, 500, 1000];

/// The interval that was asked for; else of those that fit the one that is next below a 200th of the run.
pub fn interval_ns(asked: Option<&str>, duration_ns: Option<u64>, fits: impl Fn(u64) -> bool) -> Result<u64> {
    if let Some(text) = asked {
        return nonzero_ns(text, "--interval");
    }
    let intervals_ns = INTERVALS_MS.map(|ms| ms * 1_000_000);
    let [shortest, .., longest] = intervals_ns;
    let wanted = duration_ns.map_or(longest, |ns| ns / ROWS_WANTED).max(shortest);
    let below = intervals_ns
        .into_iter()
        .rfind(|ns| *ns <= wanted)
        .unwrap_or(shortest);
    let fitting = intervals_ns.into_iter().find(|ns| *ns >= below && fits(*ns));
    Ok(fitting.unwrap_or(longest))
}

fn check_interval(interval_ns: u64) -> Result<()> {
    let shown = measure::units::format_duration(interval_ns);
    ensure_about!(
        "--interval",
        interval_ns >= 1_000_000,
        "--interval {shown} is too short; 1ms is the shortest"
    );
    Ok(())
}

/// A time that must not be 0.
pub fn nonzero_ns(text: &str, flag: &'static str) -> Result<u64> {
    let value = duration_ns_or_zero(text, flag)?;
    ensure_about!(
        flag,
        value > 0,
        "{flag} {text} is zero; give a time such as 10s, 500ms or 2m"
    );
    Ok(value)
}

/// A time.
pub fn duration_ns_or_zero(text: &str, flag: &'static str) -> Result<u64> {
    let time = parse_duration(text).context(flag).about(flag)?;
    let ns = u64::try_from(time.as_nanos());
    ns.map_err(|_| anyhow!("{flag} {text} is longer than 584 years"))
        .about(flag)
}

/// How long one measurement or trial lasts.
pub fn trial_duration(flag: &'static str, text: &str) -> Result<Duration> {
    let duration = parse_duration(text).context(flag).about(flag)?;
    ensure_about!(
        flag,
        (Duration::from_millis(10)..=Duration::from_secs(86400)).contains(&duration),
        "{flag} {text} is not between 10ms and 24h"
    );
    Ok(duration)
}

/// The value of a flag that may be left out.
pub fn optional<T>(
    text: Option<&str>,
    flag: &'static str,
    parse: fn(&str, &'static str) -> Result<T>,
) -> Result<Option<T>> {
    text.map(|text| parse(text, flag)).transpose()
}

/// A rate of packets: no share of a link's, and no bits.
pub fn packet_rate(text: &str, flag: &'static str) -> Result<f64> {
    match text.parse::<RateSpec>().context(flag).about(flag)? {
        RateSpec::Pps(pps) if pps > 0.0 => Ok(pps),
        _ => bail_about!(flag, "{flag} {text} is not a packet rate; write it as 14.88Mpps"),
    }
}

/// How long a worker must not poll for it to be a stall: every poll would be one below 1 us.
pub fn stall_ns(text: &str) -> Result<u64> {
    let pause = duration_ns_or_zero(text, "--pause")?;
    ensure_about!(
        "--pause",
        pause >= 1000,
        "--pause {text} is below 1us, about what a poll takes; 20us is usual"
    );
    Ok(pause)
}

/// A number with an optional k, M or G.
pub fn count(text: &str, flag: &'static str) -> Result<u64> {
    measure::units::parse_count(text).context(flag).about(flag)
}

/// The same from 1 on.
pub fn nonzero_count(text: &str, flag: &'static str) -> Result<u64> {
    let number = count(text, flag)?;
    ensure_about!(flag, number > 0, "{flag} {text} is none; give a number from 1 on");
    Ok(number)
}

/// A size such as 64MiB.
pub fn bytes(text: &str, flag: &'static str) -> Result<u64> {
    measure::units::parse_bytes(text).context(flag).about(flag)
}

/// A MAC address.
pub fn mac(text: &str, flag: &'static str) -> Result<MacAddress> {
    let wrong = |error| anyhow!("{flag} {text}: a MAC address is {error}");
    text.parse().map_err(wrong).about(flag)
}

/// A seed where none is given, short enough to be typed again: one of so many that another run hardly has the same.
pub fn random_seed() -> u64 {
    crate::run::random() % 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_have_about_two_hundred_intervals_as_far_as_these_fit() {
        const MS: u64 = 1_000_000;
        let chosen = |duration_ms: Option<u64>, fits: u64| {
            interval_ns(None, duration_ms.map(|ms| ms * MS), |ns| ns >= fits * MS).unwrap() / MS
        };
        for (duration_ms, interval_ms) in [(100, 10), (1000, 10), (5000, 20), (10_000, 50), (60_000, 200)] {
            assert_eq!(chosen(Some(duration_ms), 0), interval_ms, "{duration_ms} ms");
        }
        assert_eq!([chosen(Some(3_600_000), 0), chosen(None, 0)], [1000, 1000]);
        // Where so many streams want more room than that, the next longer one that fits.
        assert_eq!(
            [chosen(Some(10_000), 60), chosen(Some(10_000), 5000)],
            [100, 1000]
        );
        let asked = |text| interval_ns(Some(text), Some(10_000 * MS), |_| false);
        assert_eq!(asked("3ms").unwrap(), 3 * MS);
        assert!(asked("0s").is_err());
    }
}
