//! A ring in two processes: joining, leaving, and dying on either side.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ring::layout::SEGMENT_MIN;
use ring::layout::consumer::{FIRST, LOST, RELEASED, TAKEN};
use ring::pcapng::{self, PacketHead};
use ring::share::{Door, Joined};
use ring::{Producer, RingError, socket};

use crate::in_c;
use crate::support::{Compiler, Served, ended, spawn};

/// Packet `number`, if there is room for it.
fn push(served: &mut Served, number: u64) -> bool {
    let head = PacketHead {
        time_ns: number,
        original_len: 1000,
        ..PacketHead::default()
    };
    let frame = [number as u8; 1000];
    served.producer.push(&head, 1000, [&frame[..]]).is_ok()
}

/// This program once more, as a consumer: see `a_consumer_elsewhere`.
fn elsewhere(path: &Path, how: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "share::a_consumer_elsewhere",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("RING", path)
        .env("HOW", how)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A door is replaced where nobody is behind it, and goes with its own process only.
#[test]
fn a_door_is_nobody_elses() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("door");
    let kind = |opened: std::io::Result<Door>| opened.err().map(|error| error.kind());
    let in_use = Some(std::io::ErrorKind::AddrInUse);

    let first = Door::open(&path, None).unwrap();
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(kind(Door::open(&path, None)), in_use);
    // Of a kind that no stream connects to, and alive.
    let other = dir.path().join("datagrams");
    let _alive = std::os::unix::net::UnixDatagram::bind(&other).unwrap();
    assert_eq!(kind(Door::open(&other, None)), in_use);
    assert!(other.exists());
    std::fs::write(dir.path().join("text"), "").unwrap();
    let text = Door::open(&dir.path().join("text"), None);
    assert_eq!(kind(text), Some(std::io::ErrorKind::AlreadyExists));

    // Another one has the name by the time that the first one ends.
    std::fs::remove_file(&path).unwrap();
    let second = Door::open(&path, None).unwrap();
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
    // What a dead process leaves.
    drop(UnixListener::bind(&path).unwrap());
    drop(Door::open(&path, None).unwrap());
    assert!(!path.exists());
}

/// Takes packets until the producer has ended, and says how many; or only the first, and then nothing for ever.
#[test]
#[ignore = "elsewhere() runs it in another process"]
fn a_consumer_elsewhere() {
    let Some(path) = std::env::var_os("RING") else {
        return;
    };
    let mut joined = Joined::new(Path::new(&path), "elsewhere", true).unwrap();
    let (mut taken, mut next) = (0, None);
    loop {
        let is_over = joined.consumer.is_ended() || joined.is_alone();
        while let Some(packets) = joined.consumer.packets().unwrap() {
            for packet in packets.iter() {
                let packet = packet.unwrap();
                assert!(
                    next.is_none_or(|next| packet.time_ns == next),
                    "once, and in order"
                );
                next = Some(packet.time_ns + 1);
                taken += 1;
            }
            if std::env::var("HOW").is_ok_and(|how| how == "stops") {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        if is_over {
            println!("taken {taken} {}", joined.consumer.counts().0);
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_consumer_in_another_process_gets_everything() {
    let mut served = Served::new();
    let child = elsewhere(&served.path(), "takes");
    served.wait_for(1);
    for number in 0..5000 {
        while !push(&mut served, number) {
            served.producer.commit();
            served.door.look(&served.ring);
        }
    }
    served.producer.end();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("taken 5000 5000"), "{said}");
    served.serve(|door| door.guests()[0].is_gone);
    let guest = &served.door.guests()[0];
    assert_eq!(
        (guest.name.as_str(), guest.seat().counts),
        ("elsewhere", (5000, 0))
    );
}

/// A lossless consumer that is killed holds the ring no longer.
#[test]
fn a_dead_consumer_is_shown_out() {
    let mut served = Served::new();
    let mut child = elsewhere(&served.path(), "stops");
    served.wait_for(1);
    let mut number = 0;
    while push(&mut served, number) {
        number += 1;
        served.producer.commit();
        served.door.look(&served.ring);
    }
    child.kill().unwrap();
    let _ = child.wait();
    served.serve(|door| door.guests()[0].is_gone);
    assert!(push(&mut served, number));
}

/// What a dead producer had committed can be read.
#[test]
fn the_packets_of_a_dead_producer_are_there() {
    let mut served = Served::new();
    let path = served.path();
    let child = elsewhere(&path, "takes");
    served.wait_for(1);
    for number in 0..100 {
        assert!(push(&mut served, number));
    }
    served.producer.commit();
    // It never ends: it is gone.
    drop(served);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("taken 100 100"), "{said}");
    assert!(matches!(
        Joined::new(&path, "late", true),
        Err(RingError::Door(..))
    ));
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Mappings of pages of consumers.
fn pages() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.contains("dropless-consumer"))
        .count()
}

/// Readers come and go as long as a capture runs: the places of those that left are free, their connections closed, and
/// their pages gone.
#[test]
#[ignore = "so_many_readers() runs it in another process"]
fn readers_that_come_and_go() {
    let mut served = Served::new();
    let mut before = None;
    for round in 0..400 {
        let path = served.path();
        let joined = std::thread::spawn(move || Joined::new(&path, "short", true).map(drop).is_ok());
        served.serve(|_| joined.is_finished());
        assert!(joined.join().unwrap(), "round {round}");
        served.serve(|door| door.guests().iter().all(|guest| guest.is_gone));
        assert_eq!(
            *before.get_or_insert_with(open_files),
            open_files(),
            "round {round}"
        );
        // The producer lets go of a seat that was left when the next guest comes.
        assert!(pages() <= 2, "round {round}: {}", pages());
    }
    assert_eq!(served.door.guests().len(), 400, "what each came to is known");
    // Of the last one the producer does not know yet that it has left.
    assert_eq!(served.door.shed(399).len(), 0);
    assert_eq!(
        (served.door.shed(99).len(), served.door.guests().len()),
        (300, 100)
    );
    // Nor do those that say nothing keep others out.
    let silent: Vec<_> = (0..200)
        .map(|_| {
            let stream = UnixStream::connect(served.path()).unwrap();
            served.door.look(&served.ring);
            stream
        })
        .collect();
    let path = served.path();
    let joined = std::thread::spawn(move || Joined::new(&path, "short", true).map(drop).is_ok());
    served.serve(|_| joined.is_finished());
    assert!(joined.join().unwrap());
    let ours = silent.len() + before.unwrap();
    assert!(open_files() < ours + 100, "{} of {ours}", open_files());
}

/// In a process of their own, where nobody else opens files.
#[test]
fn so_many_readers() {
    let tested = Command::new(std::env::current_exe().unwrap())
        .args(["share::readers_that_come_and_go", "--exact", "--ignored"])
        .output()
        .unwrap();
    assert!(
        tested.status.success(),
        "{}",
        String::from_utf8_lossy(&tested.stdout)
    );
}

/// What comes with a message that is cut short is closed.
#[test]
fn files_of_a_short_message_are_closed() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut end, sent) = UnixStream::pair().unwrap();
    socket::send(&theirs, b"short", [sent.as_fd(), sent.as_fd()]).unwrap();
    drop(sent);
    assert!(socket::receive(&ours, &mut [0; 16], || true).is_err());
    // Nobody has the other end any more.
    end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(end.read(&mut [0; 1]).unwrap(), 0);
}

