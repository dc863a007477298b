//! `--to` by the name of a host: looked up once, told, and an address from then on.

use crate::support::wire::note;
use crate::support::{Finished, Need, require};

fn resolved(run: &Finished) -> String {
    note(&run.json(), "resolved").expect("it says which address")
}

#[test]
fn a_name_becomes_an_address_once() {
    let Some(lab) = require(&[]) else { return };
    let flags = [
        "send",
        "--count",
        "20",
        "--drain",
        "100ms",
        "--json",
        "--from",
        "127.0.0.2",
    ];
    let run = lab
        .dropless(&[&flags[..], &["--to", "localhost:9"]].concat())
        .run();
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(resolved(&run), "localhost is 127.0.0.1");
    assert!(run.stderr.contains("localhost is 127.0.0.1"), "{run}");

    // A stream's own name, of the family of its own source.
    let stream = "name=a,to=localhost,from=127.0.0.3";
    let run = lab.dropless(&[
        "send", "--count", "20", "--drain", "100ms", "--json", "--stream", stream,
    ]);
    let run = run.run();
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(resolved(&run), "localhost is 127.0.0.1");
}

#[test]
fn a_name_without_an_address_of_the_family_says_so() {
    let Some(lab) = require(&[Need::Root]) else { return };
    // A name of this machine's own, in a file of hosts that only this run sees.
    let hosts = lab.path("hosts");
    std::fs::write(&hosts, "192.0.2.9 far-end\n").unwrap();
    let script = format!(
        "mount --bind {} /etc/hosts && exec {} send --to far-end --from 2001:2::1",
        hosts.display(),
        env!("CARGO_BIN_EXE_dropless")
    );
    let output = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--to far-end is 192.0.2.9, and has no IPv6 address"),
        "{output:?}"
    );
}
