//! A process that dies between any two steps: every count stands in exactly one place.

use std::net::UdpSocket;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rules::{RuleSet, Tables};

use super::place::USUAL;
use super::*;
use crate::{Filter, Groups, Kept, Sampling, Wanted, Why};

const LOOPBACK: u32 = 1;
const ABOUT: About<'_> = About {
    interface: "lo",
    file: "test.rules",
    by: "0",
    now_unix_ms: 1,
};
const WANTED: Wanted = Wanted {
    interface: LOOPBACK,
    mode: Mode::Generic,
    groups: 64,
    sampling: Sampling {
        denied_per_second: 0,
        every: 0,
        room: 0,
    },
};

/// A loopback and a BPF file system of this thread alone; nothing where we may not.
fn own_world() -> Option<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).ok()?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).ok()?;
    mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), none).ok()?;
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    up.is_ok_and(|status| status.success()).then_some(())
}

fn rules(text: &str) -> (RuleSet, Tables) {
    let set = rules::parse("test.rules", &|_| Ok(text.to_owned())).unwrap();
    let tables = Tables::new(&set).unwrap();
    (set, tables)
}

/// Packets to port 7, which are denied.
fn send(count: u64) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..count {
        socket.send_to(b"x", "127.0.0.1:7").unwrap();
    }
    count
}

/// What was denied.
fn denied(totals: &Totals) -> u64 {
    let denied = totals
        .rules
        .iter()
        .filter(|(rule, _)| rule.verdict == Verdict::Deny);
    denied.map(|(_, met)| met.packets).sum()
}

fn stayed() -> Stayed {
    Stayed::on(LOOPBACK).unwrap().unwrap()
}

/// Names and pins the next generation, with these counters.
fn announce(pins: &mut Pins, spellings: &[Spelling], filter: &Filter) {
    let number = pins.state.generation + 1;
    let counts = filter.map("counts").unwrap();
    pins.announce(number, spellings, &counts).unwrap();
}

#[test]
fn a_process_may_die_between_any_two_steps() {
    std::thread::spawn(die_everywhere).join().unwrap();
}

