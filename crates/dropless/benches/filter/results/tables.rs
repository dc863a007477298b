//! What was measured, as the tables of the page.

use super::{LAST, ONE_ALLOW, ONE_DENY, PREFIXES, RANDOM, Results};
use crate::classify::Cost;
use crate::contest::{Contest, Filter};
use crate::rounds;
use crate::statistics::{median, spread};
use crate::tables::{dash, layout, number};

impl Results {
    pub(super) fn wire_table(&self) -> String {
        let mut rows = Vec::new();
        for row in [ONE_DENY, ONE_ALLOW, LAST, RANDOM] {
            let mut filters: Vec<Filter> = self
                .contests
                .iter()
                .filter(|contest| contest.row == row)
                .map(|contest| contest.filter)
                .collect();
            filters.sort_unstable();
            filters.dedup();
            for filter in filters {
                rows.push(self.wire_row(row, filter));
            }
        }
        if rows.is_empty() {
            return String::new();
        }
        let head = [
            "rules and frames",
            "filter",
            "Mpps a core",
            "range",
            "ns a frame",
            "ours to it",
            "program alone, ns",
            "offered, Mpps",
            "handled, Mpps",
            "core busy",
            "limited by",
        ];
        format!(
            "\n### Beside other filters\n\n\
             60-byte UDP frames over one virtual wire (veth, native XDP, threaded NAPI). One core makes frames (`BPF_PROG_RUN` with live frames,\n\
             redirected onto the wire), the thread of the wire's queue takes them on the other core and does nothing else. *Mpps a core* are\n\
             the frames that it handled for each second that it had its core, by the kernel's own account of it: what is judged. Where the\n\
             generator makes fewer than a filter could handle (*limited by: generator*), the wire's rate says nothing of the filter, and its\n\
             share of the core does; the rate of full load may then be somewhat higher, since short queues mean small batches. Counters of the\n\
             interface and of IP confirm in each measurement that frames met what they were to meet. With *program alone* the kernel runs the program\n\
             over one frame after the other (`BPF_PROG_RUN`), less what a program costs that does nothing. iptables and ours count what each rule\n\
             meets, nftables here does not, in its favour. What passes is for another host: the kernel drops it at once.\n\n{}",
            layout(&head, rows)
        )
    }

    fn wire_row(&self, row: &str, filter: Filter) -> Vec<String> {
        let all: Vec<&Contest> = self
            .contests
            .iter()
            .filter(|contest| contest.row == row && contest.filter == filter)
            .collect();
        let of = |figure: fn(&Contest) -> f64| {
            median(&all.iter().map(|contest| figure(contest)).collect::<Vec<_>>())
        };
        let range = spread(
            &all.iter()
                .map(|contest| contest.flood.per_core() / 1e6)
                .collect::<Vec<_>>(),
        );
        let is_filter = all
            .iter()
            .filter(|contest| contest.flood.is_filter_limit())
            .count()
            * 2
            > all.len();
        vec![
            row.into(),
            filter.name().into(),
            number(of(|contest| contest.flood.per_core() / 1e6), 2),
            range.map_or_else(dash, |(low, high)| format!("{low:.2} .. {high:.2}")),
            number(of(|contest| contest.flood.ns()), 0),
            number(self.factor(row, filter).filter(|_| filter != Filter::Dropless), 2),
            number(self.of(row, filter, |contest| contest.program_ns), 0),
            number(
                of(|contest| contest.flood.offered as f64 / contest.flood.seconds / 1e6),
                2,
            ),
            number(
                of(|contest| contest.flood.handled as f64 / contest.flood.seconds / 1e6),
                2,
            ),
            number(
                of(|contest| contest.flood.busy / contest.flood.seconds * 100.0),
                0,
            ) + " %",
            if is_filter {
                "filter".into()
            } else {
                "generator".into()
            },
        ]
    }

