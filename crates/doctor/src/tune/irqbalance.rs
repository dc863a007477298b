//! irqbalance moves interrupts back to where it likes them: the cores are banned in its environment.

use std::fmt::Write as _;

use super::step::{Action, Step};
use crate::checks::irqbalance::{BANNED, NAME, process, settings};
use host::Sys;
use host::cores::CoreSet;

/// The step, if it runs and does not leave these cores alone.
pub fn step(sys: &Sys, cores: &CoreSet) -> Option<Step> {
    process(sys)?;
    let path = settings(sys);
    let old = std::fs::read_to_string(sys.path(path)).unwrap_or_default();
    let text = banning(&old, cores);
    (text != old).then(|| Step {
        check: NAME.into(),
        why: "irqbalance runs, and moves interrupts back to the cores".into(),
        action: Action::Text {
            path: path.into(),
            text,
            service: Some(NAME.into()),
        },
    })
}

/// The file's text with `cores` banned, besides those that are already.
fn banning(old: &str, cores: &CoreSet) -> String {
    let assigned = |line: &str| {
        let value = line.trim().strip_prefix(BANNED)?.strip_prefix('=')?;
        value.trim_matches(['"', '\'']).parse::<CoreSet>().ok()
    };
    let before = old.lines().filter_map(assigned).next_back().unwrap_or_default();
    if before.len() == before.with(cores).len() {
        return old.to_owned();
    }
    let mut text = String::new();
    for line in old.lines().filter(|line| assigned(line).is_none()) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{BANNED}=\"{}\"", before.with(cores));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_banned_besides_those_that_were() {
        let cores: CoreSet = "2-3".parse().unwrap();
        let banned = banning(
            "# a comment\nIRQBALANCE_BANNED_CPULIST=7\nIRQBALANCE_ARGS=\"\"\n",
            &cores,
        );
        assert_eq!(
            banned,
            "# a comment\nIRQBALANCE_ARGS=\"\"\nIRQBALANCE_BANNED_CPULIST=\"2,3,7\"\n"
        );
        assert_eq!(banning(&banned, &cores), banned);
        assert_eq!(banning("", &cores), "IRQBALANCE_BANNED_CPULIST=\"2,3\"\n");
    }
}
