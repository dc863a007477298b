//! Which way to take, and why, in plain words: worked out of what was measured here.

use super::firewall;
use super::method::Method;
use super::result::{MethodResult, Recommendation, Trial};
use crate::units::{format_duration, format_rate};

/// A way has room to spare when it carries this many times what is needed: traffic is never as even as a measurement.
const ROOM: f64 = 1.5;
/// Sockets this near to the need may get there with more queues and cores, before anything is rewritten.
const TUNABLE: f64 = 2.0;
/// What ways carried is found to this part of it: one that carried less than so much more carried the same.
pub const NEAR_ENOUGH: f64 = 0.1;
/// With less of its cores than this, what was measured is somebody else's doing.
const UNDISTURBED: f64 = 0.9;
/// The rule of thumb: up to here the kernel is fine, packets/s.
const KERNEL_IS_FINE_PPS: f64 = 1e6;
/// And from here on it takes `AF_XDP` or DPDK.
const KERNEL_IS_OVER_PPS: f64 = 2e6;

/// A way that was measured.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    method: Method,
    result: &'a MethodResult,
    lossless_pps: f64,
}

impl Way<'_> {
    fn carries(&self, wanted: f64) -> bool {
        self.lossless_pps >= wanted
    }

    /// Whether it carried the rate once, and lost packets of a lower one.
    fn is_unsteady_at(&self, wanted: f64) -> bool {
        !self.carries(wanted) && self.result.at(wanted).is_some_and(Trial::is_lossless)
    }

    /// What it carried, in words.
    fn carried(&self) -> String {
        let rate = format_rate(self.lossless_pps);
        if self.result.may_carry_more() {
            format!("at least {rate}")
        } else {
            rate
        }
    }

    /// What it took, in words.
    fn took(&self) -> String {
        let Some(trial) = &self.result.at_lossless else {
            return String::new();
        };
        let per_packet = self.result.cpu_ns_per_packet.map_or_else(String::new, |ns| {
            format!(
                ", {} of processor time a packet",
                format_duration(ns.round() as u64)
            )
        });
        trial.cores().map_or_else(String::new, |cores| {
            format!(" ({cores:.1} cores busy{per_packet})")
        })
    }

    fn latency(&self) -> Option<u64> {
        self.result.latency.as_ref()?.latency_ns.p99
    }
}

/// The recommendation. `is_virtual` says that it was not the user's own network, `own_share` how much of its cores
/// dropless had when it had the least.
pub fn advise(
    results: &[MethodResult],
    wanted_pps: Option<f64>,
    is_virtual: bool,
    own_share: f64,
) -> Recommendation {
    let mut ways: Vec<Way<'_>> = results
        .iter()
        .filter_map(|result| {
            Some(Way {
                method: result.name.parse().ok()?,
                lossless_pps: result.lossless_pps?,
                result,
            })
        })
        .collect();
    ways.sort_by_key(|way| way.method);
    let reaching: Vec<Way<'_>> = ways
        .iter()
        .copied()
        .filter(|way| way.method.reaches_a_network())
        .collect();
    let mut advice = match wanted_pps {
        _ if reaching.is_empty() => Recommendation {
            method: None,
            sentences: vec![if results.iter().any(MethodResult::has_measured_a_network) {
                "No way to a network carried anything without loss here, so there is nothing to choose from; the reasons are in the table.".into()
            } else {
                "No way to a network was measured, so there is nothing to choose from.".into()
            }],
        },
        Some(wanted) => for_rate(&reaching, wanted),
        None => bands(&reaching),
    };
    if let Some(wanted) = wanted_pps.filter(|_| !reaching.is_empty()) {
        advice.sentences.extend(rule_of_thumb(&reaching, wanted));
    }
    advice.sentences.extend(firewall::words(results));
    advice.sentences.extend(ceiling(&ways, &reaching, wanted_pps));
    if own_share < UNDISTURBED {
        let percent = own_share * 100.0;
        let again = format!(
            "Measure again before you decide: somebody else was at work on these cores, and dropless had one of them for only {percent:.0} % of the time (`dropless noise` names who). The rates below are too low, and their order may be chance."
        );
        advice.sentences.insert(0, again);
    }
    if is_virtual {
        advice.sentences.push(
            "This was a virtual wire inside one machine, where the kernel moves every packet whoever sends it: it tells the ways apart, but a NIC gives other numbers, and to AF_XDP and DPDK better ones; measure yours with --far ADDR.".into(),
        );
    }
    advice
}

/// Whether `rate` is more than `than` by more than what both are known to.
fn is_more(rate: f64, than: f64) -> bool {
    rate > than * (1.0 + NEAR_ENOUGH)
}

