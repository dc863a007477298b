//! What root may is given up once it has been used, and what a sudo user's run leaves is that user's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use procfs_core::FromRead as _;
use procfs_core::process::Status;

use crate::support::wire::{assert_conserved, assert_valid_but_for_time, has_note};
use crate::support::{Lab, Namespace, Need, Running, require, until};

const LIMIT: Duration = Duration::from_secs(40);

/// Bits of `CapEff` (capabilities(7)).
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const SYS_NICE: u64 = 1 << 23;
const NET_ADMIN: u64 = 1 << 12;
const BPF_AND_SYS_ADMIN: u64 = 1 << 39 | 1 << 21;
/// A user and group who may be anybody.
const USER: u32 = 65534;

/// What a thread may do, and whether it can never do more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    held: u64,
    bound: u64,
    is_final: bool,
}

/// The rights of each thread by its name; of several of one name, all together.
fn threads(process: u32) -> BTreeMap<String, Rights> {
    let mut threads: BTreeMap<String, Rights> = BTreeMap::new();
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for task in tasks {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        let status = Status::from_read(status.as_bytes()).expect("the status of a thread");
        let ambient = status.capamb.unwrap_or(u64::MAX);
        let rights = Rights {
            held: status.capeff | status.capprm | status.capinh | ambient,
            bound: status.capbnd.unwrap_or(u64::MAX),
            is_final: status.nonewprivs == Some(1),
        };
        let known = threads.entry(status.name).or_insert(rights);
        known.held |= rights.held;
        known.bound |= rights.bound;
        known.is_final &= rights.is_final;
    }
    threads
}

/// That threads of ours hold what they should, and can never get more, once the workers have begun; what they hold.
fn assert_kept(running: &Running, control: u64) -> BTreeMap<String, Rights> {
    let is_kept = |(name, rights): (&String, &Rights)| {
        let held = match name.as_str() {
            "dropless" | "rows-to-disk" => control,
            "signals" | "display" => 0,
            name if name.starts_with("dropless-") || name.starts_with("metrics") => 0,
            // DPDK's own, which were there before.
            _ => return true,
        };
        rights.held == held && rights.is_final && rights.bound & !control == 0
    };
    let mut found = BTreeMap::new();
    let is_so = until(LIMIT, || {
        found = threads(running.id());
        found.keys().any(|name| name.starts_with("dropless-")) && found.iter().all(is_kept)
    });
    assert!(is_so, "{found:?}");
    found
}

/// A run that nobody called by sudo, whoever runs the tests.
fn sender(lab: &Lab, further: &[&str]) -> crate::support::Dropless {
    let common = ["send", "--rate", "10kpps", "--duration", "60s"];
    lab.dropless(&[&common[..], further].concat())
        .env("SUDO_UID", "0")
}

#[test]
fn threads_keep_what_they_still_need_and_no_more() {
    let Some(lab) = require(&[Need::Root]) else { return };
    let running = sender(&lab, &["--metrics", ":0"]).spawn();
    let threads = assert_kept(&running, DAC_OVERRIDE | SYS_NICE);
    assert!(
        ["metrics", "signals", "dropless"]
            .iter()
            .all(|name| threads.contains_key(*name)),
        "{threads:?}"
    );
    running.kill();
    let user = USER.to_string();
    let running = sender(&lab, &[])
        .env("SUDO_UID", &user)
        .env("SUDO_GID", &user)
        .spawn();
    assert_kept(&running, DAC_OVERRIDE | SYS_NICE | CHOWN);
    running.kill();
}

/// A namespace whose interface `left` has a link, and the one at its other end.
fn linked(lab: &Lab) -> (Namespace, Namespace) {
    let (own, far) = (lab.namespace("own"), lab.namespace("far"));
    own.veth("left", &far, "right");
    own.up("left", &[]);
    far.up("right", &[]);
    (own, far)
}

/// Every kind takes away what it made, with what it has kept.
#[test]
fn what_a_port_made_is_taken_away_with_the_rights_that_are_left() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (own, _far) = linked(&lab);
    for (port, kept) in [
        ("packet:left", 0),
        ("xdp:left", NET_ADMIN | BPF_AND_SYS_ADMIN),
        ("tap:dltap", NET_ADMIN),
    ] {
        let path = ["--to", "10.0.0.2", "--to-mac", "02:00:00:00:00:02"];
        let running = sender(&lab, &[&["--port", port][..], &path].concat())
            .within(&own)
            .spawn();
        assert_kept(&running, kept | DAC_OVERRIDE | SYS_NICE);
        running.signal(nix::sys::signal::Signal::SIGINT);
        let ended = running.wait(LIMIT);
        assert!(!ended.stdout.contains("could not be given up"), "{ended}");
        let links = own.ip(&["-details", "link", "show"]);
        for left in ["xdp", "promiscuity 1", "dltap"] {
            assert!(!links.contains(left), "{left} after {port}: {links}");
        }
    }
}

