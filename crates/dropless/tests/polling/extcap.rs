//! `dropless extcap`: tshark lists running runs and ports, and captures from them, as Wireshark does.

use std::process::{Command, Output};
use std::time::Duration;

use crate::support::wire::{Wire, assert_all_back, assert_refused, interrupted};
use crate::support::{Lab, Need, require, until};

const LIMIT: Duration = Duration::from_secs(60);
const NEEDS: [Need; 2] = [Need::Namespaces, Need::Tool("tshark")];

/// dropless as installed for tshark: whatever is asked goes through the script.
fn install(lab: &Lab) -> String {
    let directory = lab.path("extcap").display().to_string();
    let installed = lab.dropless(&["extcap", "--install", "--dir", &directory]).run();
    assert_eq!(installed.code, Some(0), "{installed}");
    assert!(installed.stdout.contains("does not look"), "{installed}");
    directory
}

/// tshark that finds programs in that directory only: for root it looks in that of all users, in whose place it is put, for
/// this tshark alone.
fn tshark(lab: &Lab, within: Option<&str>, arguments: &[&str]) -> Output {
    const HIDE: &str = r#"
        all=$(tshark -G folders 2>/dev/null | sed -n 's/^\(Global \)\?Extcap path:[[:space:]]*//p')
        mount --bind extcap "$all" && exec tshark "$@""#;
    let mut command = if let Some(namespace) = within {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, "unshare", "-m"]);
        command
    } else {
        let mut command = Command::new("unshare");
        command.arg("-m");
        command
    };
    command
        .args(["sh", "-c", HIDE, "sh"])
        .args(arguments)
        .env("HOME", lab.directory())
        .env_remove("XDG_CACHE_HOME")
        .current_dir(lab.directory())
        .output()
        .expect("tshark")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tshark_lists_a_run_and_captures_from_it() {
    let Some(lab) = require(&NEEDS) else { return };
    let directory = install(&lab);
    let arguments = [
        "send",
        "--json",
        "--no-doctor",
        "--cores",
        "0",
        "--rate",
        "1kpps",
        "--duration",
        "60s",
    ];
    let mut host = lab.dropless(&arguments).spawn();
    host.until_sending(LIMIT);
    let name = format!("dropless-{}", host.id());
    let mut listed = String::new();
    assert!(
        until(LIMIT, || {
            listed = stdout(&tshark(&lab, None, &["-D"]));
            listed.contains(&name)
        }),
        "{listed}"
    );
    let shown = format!("dropless send on ring (process {})", host.id());
    assert!(listed.contains(&shown), "{listed}");
    let arguments = ["-i", &name, "-c", "20", "-T", "fields", "-e", "udp.dstport"];
    let captured = tshark(&lab, None, &arguments);
    assert!(captured.status.success(), "{captured:?}");
    let ports: Vec<String> = stdout(&captured).lines().map(str::to_owned).collect();
    assert_eq!(ports.len(), 20, "{captured:?}");
    // Probes go to port 7, and come back from there.
    assert!(
        ports.iter().any(|port| port == "7") && ports.iter().any(|port| port != "7"),
        "{ports:?}"
    );
    let filtered = tshark(
        &lab,
        None,
        &[&arguments[..4], &["-f", "udp dst port 7"], &arguments[4..]].concat(),
    );
    assert_eq!(
        stdout(&filtered).lines().filter(|port| *port == "7").count(),
        20,
        "{filtered:?}"
    );
    assert_all_back(&interrupted(host));
    // Nothing was left where tshark was started.
    assert!(!lab.path("runs").join("capture").exists());
    assert!(lab.path(".cache/dropless/extcap").is_dir());
    let removed = lab
        .dropless(&["extcap", "--uninstall", "--dir", &directory])
        .run();
    assert_eq!(removed.code, Some(0), "{removed}");
    assert!(!lab.path("extcap/dropless").exists());
}

