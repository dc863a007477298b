//! `--config FILE`: its flags are those of the command line, which wins, and what is wrong in it says where.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Lab, require};
use serde_json::Value;

/// A file with these lines.
fn file(lab: &Lab, text: &str) -> PathBuf {
    let path = lab.path("preset.toml");
    std::fs::write(&path, text).expect("writing the file");
    path
}

/// The plan of a short run with the file, and these flags beside it.
fn planned(lab: &Lab, text: &str, flags: &[&str]) -> Value {
    let path = file(lab, text);
    let mut arguments = vec!["send", "--config", path.to_str().unwrap()];
    arguments.extend(flags);
    let finished = lab.dropless(&arguments).run();
    assert_eq!(finished.code, Some(0), "{finished}");
    let mut runs: Vec<_> = std::fs::read_dir(lab.path("runs")).unwrap().flatten().collect();
    assert_eq!(runs.len(), 1, "one run");
    let plan = std::fs::read_to_string(runs.remove(0).path().join("plan.json")).unwrap();
    std::fs::remove_dir_all(lab.path("runs")).unwrap();
    serde_json::from_str(&plan).unwrap()
}

const PRESET: &str = "rate = \"1kpps\"\ncount = 20\nquiet = true\nsize = \"128\"\nport = [\"ring:a\", \"ring:b\"]\n\
    drain = \"100ms\"\nexpect = [\"loss<100%\"]\nverbose = false\n";

#[test]
fn flags_of_the_command_line_win() {
    let Some(lab) = require(&[]) else { return };
    let plan = planned(&lab, PRESET, &[]);
    assert_eq!(plan["rate"], "1kpps");
    assert_eq!(plan["machine"]["ports"], serde_json::json!(["ring:a", "ring:b"]));
    assert_eq!(plan["expect"], serde_json::json!(["loss<100%"]));

    // A list is not added to, and what a flag excludes gives way to it, too.
    let plan = planned(&lab, PRESET, &["--rate=2kpps", "-p", "ring", "--payload", "100"]);
    assert_eq!(plan["rate"], "2kpps");
    assert_eq!(plan["machine"]["ports"], serde_json::json!(["ring"]));
    assert_eq!(plan["count"], 20);
}

#[test]
fn every_command_that_measures_takes_one() {
    let Some(lab) = require(&[]) else { return };
    let path = file(&lab, "nothing = 1\n");
    for command in [
        "send",
        "search",
        "reflect",
        "capture",
        "forward",
        "filter run",
        "guard",
    ] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.extend(["--config", path.to_str().unwrap()]);
        let finished = lab.dropless(&arguments).run();
        let words = format!(":1: dropless {command} has no flag 'nothing'");
        assert!(finished.stderr.contains(&words), "{finished}");
    }
}

/// The line on standard error of `send` with such a file.
fn complaint(text: &str) -> String {
    complaint_of("send", text, &[])
}

