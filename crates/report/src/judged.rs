//! What rules met, of whatever decides by rules: in a terminal, in a page, and while it goes.

use std::fmt::Write as _;

use maud::{Markup, html};
use measure::{Judged, RuleCount, RulePlace};

use crate::html::flow::{End, Flow, node};
use crate::number::{count, counted, pps};
use crate::sheet::Sheet;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};

/// Rules shown in a terminal; the rest is in the result.
const RULES_IN_TERMINAL: usize = 40;
const RULES_ON_PAGE: usize = 1000;
/// From this width on there is room for bytes.
const WIDE: usize = 90;

/// All of it in a terminal.
pub fn terminal(judged: &Judged, style: &Style) -> String {
    let shown = judged.busiest(RULES_IN_TERMINAL);
    let mut text = rules(&shown).terminal("Rules", style);
    if shown.rules.len() < judged.rules.len() {
        let more = judged.rules.len() - shown.rules.len();
        let met = shown.further_rules;
        let _ = writeln!(
            text,
            "    and {} more, of which {} met packets",
            counted(more as u64, "rule"),
            count(met)
        );
    }
    let others = others(judged);
    if others.has_items() {
        text.push('\n');
        text += &others.render(style);
    }
    text
}

/// The same as tables of a page.
pub fn html(judged: &Judged) -> Markup {
    let shown = judged.busiest(RULES_ON_PAGE);
    let left = judged.rules.len() - shown.rules.len();
    let caption = match left {
        0 => "What each rule met".to_owned(),
        left => format!("What the busiest rules met; {left} more are in summary.json"),
    };
    let reasons = Sheet::of(&judged.malformed)
        .name("reason", |(reason, _)| (*reason).clone())
        .number("packets", |(_, packets)| count(**packets));
    html! {
        (rules(&shown).html(&caption))
        (reasons.html("Malformed packets by reason; each is counted at a rule, too"))
    }
}

/// Where packets went.
pub fn flow(judged: &Judged) -> Flow {
    Flow {
        source: node("judged", judged.packets(), End::Plain, "packets"),
        ends: vec![
            node("allowed", judged.allowed, End::Good, "passed"),
            node("denied", judged.denied, End::Plain, "dropped by rules"),
        ],
        further: Vec::new(),
    }
}

/// In one sentence.
pub fn outcome(judged: &Judged) -> String {
    format!(
        "{} judged, {} allowed, {} denied",
        counted(judged.packets(), "packet"),
        count(judged.allowed),
        count(judged.denied)
    )
}

/// The rules that are there, in their order.
pub fn table(judged: &Judged, most: usize) -> Table {
    let shown = judged.busiest(most);
    let mut table = Table::section("Rules", &[">packets", ">rate", "", "rule"]);
    for rule in &shown.rules {
        table.item(
            name(rule),
            [
                Cell::right(count(rule.packets)),
                Cell::right(pps(rule.rate_pps as f64)),
                verdict(rule),
                Cell::left(&rule.rule),
            ],
        );
    }
    table
}

fn rules(judged: &Judged) -> Sheet<&RuleCount> {
    Sheet::of(&judged.rules)
        .name("rule at", |rule| name(rule).to_owned())
        .number("packets", |rule| count(rule.packets))
        .number("bytes", |rule| count(rule.bytes))
        .at_width(WIDE)
        .cell("", |rule| verdict(rule))
        .words("rule", |rule| rule.rule.clone())
}

/// What became of the packets that are counted at it.
fn verdict(rule: &RuleCount) -> Cell {
    match (rule.packets, rule.denies) {
        (0, _) => Cell::left(""),
        (_, true) => Cell::left("denied").paint(Paint::Warn),
        (_, false) => Cell::left("allowed"),
    }
}

/// Where it stands.
fn name(rule: &RuleCount) -> &str {
    match &rule.place {
        RulePlace::InForce(place) => place,
        RulePlace::Default => "default",
        RulePlace::Gone => "no longer in force",
    }
}

/// Malformed packets, and groups that a rate had no entry for.
fn others(judged: &Judged) -> Table {
    let mut table = Table::section("Malformed", &[">packets"]);
    for (reason, packets) in &judged.malformed {
        table.item(reason, [Cell::right(count(*packets))]);
    }
    if judged.groups_full > 0 {
        let full = Cell::right(count(judged.groups_full)).paint(Paint::Warn);
        table.item("no entry left in the table of rates", [full]);
    }
    table
}