fn die_everywhere() {
    let (set, tables) = rules("deny udp dport 7\n");
    let (other, other_tables) = rules("deny udp dport 7-7\n");
    if own_world().is_none() {
        return crate::skip::skip("needs namespaces of its own and a BPF file system (root)");
    }
    let started = match Kept::stay(&WANTED, &ABOUT, &set, &tables) {
        Err(AttachError::Program(error)) if error.why() == Why::NotAllowed => {
            return crate::skip::skip("needs leave to load BPF programs (root)");
        }
        other => other.unwrap(),
    };
    let spellings = other.spellings();
    let load = || Filter::load(&other_tables, Groups::New(64), false).unwrap();
    let mut met = send(5);
    drop(started);
    // Each ends as a process does that is killed there: what it did not do is not done.
    let steps: [(&str, &dyn Fn()); 7] = [
        ("in force", &|| {}),
        ("the state was made, and not renamed", &|| {
            let dir = stayed().pins.dir;
            let left = MapHandle::from_pinned_path(dir.join(STATE)).unwrap();
            pin(left.as_fd(), &dir.join(NEXT)).unwrap();
        }),
        ("a generation was named, and not pinned", &|| {
            let mut pins = stayed().pins;
            announce(&mut pins, &spellings, &load());
            fs::remove_file(pins.generation(pins.state.generation)).unwrap();
        }),
        ("it was pinned, and not put in force", &|| {
            announce(&mut stayed().pins, &spellings, &load());
        }),
        ("it was in force, and those before it not added up", &|| {
            let (mut stayed, filter) = (stayed(), load());
            announce(&mut stayed.pins, &spellings, &filter);
            stayed.attached.as_ref().unwrap().swap(&filter).unwrap();
        }),
        ("those before were added up, and their pins not removed", &|| {
            let before = stayed().pins;
            let kept = before.state.generations.iter().map(|named| {
                let path = before.generation(named.number);
                let counts = MapHandle::from_pinned_path(&path).unwrap();
                (path, counts)
            });
            let kept: Vec<_> = kept.collect();
            drop(Kept::stay(&WANTED, &ABOUT, &other, &other_tables).unwrap());
            for (path, counts) in kept {
                pin(counts.as_fd(), &path).unwrap();
            }
        }),
        ("rules were swapped many times", &|| {
            let mut kept = Kept::stay(&WANTED, &ABOUT, &set, &tables).unwrap();
            for _ in 0..20 {
                kept.swap(&other, &other_tables).unwrap();
                kept.swap(&set, &tables).unwrap();
            }
        }),
    ];
    for (step, die) in steps {
        die();
        assert_eq!(denied(&stayed().totals().unwrap()), met, "{step}: as it stays");
        met += send(3);
        let heir = Kept::stay(&WANTED, &ABOUT, &set, &tables).unwrap();
        assert_eq!(denied(heir.taken_over().unwrap()), met, "{step}: taken over");
        met += send(2);
        assert_eq!(denied(&heir.totals().unwrap()), met, "{step}: after that");
        let entries = fs::read_dir(stayed().pins.dir).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let is_left = |name: &String| ![LINK, GROUPS, STATE].contains(&&**name);
        assert_eq!(names.filter(is_left).count(), 1, "{step}: one generation");
    }
    assert_eq!(denied(&stayed().remove().unwrap()), met);
    assert!(Stayed::on(LOOPBACK).unwrap().is_none());
    assert!(InForce::on(LOOPBACK).unwrap().is_none());
    assert_eq!(fs::read_dir(USUAL).unwrap().count(), 0);
    assert!(Stayed::all().unwrap().0.is_empty());
    // One that dies before there is a state.
    let dir = dir(LOOPBACK).unwrap();
    fs::create_dir(&dir).unwrap();
    pin(load().map("groups").unwrap().as_fd(), &dir.join(GROUPS)).unwrap();
    let kept = Kept::stay(&WANTED, &ABOUT, &set, &tables).unwrap();
    assert!(kept.gone().is_none());
    // One that somebody takes off.
    met = send(4);
    kept.totals().unwrap();
    drop(kept);
    stayed().attached.unwrap().detach().unwrap();
    assert!(!stayed().is_in_force());
    send(1);
    let heir = Kept::stay(&WANTED, &ABOUT, &set, &tables).unwrap();
    assert!(heir.taken_over().is_none());
    assert_eq!(denied(heir.gone().unwrap()), met, "what it had counted is told");
    drop(heir);
    stayed().remove().unwrap();
    // A directory that somebody else made.
    std::os::unix::fs::chown(USUAL, Some(65_534), None).unwrap();
    let refused = Kept::stay(&WANTED, &ABOUT, &set, &tables)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("of user 65534"), "{refused}");
}

#[test]
fn another_number_of_groups_is_another_table() {
    std::thread::spawn(ask_for_groups).join().unwrap();
}

fn ask_for_groups() {
    let (set, tables) = rules("deny udp dport 7\nrate 1pps per source udp dport 8\n");
    if own_world().is_none() {
        return crate::skip::skip("needs namespaces of its own and a BPF file system (root)");
    }
    let stay = |groups| Kept::stay(&Wanted { groups, ..WANTED }, &ABOUT, &set, &tables);
    match stay(64) {
        Err(AttachError::Program(error)) if error.why() == Why::NotAllowed => {
            return crate::skip::skip("needs leave to load BPF programs (root)");
        }
        first => assert!(!first.unwrap().forgot_rates()),
    }
    let met = send(3);
    // 64 groups and 61 have tables of the same size.
    for (groups, forgets) in [(64, false), (61, false), (256, true), (256, false), (16, true)] {
        let heir = stay(groups).unwrap();
        assert_eq!(heir.forgot_rates(), forgets, "{groups}");
        assert_eq!(denied(heir.taken_over().unwrap()), met, "{groups}: counts go on");
        let (used, kept) = (heir.maker().shared, stayed().pins.shared().unwrap());
        assert_eq!(kept.groups.max_entries(), groups.div_ceil(4), "{groups}");
        let same = |shared: &Shared| (shared.groups.info().unwrap().info.id, shared.buckets, shared.seed);
        assert_eq!(same(&kept), same(&used), "{groups}: the one in use is kept");
    }
    fs::remove_file(stayed().pins.dir.join(GROUPS)).unwrap();
    assert!(stay(16).unwrap().forgot_rates());
    assert!(!stay(16).unwrap().forgot_rates());
    stayed().remove().unwrap();
}
