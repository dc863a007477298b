//! The verdict in words, and the few figures everybody asks for first.

use measure::Validity;

use super::super::element::{escape, prose};
use crate::load::{Loaded, Outcome};
use crate::number::{counted, pps, share, time};
use crate::terminal::headline;

/// What the run came to, in a frame.
pub fn block(run: &Loaded, is_named: bool) -> String {
    let (class, words, reasons) = verdict(run);
    let name = if is_named {
        format!("<p class=dim>{}</p>", escape(&run.name))
    } else {
        String::new()
    };
    let mut more: String = reasons
        .iter()
        .map(|reason| format!("<li>{}</li>", prose(reason)))
        .collect();
    for missing in &run.missing {
        more += &format!("<li>{}</li>", escape(missing));
    }
    if let Some(summary) = run.summary() {
        for expectation in &summary.expectations {
            let word = if expectation.met { "met" } else { "FAILED" };
            more += &format!("<li>expectation {} {word}</li>", escape(&expectation.text));
        }
    }
    let more = if more.is_empty() {
        more
    } else {
        format!("<ul>{more}</ul>")
    };
    format!(
        "<section class=\"verdict {class}\" aria-label=verdict>{name}<p class=words>{}</p>{more}</section>\n",
        prose(&words)
    )
}

fn verdict(run: &Loaded) -> (&'static str, String, Vec<String>) {
    match &run.outcome {
        Outcome::Send(summary) => {
            let class = ["clean", "loss", "invalid"][usize::from(summary.exit_code().min(2))];
            let words = headline::outcome(summary);
            judged(summary.verdict, class, &words, &summary.reasons)
        }
        Outcome::Reflect(summary) => {
            let class = ["clean", "loss", "invalid"][usize::from(summary.exit_code().min(2))];
            judged(
                summary.verdict,
                class,
                &headline::reflected(summary),
                &summary.reasons,
            )
        }
        Outcome::Search(searched) => super::search::verdict(&searched.report),
        Outcome::Compare(comparison) => super::comparison::verdict(comparison),
        Outcome::Intervals => {
            let totals = run
                .series
                .as_ref()
                .map(|series| series.totals)
                .unwrap_or_default();
            let (sent, lost) = (totals.sent as u64, totals.lost as u64);
            let class = if lost == 0 { "clean" } else { "loss" };
            let words = format!(
                "{} sent, {} lost ({})",
                counted(sent, "packet"),
                crate::number::count(lost),
                share(lost, sent)
            );
            (
                class,
                words,
                vec![
                    "Intervals alone: no ledger says where packets went, and nobody has judged the run."
                        .to_owned(),
                ],
            )
        }
    }
}

fn judged(
    verdict: Validity,
    class: &'static str,
    words: &str,
    reasons: &[String],
) -> (&'static str, String, Vec<String>) {
    match verdict {
        Validity::Valid => (class, format!("VALID: {words}"), Vec::new()),
        Validity::Invalid => (
            "invalid",
            format!("INVALID: these numbers must not be believed. {words}"),
            reasons.to_vec(),
        ),
    }
}

/// A loss as the headline writes it.
fn ratio(loss: f64) -> String {
    if loss > 0.0 && loss < 1e-6 {
        "<0.0001 %".to_owned()
    } else {
        crate::compare::metrics::Unit::Ratio.show(loss)
    }
}

/// The first figures of one run.
pub fn tiles(run: &Loaded) -> String {
    let value = |name| crate::compare::metrics::value(run, name);
    let duration = match &run.outcome {
        Outcome::Send(summary) => Some(summary.duration_s * 1e9),
        Outcome::Reflect(summary) => Some(summary.duration_s * 1e9),
        Outcome::Search(_) | Outcome::Compare(_) => None,
        Outcome::Intervals => run.series.as_ref().map(|series| series.whole.length_ms * 1e6),
    };
    let is_reflect = matches!(run.outcome, Outcome::Reflect(_));
    let (sent, lost) = if is_reflect {
        ("returned", "probes dropped")
    } else {
        ("sent", "lost")
    };
    let tiles = [
        (sent, value("rate_tx").map(pps)),
        ("received", value("rate_rx").map(pps)),
        (lost, value("loss").map(ratio)),
        ("median latency", value("latency_p50").map(time)),
        ("99.9 % within", value("latency_p999").map(time)),
        ("slowest", value("latency_max").map(time)),
        (
            "mean latency",
            value("latency_mean")
                .filter(|_| value("latency_p50").is_none())
                .map(time),
        ),
        ("lasted", duration.map(time)),
    ];
    let tiles: String = tiles
        .into_iter()
        .filter_map(|(name, value)| {
            value.map(|value| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value)))
        })
        .collect();
    if tiles.is_empty() {
        return tiles;
    }
    format!("<dl class=tiles>{tiles}</dl>\n")
}