/// Where only one of two can be opened, that one is closed, too, and the limit is named.
#[test]
#[ignore = "so_many_files runs it where few may be opened"]
fn files_that_there_is_no_room_for() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut end, sent) = UnixStream::pair().unwrap();
    socket::send(&theirs, &[0; 16], [sent.as_fd(), sent.as_fd()]).unwrap();
    drop(sent);
    let open = || File::open("/dev/null");
    let mut others: Vec<_> = std::iter::from_fn(|| open().ok()).collect();
    others.pop();
    let error = socket::receive(&ours, &mut [0; 16], || true).unwrap_err();
    end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(end.read(&mut [0; 1]).unwrap(), 0);
    let said = RingError::Door("ring.sock".into(), error).to_string();
    assert_eq!(
        said,
        "ring.sock: this process may open no more files; raise `ulimit -n`"
    );
}

#[test]
fn so_many_files() {
    let few = "ulimit -n 64; exec \"$0\" share::files_that_there_is_no_room_for --exact --ignored";
    let tested = Command::new("sh")
        .args(["-c", few])
        .arg(std::env::current_exe().unwrap())
        .output();
    let tested = tested.unwrap();
    assert!(
        tested.status.success(),
        "{}",
        String::from_utf8_lossy(&tested.stdout)
    );
}

#[test]
fn one_door_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring.sock");
    let first = Door::open(&path, None).unwrap();
    assert!(Door::open(&path, None).is_err());
    drop(first);
    // What a killed one left is no obstacle; what is something else is left alone.
    drop(UnixListener::bind(&path).unwrap());
    assert!(Door::open(&path, None).is_ok());
    std::fs::write(&path, "mine").unwrap();
    assert!(Door::open(&path, None).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

/// Whoever listens may be no dropless, hang, or be about to end: each is a sentence, in Rust and in C.
#[test]
fn whoever_listens_and_gives_no_seat_is_told_of() {
    let compiler = Compiler::new();
    let count = compiler.map(|compiler| (in_c::count(&compiler), compiler));
    let said = |path: &Path, words: &str| {
        // Both at once: who hangs is waited for for some seconds.
        let in_c = count.as_ref().map(|(count, _)| spawn(count, &[path.as_os_str()]));
        let said = Joined::new(path, "short", true)
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(said.contains(words), "{said}");
        if let Some(in_c) = in_c {
            let (_, said, code) = ended(in_c);
            assert!(said.contains(words) && code == Some(2), "{said}");
        }
    };
    let dir = tempfile::tempdir().unwrap();
    let hangs = dir.path().join("hangs");
    let _listener = UnixListener::bind(&hangs).unwrap();
    said(&hangs, "gives no answer");
    let closes = dir.path().join("closes");
    let listener = UnixListener::bind(&closes).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    said(&closes, "hung up without an answer");
    said(
        &dir.path().join("x".repeat(150)),
        "the name is too long for a socket",
    );
}

/// What a consumer writes into its own page is nothing that the producer's side goes by where it knows better.
#[test]
fn where_a_consumer_began_its_page_does_not_say() {
    let (mut producer, ring) = Producer::new(4, SEGMENT_MIN, &pcapng::preamble("test", &[])).unwrap();
    let (seat, page) = ring.seat(false).unwrap();
    producer.commit();
    let page = File::from(page);
    for at in [RELEASED, TAKEN, LOST, FIRST] {
        page.write_all_at(&1_000_000_u64.to_ne_bytes(), at as u64)
            .unwrap();
    }
    assert_eq!((seat.first(), seat.counts()), (0, (1_000_000, 1_000_000)));
}
