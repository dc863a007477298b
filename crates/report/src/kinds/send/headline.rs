//! What a `send` run came to in plain words, and its expectations.

use measure::Summary;

use crate::kind::Standing;
use crate::number::{count, counted, share};
use crate::style::Style;
use crate::terminal;

/// The verdict, and below it each expectation.
pub fn render(summary: &Summary, style: &Style) -> String {
    let paint = Standing::of_exit(summary.exit_code()).paint();
    terminal::headline(summary, &outcome(summary), paint, style)
}

/// The one sentence about a measured run.
pub fn outcome(summary: &Summary) -> String {
    let sent = format!("{} sent", counted(summary.sent, "packet"));
    if summary.is_one_way() {
        let lost = match summary.lost {
            0 => String::new(),
            lost => format!(", {} of them lost on this side", count(lost)),
        };
        return format!("{sent}{lost}, none expected back");
    }
    let mut troubles = Vec::new();
    if summary.lost > 0 {
        let late = match summary.late {
            0 => String::new(),
            late => format!(", {} of them late", count(late)),
        };
        troubles.push(format!(
            "{} lost ({}{late})",
            count(summary.lost),
            share(summary.lost, summary.sent)
        ));
    }
    if summary.duplicate > 0 {
        troubles.push(format!("{} came more than once", count(summary.duplicate)));
    }
    if summary.corrupt > 0 {
        troubles.push(format!("{} damaged", count(summary.corrupt)));
    }
    match troubles.as_slice() {
        [] => format!("{sent}, every one came back"),
        _ if summary.lost > 0 => format!("{sent}, {}", troubles.join(", ")),
        _ => format!("{sent}, every one came back, but {}", troubles.join(", ")),
    }
}
