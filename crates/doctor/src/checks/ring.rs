//! Rings against stalls: how long a receive ring holds what arrives, and how far stalls put its core behind.

use std::time::Duration;

use measure::units::{format_duration, format_rate};

use crate::look::{self, Behind};
use crate::{Finding, Remedy, Subject, When};

const NAME: &str = "ring";
/// A frame of 64 bytes takes 84 on the wire: preamble and gap.
const BITS_PER_SMALLEST_FRAME: f64 = 84.0 * 8.0;
/// Assumed where no link tells its speed.
const USUAL_PPS: f64 = 1e6;
/// The most that the driver's bounds, and the command line, allow.
const DESCRIPTORS_MAX: u32 = 32768;

/// See the module.
pub fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let ports = look::behind(subject);
    let Some((core, stall)) = subject.watched.stalls.iter().max_by_key(|(_, stall)| **stall) else {
        let sentence = "stalls were not measured: --watch was 0, or other tasks are pinned to these cores";
        return Finding::of(NAME).cannot_tell(sentence).into();
    };
    let measured = subject.watched.stalls.keys().copied().collect();
    let unmeasured = subject.workers.without(&measured);
    // `most` is what the ring holds at most, whatever descriptors it is given.
    let judged = |of: &str, asked: u16, most: u32, rate_pps: f64, why: &str| {
        let descriptors = most.min(asked.into());
        let fill_time = Duration::from_secs_f64(f64::from(descriptors) / rate_pps);
        let (fills, worst) = (shown(fill_time), shown(*stall));
        let rate = format_rate(rate_pps);
        let held = format!("{of} of {descriptors} descriptors fills in {fills} at {rate} ({why})");
        let finding = Finding::of(NAME).read(
            format!("a loop on core {core}, {} long", shown(subject.watched.over)),
            format!("behind by {worst} at most"),
        );
        if fill_time > *stall && unmeasured.is_empty() {
            return finding.good(format!("{held}; stalls put core {core} {worst} behind"));
        }
        if fill_time > *stall {
            return finding.cannot_tell(format!(
                "{held}; stalls put core {core} {worst} behind, but {} had no loop: other tasks are pinned there, or we may not run there",
                unmeasured.in_words()
            ));
        }
        let lost = stall.as_secs_f64().mul_add(rate_pps, -f64::from(descriptors));
        let wanted = (stall.as_secs_f64() * rate_pps).ceil() as u32;
        let advice = if wanted <= most.min(DESCRIPTORS_MAX) {
            let descriptors = wanted.next_power_of_two().min(most.min(DESCRIPTORS_MAX));
            format!("--descriptors {descriptors}, and remove the cause of the stall")
        } else {
            "no ring holds that long: remove the cause of the stall".to_owned()
        };
        finding
            .bad(format!("{held}, and stalls put core {core} {worst} behind"))
            .costs(format!("{lost:.0} packets at least"))
            .remedy(Remedy::advice(When::Restart, advice))
    };
    let asked = subject.load;
    let rate_or =
        |rate: f64, why: &'static str| asked.rate_pps.map_or((rate, why), |rate| (rate, "as asked"));
    if ports.is_empty() {
        let (rate, why) = rate_or(USUAL_PPS, "assumed");
        return judged("a ring", asked.descriptors.unwrap_or(1024), u32::MAX, rate, why).into();
    }
    let of_port = |behind: &Behind| {
        let port = &behind.port;
        let link = behind.interface.as_ref().and_then(|interface| interface.link);
        let (rate, why) = match link.and_then(|link| link.speed_mbps) {
            Some(mbps) => rate_or(f64::from(mbps) * 1e6 / BITS_PER_SMALLEST_FRAME, "its line rate"),
            None => rate_or(USUAL_PPS, "assumed"),
        };
        let queues = f64::from(port.queues.map_or(1, std::num::NonZeroU16::get));
        let traits = port.kind.traits();
        let descriptors = asked.descriptors.unwrap_or(traits.descriptors_default);
        let of = format!("a ring of {port}");
        judged(&of, descriptors, traits.rx_room_max, rate / queues, why)
    };
    let missed = ports.iter().filter_map(|behind| missed(subject, behind));
    ports.iter().map(of_port).chain(missed).collect()
}

