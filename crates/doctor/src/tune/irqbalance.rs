//! irqbalance moves interrupts back to where it likes them: the cores are banned in its environment.

use std::fmt::Write as _;

use super::step::{Action, Step};
use host::Sys;
use host::cores::CoreSet;

/// The name of the check for it: what that one says is mended by the step of here.
pub const CHECK: &str = "irqbalance";
const VARIABLE: &str = "IRQBALANCE_BANNED_CPULIST";
/// Debian's place, then that of Red Hat.
const FILES: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];

/// The step, if it runs and does not leave these cores alone.
pub fn step(sys: &Sys, cores: &CoreSet) -> Option<Step> {
    let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = sys.names("/proc").into_iter().filter(is_process);
    let mut names = processes.filter_map(|process| sys.text(format!("/proc/{process}/comm")));
    if !names.any(|name| name == CHECK) {
        return None;
    }
    let path = FILES
        .into_iter()
        .find(|file| sys.exists(file))
        .unwrap_or(FILES[0]);
    let old = std::fs::read_to_string(sys.path(path)).unwrap_or_default();
    let text = banning(&old, cores);
    (text != old).then(|| Step {
        check: CHECK.into(),
        why: "irqbalance runs, and moves interrupts back to the cores".into(),
        action: Action::Text {
            path: path.into(),
            text,
            service: Some("irqbalance".into()),
        },
    })
}

/// The file's text with `cores` banned, besides those that are already.
fn banning(old: &str, cores: &CoreSet) -> String {
    let assigned = |line: &str| {
        let value = line.trim().strip_prefix(VARIABLE)?.strip_prefix('=')?;
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
    let _ = writeln!(text, "{VARIABLE}=\"{}\"", before.with(cores));
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
