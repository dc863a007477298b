//! What becomes of pauses, of samples that found no room, and of rules that go.

use guard::Settings;
use rules::{Count, Detail, Facts, Layer, Part, Spelling, Verdict};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn udp(source: u32, port: u16, time_ns: u64) -> Sample {
    let packet = Ok(Facts {
        vlan: None,
        ether_type: 0x0800,
        layer: Layer::V4,
        protocol: 17,
        part: Part::Whole,
        source: u128::from(source) << 96,
        destination: 0xC000_0201 << 96,
        ports: Some((port, 7)),
        detail: Detail::None,
    });
    Sample {
        packet: packet.into(),
        len: 60,
        weight: 1,
        time_ns,
    }
}

/// A second of a flood, sixty thousand packets of it, from `from_s` on.
fn flood(watch: &mut Watch, from_s: u64) {
    for number in 0..60_000_u64 {
        let time_ns = from_s * SECOND + number * SECOND / 60_000;
        watch.observe(&udp(0x0B00_0000 + number as u32 * 7919, 123, time_ns));
    }
}

/// A watch over samples that wait in a ring of so many places, looked at when its process runs.
struct Waiting {
    watch: Watch,
    now_ns: u64,
    ring: Vec<Sample>,
    missed: u64,
}

impl Waiting {
    const ROOM: usize = 14_000;

    fn new(dir: &RunDir, settings: Settings) -> Self {
        Self {
            watch: Watch::new((Guard::new(settings, 1), None), dir, false),
            now_ns: SECOND,
            ring: Vec::new(),
            missed: 0,
        }
    }

    /// Twelve thousand packets a second of one flow, and so many of strangers from port 123.
    fn come(&mut self, ms: u64, strangers_each_ms: u64) {
        for _ in 0..ms {
            for number in 0..12 + strangers_each_ms {
                let stranger =
                    ((self.now_ns / 1000 + number) as u32).wrapping_mul(7919) % (1 << 24) + 0x0B00_0000;
                let sample = match number {
                    0..12 => udp(0x0A00_0001, 4000, self.now_ns),
                    _ => udp(stranger, 123, self.now_ns),
                };
                if self.ring.len() < Self::ROOM {
                    self.ring.push(sample);
                } else {
                    self.missed += 1;
                }
            }
            self.now_ns += 1_000_000;
        }
    }

    fn look(&mut self) {
        let missed = std::mem::take(&mut self.missed);
        self.watch.look(&self.ring, missed, (self.now_ns, self.now_ns));
        self.ring.clear();
    }

    fn go_on(&mut self, ms: u64, strangers_each_ms: u64) {
        for _ in 0..ms / 5 {
            self.come(5, strangers_each_ms);
            self.look();
        }
    }

    fn end(mut self) -> GuardSummary {
        let mut summary = GuardSummary::default();
        self.watch.finish(&mut summary, &Totals::default());
        summary
    }
}

fn is_told(summary: &GuardSummary) -> bool {
    summary.notes.iter().any(|note| note.code == "not_watched")
}

/// What a process missed while it stood still is charged to nobody, wherever in a look it stood still.
#[test]
fn a_pause_makes_no_flood_of_usual_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let dir = RunDir::reopen(dir.path());
    for stopped_within in [false, true] {
        let mut waiting = Waiting::new(&dir, Settings::default());
        waiting.go_on(10_000, 0);
        if stopped_within {
            // After samples were read, and before it was counted what found no room.
            waiting.come(5, 0);
            let (read, begun_ns) = (std::mem::take(&mut waiting.ring), waiting.now_ns);
            waiting.come(20_000, 0);
            let missed = std::mem::take(&mut waiting.missed);
            waiting.watch.look(&read, missed, (begun_ns, waiting.now_ns));
        } else {
            waiting.come(20_000, 0);
        }
        waiting.go_on(10_000, 0);
        let summary = waiting.end();
        assert!(
            summary.blocks.is_empty() && summary.refusals.is_empty(),
            "{summary:?}"
        );
        assert!(
            is_told(&summary) && summary.samples_missed > 220_000,
            "{summary:?}"
        );
    }
}

#[test]
fn what_had_room_all_the_time_of_a_pause_counts_when_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = Waiting::new(&RunDir::reopen(dir.path()), Settings::default());
    waiting.go_on(10_000, 0);
    waiting.come(1_000, 0);
    waiting.go_on(10_000, 0);
    let summary = waiting.end();
    assert!(summary.blocks.is_empty() && !is_told(&summary), "{summary:?}");
    assert_eq!((summary.samples, summary.samples_missed), (21_000 * 12, 0));
}

#[test]
fn a_flood_that_goes_on_through_a_pause_is_found_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = Waiting::new(&RunDir::reopen(dir.path()), Settings::default());
    waiting.go_on(10_000, 0);
    // It begins while nobody looks.
    waiting.come(1_000, 0);
    waiting.come(19_000, 40);
    assert!(waiting.watch.changed().is_none());
    waiting.go_on(1_000, 40);
    let made = waiting.watch.changed().map(|set| set.unwrap().rules.len());
    assert_eq!(made, Some(1));
    let summary = waiting.end();
    let made = &summary.blocks[0].made;
    assert!(made.rule.starts_with("deny udp sport 123"), "{made:?}");
    assert!((20_000..=40_000).contains(&made.rate_pps), "{made:?}");
}

