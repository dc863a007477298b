//! Published files: never torn, and never taken for more than they are, whatever lies in their place.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test by panicking")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use report::published::{Place, Process, Refusal, State, VERSION, decode, encode, read, tap_socket};

fn state(sequence: u64) -> State {
    State {
        process: Process::this("send", "0.0.0"),
        sequence,
        // Of a length that changes from one to the next.
        stalls: vec![report::published::RecentStall::default(); sequence as usize % 50],
        ..State::default()
    }
}

#[test]
fn what_is_told_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(&dir.path().join("live"));
    let publisher = place.publisher().unwrap();
    let told = state(7);
    publisher.publish(&told).unwrap();
    let found = place.look(std::process::id());
    assert!(found.alive);
    assert_eq!(found.state.unwrap(), told);
    let files: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

/// As in a ledger: all places but those that were asked for.
#[test]
fn what_is_lost_is_what_no_place_was_asked_to_take() {
    use measure::place::PLACES;
    let mut state = State::default();
    state.add_places(PLACES.iter().map(|place| (&*place.name, 1)));
    let taken = PLACES.iter().map(|place| (place.clone(), 1));
    let ledger = measure::Balance::of(PLACES.len() as u64, 0, taken);
    assert_eq!(state.lost(), ledger.lost());
    state.add_places([("rx_error", 2), ("filtered", 3)]);
    assert_eq!(state.lost(), ledger.lost() + 2);
    // At the end they are those of the ledger, as far as each was charged.
    state.take_places(&ledger);
    assert_eq!(state.lost(), ledger.lost());
    assert_eq!(state.places.len(), PLACES.len());
    // A reflector's, as its result has them: what was no probe is not lost.
    let dropped = [("not_ip", 3), ("not_udp", 4), ("not_ours", 5), ("fragment", 6)];
    let (mut state, reflected) = (
        State::default(),
        measure::ReflectSummary {
            dropped: dropped.map(|(name, count)| (name.to_owned(), count)).into(),
            received: 18,
            ..measure::ReflectSummary::default()
        },
    );
    state.add_places(dropped);
    assert_eq!((state.lost(), reflected.lost()), (6, 6));
}

#[test]
fn a_reader_never_sees_half_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let publisher = place.publisher().unwrap();
    publisher.publish(&state(0)).unwrap();
    let file = place.file(std::process::id());
    std::thread::scope(|scope| {
        let writer =
            scope.spawn(|| (1..2000).for_each(|sequence| publisher.publish(&state(sequence)).unwrap()));
        let mut last = 0;
        while !writer.is_finished() {
            let seen = read(&file).unwrap().sequence;
            assert!(seen >= last, "{seen} after {last}");
            last = seen;
        }
    });
    assert_eq!(read(&file).unwrap().sequence, 1999);
}

#[test]
fn nothing_of_it_moves_the_cursor() {
    let evil = "x\u{1b}[2J\u{9b}31m\nVALID";
    let mut told = state(1);
    told.process.command = evil.into();
    told.process.run = evil.into();
    told.health.reason = evil.into();
    told.places.insert(evil.into(), 1);
    let read = format!("{:?}", decode(&encode(&told).unwrap()).unwrap());
    assert_eq!(read.matches("x?[2J?31m?VALID").count(), 4, "{read}");
}

#[test]
fn every_cut_is_refused() {
    let whole = encode(&state(3)).unwrap();
    for length in 0..whole.len() {
        assert!(decode(&whole[..length]).is_err(), "{length} of {}", whole.len());
    }
    let mut longer = whole.clone();
    longer.push(b' ');
    assert!(matches!(decode(&longer), Err(Refusal::Length { .. })));
}

#[test]
fn a_newer_version_is_one_clear_line() {
    let text = format!("dropless-live {} 2\n{{}}", VERSION + 1);
    let refusal = decode(text.as_bytes()).unwrap_err();
    assert!(matches!(refusal, Refusal::Newer(_)));
    let line = refusal.to_string();
    let newer = format!("version {}", VERSION + 1);
    assert!(line.contains(&newer) && !line.contains('\n'), "{line}");
}

#[test]
fn fields_of_a_later_dropless_are_passed_over() {
    let body = r#"{"sequence":5,"phase":"levitating","moon":"full"}"#;
    let state = decode(format!("dropless-live 1 {}\n{body}", body.len()).as_bytes()).unwrap();
    assert_eq!((state.sequence, state.phase.name()), (5, "running"));
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
        let mut with_head = format!("dropless-live 1 {}\n", bytes.len()).into_bytes();
        with_head.extend(&bytes);
        prop_assert!(decode(&with_head).is_err());
    }

    #[test]
    fn no_damage_breaks_the_reader(at in 0usize..10_000, to in any::<u8>()) {
        let mut bytes = encode(&state(9)).unwrap();
        let at = at % bytes.len();
        bytes[at] = to;
        let _ = decode(&bytes);
    }
}