fn for_rate(ways: &[Way<'_>], wanted: f64) -> Recommendation {
    let roomy = ways.iter().find(|way| way.lossless_pps >= wanted * ROOM);
    let Some(choice) = roomy.or_else(|| ways.iter().find(|way| way.carries(wanted))) else {
        return none_will_do(ways, wanted);
    };
    let (words, carried, took) = (choice.method.words(), choice.carried(), choice.took());
    let (times, need) = (times(choice.lossless_pps / wanted), format_rate(wanted));
    let mut sentences = vec![format!(
        "Take {words}: this carried {carried} without a loss here, {times} the {need} that you need{took}."
    )];
    if roomy.is_none() {
        sentences.push(format!(
            "That leaves little room: a burst or a busy neighbour will cost packets. It is the least work of what carries {need} at all."
        ));
    }
    let cost = choice.method.cost();
    sentences.push(format!("What it costs you in operations: {cost}."));
    for less in ways.iter().filter(|way| way.method < choice.method) {
        sentences.push(format!(
            "{} would be less work, but carried only {}{}.",
            capital(less.method.words()),
            format_rate(less.lossless_pps),
            if less.carries(wanted) {
                ", too close to what you need"
            } else if less.is_unsteady_at(wanted) {
                " for sure: at your rate it lost nothing once, and at a lower one it did"
            } else if less.result.is_limited_by_us() {
                ", where its own end was at its limit: it may carry more"
            } else if less.result.may_carry_more() {
                ", and may carry more"
            } else {
                ""
            }
        ));
    }
    sentences.extend(tuning(ways, choice, wanted));
    sentences.extend(faster(ways, choice));
    Recommendation {
        method: Some(choice.method.name().into()),
        sentences,
    }
}

/// What the fastest of the dearer ways would give, and what it would take.
fn faster(ways: &[Way<'_>], choice: &Way<'_>) -> Option<String> {
    let dearer = ways.iter().filter(|way| way.method > choice.method);
    let best = dearer.max_by(|a, b| a.lossless_pps.total_cmp(&b.lossless_pps))?;
    let (words, carried, cost) = (best.method.words(), best.carried(), best.method.cost());
    if !is_more(best.lossless_pps, choice.lossless_pps) {
        // What it carried at least is no proof that it carries no more.
        let open = not_found_out(ways.iter().filter(|way| way.method > choice.method));
        return Some(open.map_or_else(
            || format!("Nothing dearer was faster here: {words} carried {carried}."),
            |open| format!("Whether anything dearer is faster was not found out: {open}."),
        ));
    }
    let latency = match (best.latency(), choice.latency()) {
        (Some(best), Some(own)) => format!(
            ", with 99 % of round trips within {} instead of {}",
            format_duration(best),
            format_duration(own)
        ),
        _ => String::new(),
    };
    let times = times(best.lossless_pps / choice.lossless_pps);
    Some(format!(
        "More is to be had: {words} carried {carried}, {times} as much{latency}; it costs {cost}."
    ))
}

/// The ways of which only a lower bound is known, in words; none where there are none.
fn not_found_out<'w>(ways: impl Iterator<Item = &'w Way<'w>>) -> Option<String> {
    let open = ways.filter(|way| way.result.may_carry_more());
    let open: Vec<String> = open
        .map(|way| {
            format!(
                "{} carried {}, and may carry more",
                way.method.words(),
                way.carried()
            )
        })
        .collect();
    (!open.is_empty()).then(|| open.join("; "))
}

/// Between what sockets carry and twice that, more queues come before another way.
fn tuning(ways: &[Way<'_>], choice: &Way<'_>, wanted: f64) -> Option<String> {
    let sockets = best_sockets(ways)?;
    let (words, carried) = (sockets.method.words(), sockets.carried());
    let ratio = wanted / sockets.lossless_pps;
    let percent = 100.0 / ratio;
    let is_near = !choice.method.is_sockets() && ratio <= TUNABLE;
    is_near.then(|| {
        format!(
            "Before you change the program: {words} carried {carried} with one core at each end, {percent:.0} % of what you need. Spread over more queues and cores (RSS, interrupt affinity, `dropless tune`) the kernel may do; that was not measured here."
        )
    })
}

fn best_sockets<'a, 'b>(ways: &'a [Way<'b>]) -> Option<&'a Way<'b>> {
    ways.iter()
        .filter(|way| way.method.is_sockets())
        .max_by(|a, b| a.lossless_pps.total_cmp(&b.lossless_pps))
}

fn none_will_do(ways: &[Way<'_>], wanted: f64) -> Recommendation {
    let mut sentences = Vec::new();
    if let Some(best) = ways
        .iter()
        .max_by(|a, b| a.lossless_pps.total_cmp(&b.lossless_pps))
    {
        sentences.push(format!(
            "Nothing here carries {} without loss. The best was {}: {}, {:.0} % of it{}.",
            format_rate(wanted),
            best.method.words(),
            best.carried(),
            best.lossless_pps / wanted * 100.0,
            best.took()
        ));
        if best.result.is_limited_by_us() {
            sentences.push(format!(
                "The limit was {}, not the path: its core could not do more, or was taken from it for a while.",
                best.result.limit
            ));
        }
        let unsteady: Vec<&str> = ways
            .iter()
            .filter(|way| way.is_unsteady_at(wanted))
            .map(|way| way.method.words())
            .collect();
        if !unsteady.is_empty() {
            sentences.push(format!(
                "At your rate {} lost nothing once, and at a lower one it did: that is chance, not capacity.",
                unsteady.join(", and ")
            ));
        }
        let cores = (wanted * ROOM / best.lossless_pps).ceil();
        sentences.push(format!(
            "If it grows with cores and queues, which was not measured, {cores:.0} times the cores would do: spread the flows (RSS), keep everything else off those cores (`dropless tune`), and measure again."
        ));
    }
    Recommendation {
        method: None,
        sentences,
    }
}

/// Without a need: up to which rate each way is the least work.
fn bands(ways: &[Way<'_>]) -> Recommendation {
    let mut sentences = Vec::new();
    let mut reached = 0.0;
    let mut first = None;
    let mut slower = Vec::new();
    for way in ways {
        let safe = way.lossless_pps / ROOM;
        if !is_more(safe, reached) {
            slower.push(way);
            continue;
        }
        let (rate, words, cost) = (format_rate(safe), way.method.words(), way.method.cost());
        let (carried, took) = (way.carried(), way.took());
        sentences.push(if first.is_none() {
            format!(
                "Up to {rate} take {words}: this carried {carried} without a loss here{took}, and costs {cost}."
            )
        } else {
            format!("Above that, up to {rate}: {words}, which carried {carried}{took}; it costs {cost}.")
        });
        first.get_or_insert(way.method);
        reached = safe;
    }
    let idle: Vec<&str> = slower
        .iter()
        .filter(|way| !way.result.may_carry_more())
        .map(|way| way.method.words())
        .collect();
    if !idle.is_empty() {
        sentences.push(format!(
            "Not worth their trouble here, as something that is less work carried as much: {}.",
            idle.join("; ")
        ));
    }
    if let Some(open) = not_found_out(slower.into_iter()) {
        sentences.push(format!(
            "Whether these are worth their trouble was not found out: {open}."
        ));
    }
    sentences.push(format!(
        "Above {} nothing here has room to spare. Say what you need with --rate.",
        format_rate(reached)
    ));
    Recommendation {
        method: first.map(|method| method.name().into()),
        sentences,
    }
}

/// What is usually said, beside what was found.
fn rule_of_thumb(ways: &[Way<'_>], wanted: f64) -> Option<String> {
    let sockets = best_sockets(ways)?;
    let said = if wanted < KERNEL_IS_FINE_PPS {
        "below 1 Mpps the kernel is fine"
    } else if wanted <= KERNEL_IS_OVER_PPS {
        "from 1 to 2 Mpps the kernel wants tuning: interrupts, queues, RSS"
    } else {
        "above 2 Mpps it takes AF_XDP or DPDK"
    };
    let found = if sockets.carries(wanted) {
        "and the kernel's sockets carried what you need here"
    } else {
        "and the kernel's sockets did not carry what you need here"
    };
    let agrees = (wanted < KERNEL_IS_FINE_PPS) == sockets.carries(wanted);
    Some(format!(
        "The rule of thumb is that {said}; {found} (their best: {}), so {}.",
        sockets.carried(),
        if agrees {
            "rule and measurement agree"
        } else {
            "trust the measurement: it is this machine's"
        }
    ))
}

/// What DPDK does without any wire, where no port of DPDK was measured on one.
fn ceiling(all: &[Way<'_>], reaching: &[Way<'_>], wanted: Option<f64>) -> Option<String> {
    let memif = all.iter().find(|way| !way.method.reaches_a_network())?;
    if reaching.iter().any(|way| way.method == Method::Ports) {
        return None;
    }
    let enough = match wanted {
        Some(wanted) if memif.lossless_pps >= wanted * ROOM => ", so DPDK's side of it would do",
        Some(_) if memif.result.is_limited_by_us() => ", where our own end was the limit",
        Some(_) => ", so that not even DPDK's side of it has room to spare on these cores",
        None => "",
    };
    Some(format!(
        "DPDK was measured without a NIC, between two processes: {}{enough}. With a NIC of yours: --near-port pci:ADDRESS.",
        memif.carried()
    ))
}

fn times(ratio: f64) -> String {
    if ratio < 10.0 {
        format!("{ratio:.1} times")
    } else {
        format!("{ratio:.0} times")
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
