//! In a locale without UTF-8 nothing beyond ASCII gets out: of a run's own line and report, of `report`, of `top`.

use std::time::Duration;

use crate::support::terminal::{LIVE_VARIABLE as VARIABLE, Terminal};
use crate::support::wire::interrupted;
use crate::support::{Finished, Lab, Running, require, until};

const LIMIT: Duration = Duration::from_secs(30);

fn within(lab: &Lab, locale: &str, arguments: &[&str]) -> Running {
    let live = lab.path("live");
    lab.dropless(arguments)
        .env("LC_ALL", locale)
        .env(VARIABLE, live.to_str().expect("a path"))
        .spawn()
}

fn watched(lab: &Lab, duration: &str) -> Running {
    let name = "Größe";
    let sender = within(
        lab,
        "C",
        &[
            "send",
            "--rate",
            "20kpps",
            "--no-huge",
            "--name",
            name,
            "--duration",
            duration,
            "--fault",
            "drop=1%",
        ],
    );
    let live = lab.path("live");
    let published = || std::fs::read_dir(&live).is_ok_and(|mut entries| entries.next().is_some());
    assert!(until(LIMIT, published), "{sender:?}");
    sender
}

fn is_ascii(told: &Finished) {
    assert!(told.stdout.is_ascii() && told.stderr.is_ascii(), "{told}");
}

#[test]
fn text_is_ascii_outside_utf_8() {
    let Some(lab) = require(&[]) else { return };
    let mut sender = watched(&lab, "60s");
    let look = || within(&lab, "C", &["top", "--once"]).wait(LIMIT);
    assert!(until(LIMIT, || look().stdout.contains("Workers")), "{}", look());
    let look = look();
    is_ascii(&look);
    assert!(
        look.stdout.contains("##") || look.stdout.contains("----"),
        "no bar: {look}"
    );
    sender.wait_for(" s  sending: ", LIMIT);
    let sent = interrupted(sender);
    is_ascii(&sent);
    assert!(sent.stdout.starts_with("Run Gr??e\n"), "{sent}");
    let line = sent.stderr.lines().find(|line| line.contains(" s  sending: "));
    let line = line.expect("a line of its own").to_owned();
    assert!(
        line.contains(", lost ") && line.contains(" under way, unsent "),
        "{line}"
    );
    let run = std::fs::read_dir(lab.path("runs"))
        .expect("runs")
        .flatten()
        .next();
    let run = run.expect("a run").path().display().to_string();
    is_ascii(&within(&lab, "C", &["report", &run, &run]).wait(LIMIT));
    for arguments in [&["report", &*run][..], &["report", &run, "--list"]] {
        let shown = within(&lab, "C", arguments).wait(LIMIT);
        is_ascii(&shown);
        assert!(shown.stdout.contains("Gr??e"), "{shown}");
        let shown = within(&lab, "C.UTF-8", arguments).wait(LIMIT);
        assert!(shown.stdout.contains("Größe"), "{shown}");
    }
}

/// On a screen of 24 rows the workers are there, and every curve has its scale.
#[test]
fn the_screen_is_ascii_outside_utf_8_and_small_ones_have_what_matters() {
    let Some(lab) = require(&[]) else { return };
    let _sender = watched(&lab, "60s");
    let terminal = Terminal::within(&lab, "LC_ALL=C", "top", (24, 80));
    terminal.wait_for("sending");
    terminal.wait_for("top ");
    let has_all = || {
        let text = terminal.text();
        ["tx ", "rx ", "lost ", "p99 "]
            .iter()
            .all(|name| text.contains(name))
            && text.contains("under way")
    };
    assert!(until(LIMIT, has_all), "{}", terminal.text());
    let text = terminal.text();
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("Workers") && !text.contains("Queues"), "{text}");
    terminal.resize(50, 200);
    let beside = || {
        let text = terminal.text();
        let at = |name: &str| text.lines().find_map(|line| line.find(name));
        at("Traffic") == Some(0) && at("Workers") > Some(50) && at("Queues") > Some(120)
    };
    assert!(until(LIMIT, beside), "{}", terminal.text());
}
