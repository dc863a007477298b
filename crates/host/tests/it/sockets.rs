//! Sockets in every state: free, served, left by the dead, or no socket at all.

use crate::fixture::Fixture;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;

fn serve(machine: &Fixture, path: &str, sort: SockType) -> OwnedFd {
    let path = machine.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let server = socket(AddressFamily::Unix, sort, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(server.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
    listen(&server, Backlog::new(1).unwrap()).unwrap();
    server
}

#[test]
fn a_free_path_can_be_served() {
    let machine = Fixture::new();
    machine.directory("/run");
    for uri in [
        "memif:/run/a.sock,server",
        "vhost:/run/a.sock",
        "virtio-user:/run/a.sock,server",
    ] {
        assert!(machine.notes(uri).is_empty(), "{uri}");
    }
}

#[test]
fn a_living_server_is_not_disturbed() {
    let machine = Fixture::new();
    for (uri, sort) in [
        ("memif:/run/a.sock,server", SockType::SeqPacket),
        ("vhost:/run/b.sock", SockType::Stream),
        // A memif server where vhost-user is wanted is a living server just the same.
        ("vhost:/run/c.sock", SockType::SeqPacket),
    ] {
        let path = uri.split([':', ',']).nth(1).unwrap();
        let _server = serve(&machine, path, sort);
        let line = machine.line(uri);
        assert!(
            line.contains(&format!("another process already serves {path}")),
            "{line}"
        );
        assert!(line.ends_with(&format!("ss -xlp src {path}")), "{line}");
        assert!(machine.path(path).exists());
    }
}

#[test]
fn what_a_dead_server_left_is_noted_and_removed_by_opening_the_port() {
    let machine = Fixture::new();
    for (uri, sort) in [
        ("memif:/run/a.sock,server", SockType::SeqPacket),
        ("vhost:/run/b.sock", SockType::Stream),
    ] {
        let path = uri.split([':', ',']).nth(1).unwrap();
        drop(serve(&machine, path, sort));
        assert_eq!(machine.notes(uri), ["stale-socket"]);
        assert!(machine.path(path).exists(), "a check removed it");
        let prepared = machine.check(uri).unwrap();
        prepared.make_way(&machine.sys).unwrap();
        assert!(!machine.path(path).exists());
        prepared.make_way(&machine.sys).unwrap();
        // Somebody was quicker than we.
        let _server = serve(&machine, path, sort);
        let refused = prepared.make_way(&machine.sys).unwrap_err().to_string();
        assert!(refused.contains("another process already serves"), "{refused}");
        assert!(machine.path(path).exists());
    }
}

#[test]
fn clients_wait_or_say_that_nobody_serves() {
    let machine = Fixture::new();
    machine.directory("/run");
    assert_eq!(machine.notes("memif:/run/a.sock"), ["no-server"]);
    assert_eq!(machine.notes("vhost:/run/a.sock,client"), ["no-server"]);
    assert_eq!(
        machine.line("virtio-user:/run/a.sock"),
        "virtio-user:/run/a.sock: no process serves /run/a.sock: the socket does not exist; \
         fix: start the other end first, for example: dropless reflect --port vhost:/run/a.sock"
    );
    let server = UnixListener::bind(machine.path("/run/a.sock")).unwrap();
    machine.check("virtio-user:/run/a.sock").unwrap();
    assert_eq!(machine.notes("memif:/run/a.sock").len(), 0);
    drop(server);
    assert!(
        machine
            .line("virtio-user:/run/a.sock")
            .contains("its server has ended")
    );
}

#[test]
fn places_where_no_socket_can_be() {
    let machine = Fixture::new();
    assert_eq!(
        machine.line("memif:/run/a b/x.sock,server"),
        "memif:/run/a b/x.sock,server: directory /run/a b does not exist; fix: mkdir -p '/run/a b'"
    );
    assert!(
        machine
            .line("memif:/run/none/x.sock")
            .contains("directory /run/none does not exist")
    );
    machine.write("/run/file", "text");
    assert!(
        machine
            .line("vhost:/run/file")
            .contains("/run/file exists and is not a socket")
    );
    assert!(
        machine
            .line("memif:/run/file")
            .contains("/run/file exists and is not a socket")
    );
    assert!(
        machine
            .line("vhost:/run/file/x")
            .contains("/run/file is not a directory")
    );
    assert_eq!(fs::read_to_string(machine.path("/run/file")).unwrap(), "text");
    machine.check("memif:@abstract,server").unwrap();
}

#[test]
fn two_ports_do_not_take_the_same() {
    let machine = Fixture::new();
    machine.directory("/run");
    let check = |uris: &[&str]| {
        let uris: Vec<host::PortUri> = uris.iter().map(|uri| uri.parse().unwrap()).collect();
        host::check_all(&uris, &machine.sys)
            .map(|ports| ports.len())
            .map_err(|problem| problem.to_string())
    };
    assert_eq!(
        check(&[
            "ring",
            "null",
            "memif:/run/a,server",
            "memif:/run/a",
            "memif:/run/a,id=1"
        ]),
        Ok(5)
    );
    assert_eq!(check(&["ring:a", "ring:b"]), Ok(2));
    assert_eq!(
        check(&["ring", "ring"]).unwrap_err(),
        "ring: it is given twice; fix: give it once, or name the two apart: ring:a ring:b"
    );
    let twice = |first: &str, second: &str| {
        let line = check(&[first, second]).unwrap_err();
        assert!(
            line.starts_with(&format!("{second}: it conflicts with {first}")),
            "{line}"
        );
    };
    twice("ring", "ring,direct");
    twice("memif:/run/a,server", "memif:/run/a,server,size=10");
    twice("vhost:/run/v", "virtio-user:/run/v,server");
    twice("pcap:-,/run/o", "pcap:/run/i,/run/o");
    twice("kernel:127.0.0.1:9", "kernel:127.0.0.1:9,queues=2");
    twice("vdev:net_null0", "vdev:net_null0,size=1");
    twice("xdp:eth1,queues=2", "xdp:eth1,start=1");
    twice("packet:eth1", "packet:eth1,qdisc-bypass");
    assert!(
        check(&[])
            .unwrap_err()
            .contains("no port was given; fix: name one, for example ring")
    );
}
