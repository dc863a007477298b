//! A `noise` run in a terminal: a sentence, a table and a time line for every core.

use std::fmt::Write as _;

use measure::noise::{CoreNoise, NoiseSummary};

use super::{explained, headline};
use crate::number;
use crate::style::{Paint, Style};
use crate::terminal::{ending, invalid, join};
use crate::wrap::wrapped;

/// Causes shown of a core; the rest is in the run directory.
const CAUSES_MAX: usize = 12;
/// From nothing to all of the time.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BLOCKS_ASCII: [char; 9] = [' ', '.', '.', ':', ':', 'o', 'o', '#', '#'];

/// The whole text.
pub fn render(noise: &NoiseSummary, style: &Style) -> String {
    let mut sections: Vec<String> = noise.cores.iter().map(|core| details(core, style)).collect();
    let mut ending = ending(&noise.notes, &noise.run, style);
    if noise.interrupted {
        ending.push_str("Ended early, on request.\n");
    }
    if let Some(why) = &noise.causes_missing {
        let _ = writeln!(ending, "{}: {why}", style.paint(Paint::Warn, "No causes"));
    }
    sections.push(ending);
    sections.extend(noise.cores.iter().map(|core| answer(noise, core, style)));
    if !noise.reasons.is_empty() {
        sections.push(invalid(&noise.reasons, style));
    }
    join(&sections)
}

fn details(core: &CoreNoise, style: &Style) -> String {
    let head = style.paint(Paint::Head, &format!("Core {}", core.core));
    format!("{head}\n{}\n{}\n", causes(core, style), timeline(core, style))
}

fn answer(noise: &NoiseSummary, core: &CoreNoise, style: &Style) -> String {
    let mut text = String::new();
    wrapped(&mut text, &headline(core), 0, Paint::Head, style);
    for line in explained(noise, core) {
        wrapped(&mut text, &line, 2, Paint::None, style);
    }
    text
}

fn causes(core: &CoreNoise, style: &Style) -> String {
    let shown = &core.causes[..core.causes.len().min(CAUSES_MAX)];
    let mut text = super::causes(core, shown).always().terminal("  cause", style);
    if core.causes.len() > CAUSES_MAX {
        let more = core.causes.len() - CAUSES_MAX;
        let _ = writeln!(text, "    and {more} more, in summary.json");
    }
    text
}

/// The share of the time that was taken, from the beginning to the end; the worst moment is a full block.
fn timeline(core: &CoreNoise, style: &Style) -> String {
    const AROUND: usize = 20;
    // Of neighbours that a narrow terminal puts together, the worst is shown.
    let room = style.width.saturating_sub(AROUND).max(10);
    let together = core.timeline.len().div_ceil(room).max(1);
    let shares: Vec<f64> = core
        .timeline
        .chunks(together)
        .map(|shares| shares.iter().copied().fold(0.0, f64::max))
        .collect();
    let worst = shares.iter().copied().fold(0.0, f64::max);
    let blocks = if style.unicode { BLOCKS } else { BLOCKS_ASCII };
    let line: String = shares
        .iter()
        .map(|share| {
            // Whatever is not nothing is seen.
            let step = if worst > 0.0 {
                (share / worst * 8.0).ceil() as usize
            } else {
                0
            };
            blocks[step.min(8)]
        })
        .collect();
    format!(
        "  0 s |{}| {:.1} s\n      at worst {:.2} % of {}",
        style.paint(Paint::Dim, &line),
        core.watched_s,
        worst * 100.0,
        number::time(core.watched_s / core.timeline.len().max(1) as f64 * 1e9)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::noise::CauseNoise;

    fn core() -> CoreNoise {
        let cause = |cause: &str| CauseNoise {
            cause: cause.into(),
            gaps: 12_345,
            total_ns: 229_912_345.0,
            p99_ns: 28_041_234.0,
            max_ns: 28_041_234.0,
            lost: Some(107_723.0),
            period_ns: Some(1e6),
        };
        let mut timeline = vec![0.0; 60];
        timeline[37] = 0.5;
        CoreNoise {
            core: 1,
            watched_s: 3600.0,
            looks: 1,
            gaps: 12_345,
            gaps_dropped: 0,
            taken_ns: 1e9,
            taken_share: 0.5,
            max_ns: 28_041_234.0,
            named_share: Some(0.99),
            complete: Some(true),
            steal_ns: 1e7,
            lost: Some(180_714.0),
            lossless_pps: Some(51_081.0),
            causes: vec![
                cause("preempted by opt cgu.00 (5248)"),
                cause("softirq SCHED after tick"),
            ],
            timeline,
            interrupts: Vec::new(),
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [60, 70, 80, 90, 120] {
            let style = Style {
                width,
                ..Style::plain()
            };
            let text = causes(&core(), &style) + &timeline(&core(), &style);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}:\n{text}");
            let told = ["preempted by", "softirq"].iter().all(|word| text.contains(word));
            assert!(told, "{width}:\n{text}");
            assert!(text.contains("at worst 50.00 %"), "{width}:\n{text}");
        }
    }

    #[test]
    fn a_short_time_line_still_shows_the_worst_moment() {
        let style = Style {
            width: 44,
            ..Style::plain()
        };
        assert_eq!(timeline(&core(), &style).matches('#').count(), 1);
    }
}