/// Where a look is in time and there is too little room, rates are told too low, if at all.
#[test]
fn what_found_no_room_for_a_moment_raises_no_rate() {
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = Waiting::new(&RunDir::reopen(dir.path()), Settings::default());
    waiting.go_on(10_000, 0);
    for _ in 0..4 {
        waiting.come(90, 400);
        waiting.look();
    }
    let summary = waiting.end();
    let made = &summary.blocks[0].made;
    assert!((20_000..=400_000).contains(&made.rate_pps), "{made:?}");
    assert!(
        summary.samples_missed > 50_000 && !is_told(&summary),
        "{summary:?}"
    );
}

/// What whoever judges has counted at the one rule that there is.
fn totals(watch: &Watch, packets: u64) -> Totals {
    let text = watch.rules[0].told.made.rule.clone();
    let spelling = Spelling {
        text,
        verdict: Verdict::Deny,
    };
    let count = Count { packets, bytes: 0 };
    Totals {
        rules: [(spelling, count)].into(),
        ..Totals::default()
    }
}

/// A guard that has seen a second of a flood, and the rules that it made of that.
fn flooded(dir: &std::path::Path, dry_run: bool) -> (Watch, RuleSet) {
    let guard = Guard::new(Settings::default(), 1);
    let mut watch = Watch::new((guard, None), &RunDir::reopen(dir), dry_run);
    flood(&mut watch, 1);
    let set = watch.changed().unwrap().unwrap();
    (watch, set)
}

/// What a rule met by the result: after a second before it is in force, if it is then, and another.
fn met(loads: bool, dry_run: bool) -> (u64, bool, Option<f64>) {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, set) = flooded(dir.path(), dry_run);
    let mut now = totals(&watch, 500);
    if loads {
        // An earlier rule of the same text had met 500.
        watch.in_force(&RuleSet::joined(&[]), 1_900_000_000, &now);
        // When that is looked at it has met some already.
        now = totals(&watch, 500 + 7);
        watch.in_force(&set, 2_000_000_000, &now);
        // Others are loaded, with it among them.
        watch.in_force(&set, 2_500_000_000, &now);
        now = totals(&watch, 500 + 60_007);
    }
    flood(&mut watch, 2);
    let mut summary = GuardSummary {
        dry_run,
        ..GuardSummary::default()
    };
    watch.finish(&mut summary, &now);
    assert_eq!(summary.blocks.len(), 1, "{:?}", summary.blocks);
    let block = &summary.blocks[0];
    (block.packets, block.counted, block.stopped_after_s)
}

#[test]
fn a_rule_has_met_what_was_counted_while_it_was_in_force() {
    let (packets, counted, after_s) = met(true, false);
    assert_eq!((packets, counted), (60_007, true));
    assert!(
        after_s.is_some_and(|after_s| (0.9..1.1).contains(&after_s)),
        "{after_s:?}"
    );
    assert_eq!(met(false, false), (0, true, None), "it could not be loaded");
    let (would_have, counted, after_s) = met(false, true);
    assert!(would_have > 90_000 && after_s.is_none(), "{would_have}");
    assert!(!counted, "nothing was in force that could count");
}

#[test]
fn log_terminal_and_result_say_the_same_of_a_rule_that_went() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, set) = flooded(dir.path(), false);
    let none = Totals::default();
    watch.in_force(&set, 2_000_000_000, &none);
    // Until others are in force it drops more, after samples say that it is quiet.
    watch.advance(300_000_000_000);
    watch.says();
    let less = watch.changed().unwrap().unwrap();
    watch.in_force(&less, 300_000_000_000, &totals(&watch, 1234));
    let said = watch.says().join("\n");
    assert!(said.contains("it met 1,234 packets"), "{said}");
    let log = std::fs::read_to_string(dir.path().join("guard.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&line["event"], &line["packets"], &line["counted"]),
        (&"expired".into(), &1234.into(), &true.into())
    );
    let mut summary = GuardSummary::default();
    watch.finish(&mut summary, &none);
    assert_eq!(summary.blocks[0].packets, 1234);
}

/// Also where each packet was seen: what is not in force counts nothing.
#[test]
fn nothing_is_counted_by_a_rule_of_a_dry_run() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, _) = flooded(dir.path(), true);
    watch.advance(300_000_000_000);
    let said = watch.says().join("\n");
    assert!(said.contains("it would have met about "), "{said}");
    let log = std::fs::read_to_string(dir.path().join("guard.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&line["event"], &line["counted"]),
        (&"expired".into(), &false.into())
    );
    let mut summary = GuardSummary {
        dry_run: true,
        ..GuardSummary::default()
    };
    watch.finish(&mut summary, &Totals::default());
    assert!(!summary.blocks[0].counted, "{:?}", summary.blocks);
}

/// Where the count of a rule is lost among those of many, what samples stand for is told, and said to be that.
#[test]
fn what_only_samples_tell_is_told_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, _) = flooded(dir.path(), true);
    watch.is_estimate = true;
    watch.advance(300_000_000_000);
    let said = watch.says().join("\n");
    assert!(
        said.contains("it would have met about ") && said.contains("(about: by samples)"),
        "{said}"
    );
}