/// The same of a command, with these flags beside the file.
fn complaint_of(command: &str, text: &str, flags: &[&str]) -> String {
    let words = command.split(' ');
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("preset.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dropless"));
    let output = command
        .args(words)
        .args(["--config", "preset.toml"])
        .args(flags)
        .current_dir(folder.path());
    let output = output.output().expect("starting it");
    assert_eq!(output.status.code(), Some(2), "{text}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_wrong_says_where() {
    for (text, words) in [
        (
            "\n\nrat = \"1kpps\"",
            "toml:3: dropless send has no flag 'rat', did you mean rate?",
        ),
        (
            "tx_queues = 1",
            "toml:1: dropless send has no flag 'tx_queues', did you mean tx-queues?",
        ),
        ("config = \"x\"", "no flag 'config'"),
        (
            "\nquiet = \"yes\"",
            "toml:2: quiet is a string; write quiet = true",
        ),
        (
            "rate = true",
            "toml:1: rate is true or false; write rate = \"VALUE\"",
        ),
        ("rate = [\"1kpps\"]", "toml:1: rate is a list"),
        ("[send]\nrate = 1", "toml:1: dropless send has no flag 'send'"),
        ("rate = \"1kpps\"\nrate = \"2kpps\"", "toml:2: duplicate key"),
        ("rate =", "toml:1: "),
        // What the parser refuses, what the plan refuses, and what the machine refuses.
        (
            "seed = 1\ndscp = 99",
            "toml:2: invalid value '99' for '--dscp <N>'",
        ),
        (
            "seed = 1\nrate = \"fast\"",
            "toml:2: rate \"fast\" is not understood",
        ),
        ("seed = 1\n\nport = [\"rnig\"]", "toml:3: port 'rnig'"),
        (
            "seed = 1\nport = \"xdp:nowhere\"",
            "toml:2: xdp:nowhere: no interface",
        ),
        (
            "seed = 1\nvlan = \"1,x\"",
            "toml:2: invalid value 'x' for '--vlan",
        ),
        ("seed = 1\ncount = 0", "toml:2: --count 0"),
        ("drain = \"soon\"", "toml:1: --drain: "),
        (
            "stream = \"rate=2kpps\"\nrate = \"1kpps\"",
            "toml:2: --rate 1kpps would do nothing",
        ),
        ("seed = 1\nsize = \"9\"", ": frame size 9"),
        ("seed = 1\nsize = \"a\"", "toml:2: frame size"),
        ("seed = 1\nexpect = [\"loss\"]\nrate = \"1kpps\"", "toml:2: "),
        ("port = [\"ring:a\", \"ring:a\"]", "toml:1: ports ring:a"),
        (
            "seed = 1\nsize = \"64\"\npayload = 64",
            "toml:2: the argument '--size <SIZE>' cannot be used with '--payload",
        ),
    ] {
        let said = complaint(text);
        assert!(said.contains(words), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn other_commands_say_where_too() {
    for (command, text, words) in [
        (
            "search --port ring",
            "seed = 1\nmin-rate = \"slow\"",
            "toml:2: --min-rate",
        ),
        (
            "search --port ring",
            "seed = 1\nburst-repeats = 1",
            "toml:2: --burst-repeats: only RFC 2544",
        ),
        (
            "reflect",
            "queues = 0\nport = \"xdp:nowhere\"",
            "toml:1: a port needs",
        ),
        ("capture", "seed = 1\n", "toml:1: dropless capture has no flag"),
        ("capture", "\nsample = \"2\"", "toml:2: --sample 2"),
        ("capture", "\nto = \"-\"", "toml:2: --to - is no file"),
        (
            "forward --port xdp:nowhere --port xdp:nowhere2",
            "\nkernel = \"ring\"",
            "toml:2: --kernel ring",
        ),
        (
            "filter run nothing.rules",
            "\ndev = \"nowhere\"\nsample-rate = 0\nsample = \"x\"",
            "toml:3: --sample-rate 0",
        ),
        (
            "guard --replay x",
            "\ncap = [\"rules=1\", \"rulez=1\"]",
            "toml:2: --cap `rulez`",
        ),
    ] {
        let said = complaint_of(command, text, &[]);
        assert!(said.contains(words), "{command} {text}: {said}");
    }
}

/// A place is told by the flag that an error is about, and never by words that happen to stand in it.
#[test]
fn no_place_is_guessed() {
    for (command, text, flags) in [
        // The value that was typed is the file's of another flag; the words name a flag of the file.
        ("send", "name = \"x\"", &["--duration", "x"][..]),
        ("send", "name = \"99\"", &["--dscp", "99"]),
        ("send", "dscp = 5", &["--dscp", "99"]),
        ("send", "rate = \"1kpps\"", &["--rate", "fast"]),
        ("send", "size = \"64\"", &["--stream", "size=9"]),
        ("send", "rate = \"1kpps\"", &["--stream", "rate=fast"]),
        (
            "send",
            "tx-queues = 1",
            &["--port", "kernel:127.0.0.1", "--flows", "2"],
        ),
        (
            "send",
            "rate = \"1kpps\"\nport = \"ring\"",
            &["--plan", "nowhere"],
        ),
        (
            "forward",
            "port = [\"xdp:a0\", \"xdp:a1\"]",
            &["--kernel", "tap:a", "--kernel", "tap:a"],
        ),
    ] {
        let said = complaint_of(command, text, flags);
        assert!(!said.contains("toml"), "{command} {text} {flags:?}: {said}");
    }
}

#[test]
fn what_is_wrong_is_told_to_programs_where_the_file_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), "json = true\ndscp = 99\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dropless"));
    command
        .args(["send", "--config", "p.toml"])
        .current_dir(folder.path());
    let output = command.output().expect("starting it");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = told["error"].as_str().unwrap();
    assert!(error.starts_with("p.toml:2: invalid value '99'"), "{error}");
}

#[test]
fn what_is_wrong_beside_the_file_is_not_blamed_on_it() {
    let Some(lab) = require(&[]) else { return };
    let path = file(&lab, "rate = \"1kpps\"\n");
    let finished = lab
        .dropless(&["send", "--config", path.to_str().unwrap(), "--duration", "x"])
        .run();
    assert!(!finished.stderr.contains("toml"), "{finished}");
    let nowhere = lab.dropless(&["send", "--config", "nowhere.toml"]).run();
    assert!(
        nowhere
            .stderr
            .contains("--config nowhere.toml: there is no such file"),
        "{nowhere}"
    );
}