#[test]
fn links_pipes_and_directories_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let real = dir.path().join("real");
    fs::write(&real, encode(&state(1)).unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, place.file(1)).unwrap();
    nix::unistd::mkfifo(&place.file(2), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(place.file(3)).unwrap();
    for process in 1..=3 {
        assert!(place.look(process).state.is_err(), "{process}");
    }
}

/// A file of process `id` that says that it was started at another time than the process of that id was.
fn left_behind(place: &Place, id: u32) {
    let mut state = state(1);
    state.process.id = id;
    state.process.started_ticks = 1;
    fs::write(place.file(id), encode(&state).unwrap()).unwrap();
}

/// Whoever tells a run something sends a signal to its process.
#[test]
fn nobody_publishes_for_a_process_of_another_user() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let own = state(1);
    fs::write(place.file(own.process.id), encode(&own).unwrap()).unwrap();
    assert!(place.look(own.process.id).alive);
    let mut init = state(1);
    let stat = fs::read_to_string("/proc/1/stat").unwrap();
    let begun = stat.rsplit(')').next().unwrap().split_whitespace().nth(19);
    init.process.id = 1;
    init.process.started_ticks = begun.unwrap().parse().unwrap();
    fs::write(place.file(1), encode(&init).unwrap()).unwrap();
    if nix::unistd::geteuid().is_root() {
        assert!(place.look(1).alive, "it is root's");
        std::os::unix::fs::chown(place.file(1), Some(65534), None).unwrap();
    }
    assert!(!place.look(1).alive);
}

const PUBLISHED: &str = "DROPLESS_TEST_PUBLISHED";

#[test]
#[ignore = "a_run_is_alive_from_every_time_namespace runs it in another one"]
fn seen_from_another_time_namespace() {
    let path = std::env::var(PUBLISHED).unwrap();
    let (dir, process) = path.rsplit_once('/').unwrap();
    let found = Place::at(Path::new(dir)).look(process.parse().unwrap());
    assert!(found.alive, "{found:?}");
}

/// The kernel tells the start of a process later by what the time namespace of whoever asks adds.
#[test]
fn a_run_is_alive_from_every_time_namespace() {
    let dir = tempfile::tempdir().unwrap();
    let own = state(1);
    let path = Place::at(dir.path()).file(own.process.id);
    fs::write(&path, encode(&own).unwrap()).unwrap();
    let seen = [
        "published::seen_from_another_time_namespace",
        "--exact",
        "--ignored",
    ];
    let output = std::process::Command::new("unshare")
        .args(["--time", "--boottime", "86400", "--fork", "--map-root-user"])
        .arg(std::env::current_exe().unwrap())
        .args(seen)
        .env(PUBLISHED, path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => assert!(said.contains("1 passed"), "{said}"),
        Some(101) => panic!("{said}"),
        _ => crate::skip::skip(&format!("needs a time namespace of its own: {output:?}")),
    }
}

fn age(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    file.set_modified(long_ago).unwrap();
}

#[test]
fn what_the_dead_left_is_seen_for_a_while_and_then_swept() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let (fresh, old) = (std::process::id() + 1, std::process::id());
    left_behind(&place, fresh);
    left_behind(&place, old);
    age(&place.file(old));
    let sockets = [fresh, old].map(|process| tap_socket(&place.file(process)));
    for socket in &sockets {
        std::os::unix::net::UnixListener::bind(socket).unwrap();
    }
    let list = place.list();
    assert_eq!(list.len(), 1, "{list:?}");
    assert!(!list[0].alive, "another process has its id now");
    place.publisher().unwrap();
    assert!(place.file(fresh).exists() && !place.file(old).exists());
    assert!(
        sockets[0].exists() && !sockets[1].exists(),
        "a tap's socket goes with it"
    );
}

/// Above what the kernel gives to processes (`PID_MAX_LIMIT`).
const NOBODY: u32 = (1 << 22) + 1;

#[test]
fn what_the_killed_were_writing_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let own = encode(&state(1)).unwrap();
    let half = &own[..own.len() / 2];
    let write = |process: u32, bytes: &[u8]| {
        let path = dir.path().join(format!(".{process}"));
        fs::write(&path, bytes).unwrap();
        path
    };
    let [old, fresh, of_others, alive] = [
        write(NOBODY, half),
        write(NOBODY + 1, half),
        write(NOBODY + 2, b"notes"),
        write(std::os::unix::process::parent_id(), half),
    ];
    for path in [&old, &of_others, &alive] {
        age(path);
    }
    place.publisher().unwrap();
    assert_eq!(
        [&old, &fresh, &of_others, &alive].map(|path| path.exists()),
        [false, true, true, true]
    );
}