fn shown(time: Duration) -> String {
    format_duration(time.as_nanos() as u64)
}

/// What the NIC has counted since it was set up: rings that were full.
fn missed(subject: &Subject<'_>, behind: &Behind) -> Option<Finding> {
    let name = &behind.interface.as_ref()?.name;
    let file = format!("/sys/class/net/{name}/statistics/rx_missed_errors");
    let count = subject.sys.number::<u64>(&file).filter(|count| *count > 0)?;
    let finding = Finding::of(NAME)
        .read(file, count.to_string())
        .costs("those frames");
    Some(finding.warning(format!(
        "{name} missed {count} frames since it was set up: its ring was full"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;
    use host::cores::Core;

    fn machine(stall_us: u64) -> Machine {
        let mut machine = Machine::with(&[
            ("/sys/class/net/eth1/flags", "0x1003"),
            ("/sys/class/net/eth1/carrier", "1"),
            ("/sys/class/net/eth1/speed", "10000"),
        ]);
        machine.watched.over = Duration::from_secs(1);
        let stalls = [(2, stall_us), (3, 1)].map(|(core, us)| (Core(core), Duration::from_micros(us)));
        machine.watched.stalls = stalls.into();
        machine
    }

    #[test]
    fn a_stall_longer_than_the_ring_costs_packets() {
        assert_eq!(machine(500).verdict(check), Verdict::Good);
        let finding = machine(3000).finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(
            finding
                .costs
                .as_deref()
                .is_some_and(|costs| costs.starts_with("1976 packets"))
        );
        assert!(
            finding.remedies[0]
                .fix
                .to_string()
                .starts_with("--descriptors 4096")
        );
        assert_eq!(
            machine(50_000).finding(check).remedies[0].fix.to_string(),
            "no ring holds that long: remove the cause of the stall"
        );
    }

    #[test]
    fn a_core_without_a_loop_may_have_had_any_stall() {
        for (stall_us, verdict) in [(500, Verdict::CannotTell), (3000, Verdict::Bad)] {
            let mut machine = machine(stall_us);
            machine.watched.stalls.remove(&Core(3));
            let finding = machine.finding(check);
            assert_eq!(finding.verdict, verdict);
            let is_named = finding.says.contains("core 3 had no loop");
            assert_eq!(is_named, verdict == Verdict::CannotTell, "{}", finding.says);
        }
    }

    #[test]
    fn the_link_says_how_fast() {
        // 10 Gbit/s are 14.88 Mpps: the 2048 buffers of xdp last 138 us, 1024 descriptors of packet 69 us.
        assert_eq!(machine(100).port("xdp:eth1").verdict(check), Verdict::Good);
        assert_eq!(machine(100).port("packet:eth1").verdict(check), Verdict::Bad);
    }

    #[test]
    fn no_descriptors_are_advised_that_the_ring_does_not_take() {
        let finding = machine(200).port("xdp:eth1").finding(check);
        assert!(finding.says.contains("of 2048 descriptors"), "{}", finding.says);
        let advice = finding.remedies[0].fix.to_string();
        assert!(advice.starts_with("no ring holds that long"), "{advice}");
    }

    #[test]
    fn rate_and_ring_can_be_given() {
        // 3 ms at 100 kpps are 300 packets.
        let mut machine = machine(3000).port("xdp:eth1");
        machine.load.rate_pps = Some(100e3);
        assert_eq!(machine.verdict(check), Verdict::Good);
        machine.load.descriptors = Some(256);
        let finding = machine.finding(check);
        assert_eq!(finding.verdict, Verdict::Bad);
        assert!(
            finding
                .says
                .contains("256 descriptors fills in 2.560 ms at 100.0 kpps (as asked)"),
            "{}",
            finding.says
        );
    }

    #[test]
    fn frames_missed_so_far_are_told() {
        let machine = machine(1).port("xdp:eth1");
        machine.write("/sys/class/net/eth1/statistics/rx_missed_errors", "5");
        assert_eq!(machine.run(check)[1].verdict, Verdict::Warning);
    }

    #[test]
    fn unmeasured_is_said() {
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }
}