#[test]
fn tshark_captures_from_an_interface() {
    let Some(lab) = require(&NEEDS) else { return };
    install(&lab);
    let wire = Wire::between(&lab, 1);
    let far = wire.far.name();
    let listed = stdout(&tshark(&lab, Some(far), &["-D"]));
    assert!(
        listed.contains("dropless-packet-far0 (dropless, packet:far0)"),
        "{listed}"
    );
    // What arrives is taken away from the kernel there: nobody gets that from a list.
    assert!(!listed.contains("dropless-xdp"), "{listed}");
    let mac = wire.far.mac("far0");
    let to = [
        "--tx-only",
        "--to-mac",
        &mac,
        "--rate",
        "1kpps",
        "--duration",
        "60s",
    ];
    let sender = wire.send(&lab, "packet", &to).spawn();
    let arguments = [
        "-i",
        "dropless-packet-far0",
        "-c",
        "25",
        "-T",
        "fields",
        "-e",
        "udp.dstport",
    ];
    let captured = tshark(&lab, Some(far), &arguments);
    assert!(captured.status.success(), "{captured:?}");
    assert_eq!(stdout(&captured), "7\n".repeat(25), "{captured:?}");
    interrupted(sender);
}

#[test]
fn what_wireshark_asks_is_answered() {
    let Some(lab) = require(&[]) else { return };
    let asked = |arguments: &[&str]| {
        let run = lab.dropless(&[&["extcap"][..], arguments].concat()).run();
        assert_eq!(run.code, Some(0), "{run}");
        run.stdout
    };
    let list = asked(&["--extcap-interfaces", "--extcap-version=4.0"]);
    assert!(list.starts_with("extcap {version="), "{list}");
    let run = ["--extcap-interface", "dropless-1"];
    assert_eq!(
        asked(&[&run[..], &["--extcap-dlts"]].concat()),
        "dlt {number=1}{name=EN10MB}{display=Ethernet}\n"
    );
    let options = asked(&[&run[..], &["--extcap-config"]].concat());
    assert!(
        options.contains("{call=--direction}") && options.contains("{call=--snaplen}"),
        "{options}"
    );
    // A filter that is one is no answer; what is wrong with another is.
    let filter = |text: &str| asked(&[&run[..], &["--extcap-capture-filter", text]].concat());
    assert_eq!(filter("udp port 7"), "");
    assert!(filter("udp porrt 7").contains("porrt"));
    for (arguments, word) in [
        (&["extcap"][..], "dropless extcap --install"),
        (
            &["extcap", "--extcap-interface", "eth0", "--extcap-dlts"],
            "tshark -D",
        ),
    ] {
        let refused = lab.dropless(arguments).run();
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.stderr.contains(word) && refused.stderr.lines().count() == 1,
            "{refused}"
        );
    }
}

/// What somebody else put there stays: a text, this program itself (which holds all that a script does), a directory.
#[test]
fn what_is_not_ours_is_neither_replaced_nor_removed() {
    let Some(lab) = require(&[]) else { return };
    let program = std::fs::read(env!("CARGO_BIN_EXE_dropless")).unwrap();
    for (directory, bytes) in [("text", &b"somebody else's"[..]), ("program", &program)] {
        std::fs::create_dir(lab.path(directory)).unwrap();
        std::fs::write(lab.path(directory).join("dropless"), bytes).unwrap();
    }
    std::fs::create_dir_all(lab.path("directory/dropless")).unwrap();
    for directory in ["text", "program", "directory"] {
        for what in ["--install", "--uninstall"] {
            let refused = lab.dropless(&["extcap", what, "--dir", directory]).run();
            assert_refused(&refused, &["not ours", "--dir"]);
        }
    }
    let same = std::fs::read(lab.path("program/dropless")).unwrap() == program;
    assert!(same, "the program is as it was");
    assert!(lab.path("text/dropless").is_file() && lab.path("directory/dropless").is_dir());
}
