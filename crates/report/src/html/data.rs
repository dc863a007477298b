//! The numbers of a page as JSON: what its script draws.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::load::heat::{BANDS_A_DOUBLING, Heat};
use crate::load::series::{CHANNELS, Point, Series, Span};
use crate::load::{Loaded, Quantile, quantiles};

#[derive(Serialize)]
struct Run<'d> {
    name: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Lines>,
    latency: Curve,
    pacing: Curve,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap_asked_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heat: Option<Picture>,
    stalls: Vec<Stall<'d>>,
}

/// One value a point; `min` and `max` only where a point is more than one interval.
#[derive(Serialize)]
struct Lines {
    rows: u64,
    rows_a_point: u64,
    /// `sent`, `reflect` or `older`.
    out: &'static str,
    drops: bool,
    /// Where the first point begins, in s.
    start: f64,
    /// Ends of the points in s.
    time: Vec<f64>,
    channels: BTreeMap<&'static str, Values>,
}

#[derive(Serialize)]
struct Values {
    mean: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    min: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    max: Vec<Option<f64>>,
}

/// A percentile curve: `x` is 1 / (1 - share).
#[derive(Default, Serialize)]
struct Curve {
    x: Vec<f64>,
    ns: Vec<f64>,
}

#[derive(Serialize)]
struct Picture {
    /// Edges of the slices in s.
    edges: Vec<f64>,
    lowest_ns: f64,
    bands: usize,
    a_doubling: u32,
    /// A letter a cell, level 0 to 63.
    levels: String,
}

/// End in s, length in ns, core, cause, missed packets.
#[derive(Serialize)]
struct Stall<'d>(f64, u64, u32, &'d str, u64);

/// The JSON, fit to stand in a script element.
pub fn json(runs: &[Loaded]) -> serde_json::Result<String> {
    let data = BTreeMap::from([("runs", runs.iter().map(run).collect::<Vec<_>>())]);
    // Only strings of JSON can hold a `<`, and there it may be written like this.
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}

fn run(loaded: &Loaded) -> Run<'_> {
    let stalls = loaded.stalls.iter().flat_map(|all| &all.kept);
    let gaps = loaded.result.departures();
    let few = quantiles(&gaps.into());
    let series = loaded.series.as_ref();
    Run {
        name: &loaded.name,
        series: series.filter(|series| series.rows > 0).map(lines),
        latency: curve(&loaded.latency),
        // Runs before the file was kept have their percentiles in the summary.
        pacing: curve(if loaded.pacing.is_empty() {
            &few
        } else {
            &loaded.pacing
        }),
        gap_asked_ns: gaps.asked,
        heat: series.and_then(|series| series.heat.as_ref()).map(picture),
        stalls: stalls
            .map(|stall| {
                let end_s = rounded(stall.end_ms / 1000.0);
                Stall(end_s, stall.length_ns, stall.core, &stall.cause, stall.lost)
            })
            .collect(),
    }
}

fn lines(series: &Series) -> Lines {
    let points = series.points();
    let is_thinned = series.rows_a_point() > 1;
    let used = CHANNELS.iter().filter(|(channel, _)| series.has(*channel));
    let channels = used.map(|&(channel, name)| {
        let pick = |value: fn(&Span) -> Option<f64>| -> Vec<Option<f64>> {
            let of = |point: &Point| {
                let span = point.span(channel);
                span.mean().and_then(|_| value(span)).map(rounded)
            };
            points.iter().map(of).collect()
        };
        let edge = |value| if is_thinned { pick(value) } else { Vec::new() };
        let values = Values {
            mean: pick(Span::mean),
            min: edge(|span| Some(span.min)),
            max: edge(|span| Some(span.max)),
        };
        (name, values)
    });
    Lines {
        rows: series.rows,
        rows_a_point: series.rows_a_point(),
        out: series.origin.out(),
        drops: series.origin.is_of_arrivals(),
        start: points.first().map_or(0.0, |point| {
            rounded((point.end_ms - point.length_ms).max(0.0) / 1000.0)
        }),
        time: points
            .iter()
            .map(|point| rounded(point.end_ms / 1000.0))
            .collect(),
        channels: channels.collect(),
    }
}

/// The last rows of a histogram have share 1, which no logarithmic axis can show: they stand where the next
/// halving would.
fn curve(quantiles: &[Quantile]) -> Curve {
    let mut curve = Curve::default();
    for Quantile { value_ns, share } in quantiles {
        let before = curve.x.last().copied().unwrap_or(0.0);
        let x = if *share < 1.0 {
            1.0 / (1.0 - share)
        } else {
            (before * 2.0).max(1.0)
        };
        if x > before {
            curve.x.push(rounded(x));
            curve.ns.push(*value_ns);
        } else if let Some(last) = curve.ns.last_mut() {
            *last = *value_ns;
        }
    }
    curve
}

fn picture(heat: &Heat) -> Picture {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    Picture {
        edges: heat.edges_ms.iter().map(|edge| rounded(edge / 1000.0)).collect(),
        lowest_ns: heat.lowest_ns,
        bands: heat.bands,
        a_doubling: BANDS_A_DOUBLING,
        levels: heat
            .levels
            .iter()
            .map(|level| char::from(LETTERS[usize::from(*level) % 64]))
            .collect(),
    }
}

/// Nine digits: a microsecond of a quarter of an hour, and no tail of a binary fraction.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || value.abs() >= 1e9 {
        return value.round();
    }
    let scale = 10_f64.powi(8 - value.abs().log10().floor() as i32);
    if scale.is_finite() {
        (value * scale).round() / scale
    } else {
        value
    }
}
