//! irqbalance moves interrupts back to where it likes them: the cores are banned in its environment.

use std::fmt::Write as _;

use super::step::{Action, Step};
use crate::checks::irqbalance::{BANNED, NAME, assigned, banned, process, settings, told};
use host::Sys;
use host::cores::CoreSet;

/// The step, if it runs and does not leave these cores alone.
pub fn step(sys: &Sys, cores: &CoreSet) -> Option<Step> {
    let (_, banned) = banned(sys, &process(sys)?);
    let path = settings(sys);
    let old = std::fs::read_to_string(sys.path(path)).unwrap_or_default();
    let text = banning(&old, cores, &banned);
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

/// The file's text with `cores` banned, besides those that are already: by a list or a mask, or where there is neither those
/// that irqbalance leaves alone otherwise: `unasked`, or by what started it. A list takes the place of those, so that they must
/// be in it.
fn banning(old: &str, cores: &CoreSet, unasked: &CoreSet) -> String {
    let asked = told(old).filter(|cores| !cores.is_empty());
    let before = asked.as_ref().unwrap_or(unasked);
    if cores.without(before).is_empty() {
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

    fn cores(text: &str) -> CoreSet {
        text.parse().unwrap()
    }

    #[test]
    fn cores_are_banned_besides_those_that_were() {
        let (ours, none) = (cores("2-3"), CoreSet::default());
        let banned = banning(
            "# a comment\nIRQBALANCE_BANNED_CPULIST=7\nIRQBALANCE_ARGS=\"\"\n",
            &ours,
            &none,
        );
        assert_eq!(
            banned,
            "# a comment\nIRQBALANCE_ARGS=\"\"\nIRQBALANCE_BANNED_CPULIST=\"2,3,7\"\n"
        );
        assert_eq!(banning(&banned, &ours, &none), banned);
        assert_eq!(banning("", &ours, &none), "IRQBALANCE_BANNED_CPULIST=\"2,3\"\n");
        assert_eq!(
            banning("IRQBALANCE_BANNED_CPUS=80\n", &ours, &none),
            "IRQBALANCE_BANNED_CPULIST=\"2,3,7\"\n"
        );
        let both = "IRQBALANCE_BANNED_CPUS=80\nIRQBALANCE_BANNED_CPULIST=2-3\n";
        assert_eq!(
            banning(both, &ours, &none),
            "IRQBALANCE_BANNED_CPULIST=\"2,3,7\"\n",
            "beside a mask no list is read"
        );
    }

    /// irqbalance(1): without a list it bans isolated and tickless cores, and with one only those in it.
    #[test]
    fn what_irqbalance_bans_by_itself_stays_banned() {
        let (ours, isolated) = (cores("2-3"), cores("5-6"));
        for none in ["", "IRQBALANCE_BANNED_CPULIST=\n"] {
            assert_eq!(
                banning(none, &ours, &isolated),
                "IRQBALANCE_BANNED_CPULIST=\"2,3,5,6\"\n"
            );
            assert_eq!(banning(none, &cores("6"), &isolated), none);
        }
        let list = "IRQBALANCE_BANNED_CPULIST=7\n";
        assert_eq!(
            banning(list, &ours, &isolated),
            "IRQBALANCE_BANNED_CPULIST=\"2,3,7\"\n",
            "a list is all that is banned"
        );
    }
}