/// Rules that come later are loaded and put in force, and all are taken off again, with the rights that are left.
#[test]
fn rules_on_an_interface_change_and_go_with_the_rights_that_are_left() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (own, _far) = linked(&lab);
    let rules = lab.path("some.rules");
    let name = rules.display().to_string();
    let kept = NET_ADMIN | BPF_AND_SYS_ADMIN | DAC_OVERRIDE | SYS_NICE;
    for (command, begun) in [
        (&["filter", "run", &name][..], "in force on left"),
        (&["guard", "--rules", &name], "guarding left"),
    ] {
        fs::write(&rules, "deny udp dport 7\n").expect("rules");
        let arguments = [command, &["--dev", "left", "--json", "--metrics", ":0"]].concat();
        let mut running = lab.dropless(&arguments).env("SUDO_UID", "0").within(&own).spawn();
        running.wait_for(begun, LIMIT);
        let mut found = BTreeMap::new();
        let is_kept = until(LIMIT, || {
            found = threads(running.id());
            found.iter().all(|(name, rights)| {
                let held = if name == "dropless" { kept } else { 0 };
                rights.held == held && rights.is_final && rights.bound & !kept == 0
            })
        });
        assert!(is_kept, "{command:?}: {found:?}");
        fs::write(&rules, "deny udp dport 7\ndeny udp dport 8\n").expect("rules");
        running.signal(nix::sys::signal::Signal::SIGHUP);
        running.wait_for("2 rules in force", LIMIT);
        running.signal(nix::sys::signal::Signal::SIGINT);
        let ended = running.wait(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended}");
        assert!(!has_note(&ended.json(), "rights_kept"), "{ended}");
        let links = own.ip(&["-details", "link", "show"]);
        assert!(!links.contains("xdp"), "after {command:?}: {links}");
    }
}

/// Who owns `path` and everything below it.
fn owners(path: &Path, found: &mut BTreeMap<String, (u32, u32)>) {
    let data = fs::symlink_metadata(path).expect("a file");
    found.insert(path.display().to_string(), (data.uid(), data.gid()));
    if data.is_dir() {
        for entry in fs::read_dir(path).expect("a directory").flatten() {
            owners(&entry.path(), found);
        }
    }
}

#[test]
fn what_a_sudo_users_run_leaves_is_that_users() {
    let Some(lab) = require(&[Need::Root]) else { return };
    let user = USER.to_string();
    let runs = "made/deep/runs";
    for words in [
        &["send", "--count", "2000", "--rate", "max", "--runs", runs][..],
        &[
            "send", "--count", "2000", "--stream", "name=a", "--stream", "name=b", "--runs", runs,
        ],
        &[
            "search",
            "--max-rate",
            "2kpps",
            "--final-duration",
            "100ms",
            "--initial-duration",
            "50ms",
            "--duration-sum",
            "200ms",
            "--runs",
            runs,
        ],
        &["noise", "--duration", "100ms", "--runs", runs],
    ] {
        let run = lab
            .dropless(words)
            .env("SUDO_UID", &user)
            .env("SUDO_GID", &user)
            .run();
        assert!(run.code.is_some_and(|code| code < 3), "{run}");
        assert!(!run.stdout.contains("incomplete"), "{run}");
    }
    let mut found = BTreeMap::new();
    owners(&lab.path("made"), &mut found);
    assert!(found.len() > 40, "{found:?}");
    found.retain(|_, owner| *owner != (USER, USER));
    assert!(found.is_empty(), "root's: {found:?}");
    // Of a user who is root nothing is given away.
    let run = lab
        .dropless(&["send", "--json", "--count", "500", "--runs", "roots"])
        .env("SUDO_UID", "0")
        .run();
    assert_valid_but_for_time(&run);
    assert_conserved(&run);
    owners(&lab.path("roots"), &mut found);
    assert!(found.values().all(|owner| *owner == (0, 0)), "{found:?}");
}