/// A number may be another's by the time; what told of its end is over, whoever has the number.
#[test]
fn what_has_ended_is_not_active_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let (mut ended, file) = (state(1), place.file(std::process::id()));
    ended.ended = Some(report::published::Ended::default());
    fs::write(&file, encode(&ended).unwrap()).unwrap();
    assert_eq!(place.list().len(), 1, "it is shown for a while");
    age(&file);
    assert!(place.list().is_empty());
    place.publisher().unwrap();
    assert!(!file.exists());
    // One that goes on and is only slow to tell is another matter.
    fs::write(&file, encode(&state(1)).unwrap()).unwrap();
    age(&file);
    assert_eq!(place.list().len(), 1);
}

/// Sockets of the dead are swept, too, where the file beside them went first; nothing but old sockets of ours.
#[test]
fn a_tap_that_was_left_alone_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let gone = 4_194_304; // above every process id (pid_max)
    let lives = std::os::unix::process::parent_id();
    let [old, fresh, none, alive] =
        [gone, gone + 1, gone + 2, lives].map(|process| tap_socket(&place.file(process)));
    for socket in [&old, &fresh, &alive] {
        std::os::unix::net::UnixListener::bind(socket).unwrap();
    }
    fs::write(&none, "no socket").unwrap();
    for path in [&old, &alive, &none] {
        let touched = std::process::Command::new("touch")
            .args(["-d", "1 hour ago"])
            .arg(path)
            .status();
        assert!(touched.unwrap().success());
    }
    place.publisher().unwrap();
    assert!(!old.exists());
    assert!(fresh.exists() && alive.exists() && none.exists());
}

#[test]
fn a_directory_of_somebody_else_is_not_written_into() {
    if !nix::unistd::geteuid().is_root() {
        return crate::skip::skip("needs leave to give a directory away (root)");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("squat");
    fs::create_dir(&path).unwrap();
    nix::unistd::chown(&path, Some(65534.into()), None).unwrap();
    let error = Place::at(&path).publisher().unwrap_err().to_string();
    assert!(error.contains("belongs to user 65534"), "{error}");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert!(Place::at(&link).publisher().is_err());
}

#[test]
fn only_what_runs_of_ours_published_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    let gone = 4_194_304; // above every process id (pid_max)
    let at = |name: &str| dir.path().join(name);
    let real = at("thesis");
    fs::write(&real, encode(&state(1)).unwrap()).unwrap();
    left_behind(&place, gone);
    let copy = fs::read(place.file(gone)).unwrap();
    fs::write(at("4194305"), "my own figures").unwrap();
    fs::write(at("4194306"), "").unwrap();
    fs::write(at("+4194307"), &copy).unwrap();
    fs::write(at("004194308"), &copy).unwrap();
    std::os::unix::fs::symlink(&real, at("4194309")).unwrap();
    fs::create_dir(at("4194310")).unwrap();
    let mut kept: Vec<&str> = vec![
        "thesis",
        "4194305",
        "4194306",
        "+4194307",
        "004194308",
        "4194309",
        "4194310",
    ];
    if nix::unistd::geteuid().is_root() {
        fs::write(at("4194311"), &copy).unwrap();
        nix::unistd::chown(&at("4194311"), Some(65534.into()), None).unwrap();
        kept.push("4194311");
    }
    for name in kept
        .iter()
        .filter(|name| **name != "4194309" && **name != "4194310")
    {
        age(&at(name));
    }
    age(&place.file(gone));
    place.publisher().unwrap();
    for name in kept {
        assert!(at(name).symlink_metadata().is_ok(), "{name} was deleted");
    }
    assert!(!place.file(gone).exists());
}

/// In the user's own directory, which others may write to, a link waits for the file of this process.
#[test]
fn a_link_in_the_place_of_the_file_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (place, target) = (Place::at(dir.path()), dir.path().join("target"));
    fs::write(&target, "untouched").unwrap();
    let own = std::process::id();
    for name in [own.to_string(), format!(".{own}")] {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let error = place.publisher().unwrap_err().to_string();
        assert!(error.ends_with("is in the way"), "{error}");
        fs::remove_file(&link).unwrap();
        // It comes when the run has begun.
        let publisher = place.publisher().unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for sequence in 1..4 {
            let _ = publisher.publish(&state(sequence));
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
        assert_eq!(read(&place.file(own)).unwrap().sequence, 3);
        fs::remove_file(place.file(own)).unwrap();
    }
    fs::write(place.file(own), "my own figures").unwrap();
    assert!(place.publisher().is_err());
    assert_eq!(fs::read_to_string(place.file(own)).unwrap(), "my own figures");
}

#[test]
fn a_directory_that_everybody_may_change_is_not_written_into() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(dir.path());
    for (mode, is_fit) in [(0o777, false), (0o702, false), (0o1777, true), (0o755, true)] {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let problem = place.publisher().err().map(|error| error.to_string());
        assert_eq!(problem.is_none(), is_fit, "{mode:o}: {problem:?}");
    }
}
