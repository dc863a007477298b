//! `dropless guard --replay`: over a capture, by the times in it.

use std::path::Path;

use anyhow::{Result, ensure};
use capture::input::LinkType;
use guard::Sample;
use measure::{GuardSummary, Note, Validity};
use rules::limit::Limiter;
use rules::{Count, Counts, Looked, Malformed, ON_REQUEST, RuleSet, Tables, Totals, is_cut, look};

use super::watch::Watch;
use super::{Args, allow_list, guard_of, own_rules};
use crate::plan::{self, GuardPlan};
use crate::run::capture_input::CaptureInput;
use crate::run::finish::Finish;
use crate::run::rulebook::judged;
use crate::run::signals::Interrupt;
use crate::run::{self};

/// A packet that is older than those before it by more than this begins another time: one that says to be of tomorrow would let
/// all others count at once, and no flood be seen.
const BACK_NS: u64 = 1_000_000_000;
/// No time is later.
const LAST_NS: u64 = i64::MAX as u64;
/// The same file is always judged in the same way.
const SEED: u64 = 0x005E_ED0F_6A2D;

/// Runs it; the result is its exit code.
pub fn run(args: &Args, plan: &GuardPlan, file: &Path) -> Result<u8> {
    let own = own_rules(plan)?;
    let allowed = allow_list(plan)?;
    let guard = guard_of(plan, &allowed, SEED)?;
    let interrupt = Interrupt::install()?;
    let is_over = interrupt.clone();
    let mut input = CaptureInput::open(file)?;
    let mut reader = input.reader(move || is_over.is_set())?;
    let console = args.run.output.console();
    let dir = run::plain_directory(&args.run.output.place(), plan, "guard")?;
    let mut watch = Watch::new(guard, &dir, plan.dry_run).keeping(plan.baseline.clone());
    let mut judge = Judge::new(RuleSet::joined(&[&allowed, &own.set]), plan::rules::GROUPS)?;
    let mut summary = GuardSummary {
        run: dir.path().display().to_string(),
        source: input.name.clone(),
        mode: "replay".into(),
        dry_run: plan.dry_run,
        ..GuardSummary::default()
    };
    let rules = plan.rules.as_deref().map(Path::display);
    summary.rules = rules.map(|path| path.to_string()).unwrap_or_default();
    let (mut first_ns, mut now_ns, mut behind_ns) = (None, 0, 0);
    let (mut at, mut back, mut timeless) = (0_u64, 0_u64, 0_u64);
    while !interrupt.is_set() {
        let packet = match reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            Err(_) if interrupt.is_set() => break,
            // What was read before it counts.
            Err(error) => {
                summary
                    .reasons
                    .push(Note::new("input_damaged", error.to_string()));
                break;
            }
        };
        at += 1;
        ensure!(
            packet.interface.link == LinkType::Ethernet,
            "{}: packet {at} is not of Ethernet, and rules are for Ethernet frames",
            input.name
        );
        // Events tell times since 1970.
        let since_1970 = packet.time_ns.and_then(|time_ns| u64::try_from(time_ns).ok());
        let mut time_ns = since_1970.map(|time_ns| time_ns.saturating_add(behind_ns).min(LAST_NS));
        timeless += u64::from(time_ns.is_none());
        back += u64::from(time_ns.is_some_and(|time_ns| time_ns < now_ns));
        if let Some(time_ns) = time_ns.as_mut().filter(|time_ns| **time_ns + BACK_NS < now_ns) {
            behind_ns = now_ns.min(behind_ns + (now_ns - *time_ns));
            *time_ns = now_ns;
        }
        now_ns = now_ns.max(time_ns.unwrap_or(now_ns));
        first_ns.get_or_insert(now_ns);
        let len = packet.original_len;
        let looked = Looked::at(packet.data, len as usize);
        if is_cut(packet.data, len as usize, &looked.asked(ON_REQUEST)) {
            summary.not_judged += 1;
            continue;
        }
        watch.observe(&Sample {
            packet: looked,
            len,
            weight: 1,
            time_ns: now_ns,
        });
        if let Some(blocks) = watch.changed().filter(|_| !plan.dry_run) {
            judge.swap(RuleSet::joined(&[&allowed, &blocks?, &own.set]))?;
            watch.in_force(&judge.set, now_ns, &judge.totals);
        }
        // The guard asks for all reasons, and may know what is wrong with it where these rules do not ask.
        summary.not_judged += u64::from(!judge.take(packet.data, len, now_ns));
        for line in watch.says() {
            console.human(&format!("{line}\n"))?;
        }
    }
    let judged_all = judge.finish();
    summary.judged = judged(&judged_all.0, &judged_all.1);
    watch.finish(&mut summary, &judged_all.1);
    summary.duration_s = now_ns.saturating_sub(first_ns.unwrap_or(now_ns)) as f64 / 1e9;
    summary.rate_pps = summary.judged.packets() as f64 / summary.duration_s.max(1e-3);
    summary.interrupted = interrupt.is_set();
    if back > 0 {
        let text = format!(
            "{back} packets of the file are older than one before them; they count at its time, and where that is more than a second what follows goes on from there"
        );
        summary.notes.push(Note::new("times_go_back", text));
    }
    if timeless > 0 {
        let text = format!(
            "{timeless} packets of the file have no time, or one before 1970; they count at that of the one before"
        );
        summary.notes.push(Note::new("no_times", text));
    }
    if summary.reasons.is_empty() {
        summary.verdict = Validity::Valid;
    }
    let finish = Finish {
        dir: &dir,
        console,
        board: None,
    };
    finish.with(summary, |_, _| {})
}