    pub(super) fn prefix_table(&self) -> String {
        let ours = Filter::Dropless;
        let rows = PREFIXES.iter().filter_map(|row| {
            let ns = self.of(row, ours, |contest| Some(contest.flood.ns()))?;
            let first = self.of(PREFIXES[0], ours, |contest| Some(contest.flood.ns()));
            let alone = self.of(row, ours, |contest| contest.program_ns);
            let alone_first = self.of(PREFIXES[0], ours, |contest| contest.program_ns);
            Some(vec![
                (*row).into(),
                format!("{:.2}", 1e3 / ns),
                format!("{ns:.0}"),
                number(first.map(|first| ns / first), 2),
                number(alone, 0),
                number(alone.zip(alone_first).map(|(alone, first)| alone / first), 2),
            ])
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return String::new();
        }
        let head = [
            "rules",
            "Mpps a core",
            "ns a frame",
            "to 1 rule",
            "program alone, ns",
            "to 1 rule",
        ];
        format!(
            "\n### Prefixes, in XDP\n\n\
             On the same wire: one rule that denies a set of prefixes (of 16 to 32 bits), and 65,536 frames by turns, each from an address by\n\
             chance within a prefix by chance; with 1 rule they are all from its one address.\n\n{}",
            layout(&head, rows)
        )
    }

    pub(super) fn forward_table(&self) -> String {
        if self.forward.is_empty() {
            return String::new();
        }
        let rows = self.forward.iter().map(|rounds| {
            let mpps = |rate: Option<f64>| number(rate.map(|rate| rate / 1e6), 2);
            let range =
                spread(&rounds.ratios()).map_or_else(dash, |(low, high)| format!("{low:.2} .. {high:.2}"));
            vec![
                rounds.row.work.into(),
                rounds.row.beside.into(),
                mpps(rounds::rate(&rounds.ours)),
                mpps(rounds::rate(&rounds.theirs)),
                number(rounds.ratio(), 2),
                range,
            ]
        });
        let head = [
            "dropless",
            "beside",
            "dropless, Mpps",
            "the other, Mpps",
            "ratio",
            "by round",
        ];
        format!(
            "\n### Forwarding in user space\n\n\
             One core, bursts of 64, frames of 60 bytes, both directions together. A null port gives whatever its buffers hold: one UDP frame of ours,\n\
             again and again, which no rule denies and whose header is remembered, as that of a flow is; testpmd's are zeros. What frames by chance cost is in the next table.\n\
             Over memif one `dropless send` on the other core sends through both ports, to ours and to testpmd alike, and what comes back counts.\n\n{}",
            layout(&head, rows.collect())
        )
    }

    pub(super) fn cost_table(&self) -> String {
        let mut names: Vec<&'static str> = Vec::new();
        for cost in &self.costs {
            if !names.contains(&cost.rules) {
                names.push(cost.rules);
            }
        }
        if names.is_empty() {
            return String::new();
        }
        let rows = names.iter().map(|name| {
            let all: Vec<&Cost> = self.costs.iter().filter(|cost| cost.rules == *name).collect();
            let of = |figure: &dyn Fn(&Cost) -> Option<f64>| {
                median(&all.iter().filter_map(|cost| figure(cost)).collect::<Vec<_>>())
            };
            let acl = |figure: fn(&crate::classify::Acl) -> f64| of(&|cost| cost.acl.as_ref().map(figure));
            let (ns, with) = (of(&|cost| Some(cost.ns)), of(&|cost| Some(cost.ns_with_parse)));
            let (acl_ns, acl_with) = (acl(|acl| acl.ns), acl(|acl| acl.ns_with_parse));
            let ratio = |ours: Option<f64>, theirs: Option<f64>| {
                number(theirs.zip(ours).map(|(theirs, ours)| theirs / ours), 2)
            };
            vec![
                (*name).into(),
                number(ns, 1),
                number(with, 1),
                number(of(&|cost| Some(cost.ns_of_flows)), 1),
                number(of(&|cost| Some(cost.build_s)), 3),
                number(acl_ns, 1),
                number(acl_with, 1),
                number(acl(|acl| acl.build_s), 3),
                all.iter()
                    .find_map(|cost| cost.acl.as_ref())
                    .map_or_else(dash, |acl| acl.way.clone()),
                ratio(ns, acl_ns),
                ratio(with, acl_with),
            ]
        });
        let head = [
            "rules",
            "decide, ns",
            "parse and decide, ns",
            "of 1,024 flows, ns",
            "build, s",
            "librte_acl, ns",
            "with parse, ns",
            "build, s",
            "its way",
            "its time to ours",
            "with parse",
        ];
        format!(
            "\n### Tables in user space, and DPDK's librte_acl\n\n\
             Nanoseconds a packet on one core, over 65,536 UDP frames by chance that each meet a rule. librte_acl has the same rules and frames on the\n\
             same core, in a process of its own, and decides the same about every frame: 32 packets a call, in its fastest way here. Its parsing finds\n\
             the tuple of IPv4 without options and nothing else; ours takes every protocol, tags, extension headers, and looks for malformed packets.\n\
             Our build includes reading the text. *Of 1,024 flows*: the same over the first 1,024 of the frames again and again; what a\n\
             header met is remembered, and so is what a combination of classes met, of more than 64 rules.\n\n{}",
            layout(&head, rows.collect())
        )
    }

    pub(super) fn reload_table(&self) -> String {
        if self.reloads.is_empty() {
            return String::new();
        }
        let rows = self.reloads.iter().map(|reload| {
            vec![
                if reload.is_xdp {
                    "filter run".into()
                } else {
                    "forward".into()
                },
                format!("{:.2}", reload.seconds),
                format!("{:.3}", reload.rate / 1e6),
                format!("{:.1} %", reload.dip * 100.0),
                format!("{:.1} %", reload.dip_without * 100.0),
                if reload.is_xdp {
                    reload.refused.to_string()
                } else {
                    dash()
                },
            ]
        });
        let head = [
            "command",
            "in force after, s",
            "rate, Mpps",
            "deepest dip",
            "without a reload",
            "frames refused",
        ];
        format!(
            "\n### A reload of half a million prefixes\n\n\
             `dropless filter reload` to its end, other 500,000 prefixes in the place of 500,000; the slowest 100 ms meanwhile, and in two seconds before.\n\
             On the wire frames come at a steady pace through a socket, since here the program that reads the rules shares a core with the sender, which\n\
             comes first; *refused* are frames that the filter's thread did not take in time. `forward` goes from null to null at full rate.\n\n{}",
            layout(&head, rows.collect())
        )
    }

    pub(super) fn guard_table(&self) -> String {
        if self.guards.is_empty() {
            return String::new();
        }
        let rows = self.guards.iter().map(|guarded| {
            vec![
                format!("{:.3}", guarded.rate / 1e6),
                format!("{:.2}", guarded.seconds),
                number(guarded.told_s, 2),
            ]
        });
        let head = ["flood, Mpps", "dropped after, s", "as guard says it, s"];
        format!(
            "\n### A flood, and guard\n\n\
             Answers of time servers from invented sources begin at once and at a steady pace, with one packet of somebody else in 64; what of them the interface did not drop, at that pace, is the time\n\
             until the drop. Nothing of it is guard's own account.\n\n{}",
            layout(&head, rows.collect())
        )
    }
}

impl Results {
    pub(super) fn flood_table(&self) -> String {
        if self.floods.is_empty() {
            return String::new();
        }
        let rows = self.floods.iter().map(|flooded| {
            let flood = &flooded.flood;
            let mpps = |packets: u64| format!("{:.3}", packets as f64 / flood.seconds / 1e6);
            vec![
                mpps(flood.offered),
                mpps(flooded.legitimate),
                flooded.legitimate.to_string(),
                flood.delivered.to_string(),
                flood.refused.to_string(),
                format!("{:.0} %", flood.busy / flood.seconds * 100.0),
            ]
        });
        let head = [
            "offered, Mpps",
            "legitimate, Mpps",
            "legitimate",
            "delivered to IP",
            "no room on the wire",
            "core busy",
        ];
        format!(
            "\n### A flood with legitimate packets in it\n\n\
             Answers of time servers from invented sources, one packet each 500 ns, and of eight packets one of somebody else; one rule denies the\n\
             flood in XDP. *Delivered* is what the kernel's IP says that it delivered: all legitimate ones must be there. What found no room on the wire,\n\
             before the filter, counts as lost, too.\n\n{}",
            layout(&head, rows.collect())
        )
    }
}