/// Rules in force over a file, one set after the other.
struct Judge {
    set: RuleSet,
    tables: Tables,
    limiter: Limiter,
    counts: Counts,
    totals: Totals,
}

impl Judge {
    fn new(set: RuleSet, groups: usize) -> Result<Self> {
        Ok(Self {
            tables: Tables::new(&set)?,
            limiter: Limiter::new(groups, SEED),
            counts: none_yet(&set),
            totals: Totals::default(),
            set,
        })
    }

    fn swap(&mut self, set: RuleSet) -> Result<()> {
        self.settle();
        self.tables = Tables::new(&set)?;
        self.counts = none_yet(&set);
        self.set = set;
        Ok(())
    }

    fn settle(&mut self) {
        self.totals.add(&self.set.spellings(), &self.counts);
        self.counts = none_yet(&self.set);
    }

    /// Whether enough of it was captured for these rules to judge it.
    fn take(&mut self, data: &[u8], len: u32, now_ns: u64) -> bool {
        let found = look(data, len as usize, self.tables.reasons);
        if is_cut(data, len as usize, &found) {
            return false;
        }
        let decision = self.tables.decide(&found, &self.limiter, now_ns);
        let one = Count {
            packets: 1,
            bytes: len.into(),
        };
        if let Err(reason) = found {
            self.counts.malformed[reason as usize] += one;
        }
        if decision.is_full {
            self.counts.full += one;
        }
        *match decision
            .rule
            .and_then(|rule| self.counts.rules.get_mut(usize::from(rule)))
        {
            Some(count) => count,
            None => &mut self.counts.default,
        } += one;
        true
    }

    fn finish(mut self) -> (RuleSet, Totals) {
        self.settle();
        (self.set, self.totals)
    }
}

fn none_yet(set: &RuleSet) -> Counts {
    Counts {
        rules: vec![Count::default(); set.rules.len()],
        malformed: [Count::default(); Malformed::ALL.len()],
        ..Counts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a packet whose checksum is wrong and whose TCP header was not captured, rules that do not ask for the checksum know
    /// nothing.
    #[test]
    fn what_was_cut_off_meets_no_rule() {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 0, 1, 192, 0, 2, 1]);
        for (text, judged) in [
            ("deny malformed tcp-header\n", false),
            ("deny malformed ip-checksum\n", true),
        ] {
            let set = rules::parse("test", &|_| Ok(text.to_owned())).unwrap();
            let mut judge = Judge::new(set, rules::limit::WAYS).unwrap();
            assert_eq!(judge.take(&frame, 60, 1), judged, "{text}");
            let (set, totals) = judge.finish();
            assert_eq!(super::judged(&set, &totals).denied, u64::from(judged), "{text}");
        }
    }

    /// A packet that is denied since there is no place for its group is counted as that, too, as on an interface.
    #[test]
    fn what_found_no_entry_in_the_table_of_rates_is_counted() {
        let text = "rate 1pps per source/32 ip\ndefault allow\n";
        let set = rules::parse("test", &|_| Ok(text.to_owned())).unwrap();
        let mut judge = Judge::new(set, rules::limit::WAYS).unwrap();
        for source in 0..40_u8 {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
            frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
            frame.extend([10, 0, 0, source, 192, 0, 2, 1]);
            frame.extend([0, 7, 0, 9, 0, 26, 0, 0]);
            frame.resize(60, 0);
            assert!(judge.take(&frame, 60, 1_000_000_000));
        }
        let (set, totals) = judge.finish();
        let judged = judged(&set, &totals);
        assert_eq!((judged.packets(), judged.groups_full), (40, judged.denied));
        assert!(judged.denied > 0, "{judged:?}");
    }
}
