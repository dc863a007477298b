//! `pcap:`, `kernel:` and `vdev:`.

use crate::fixture::Fixture;
use host::PortUri;
use std::net::UdpSocket;

fn pcap(magic: [u8; 4], link_type: [u8; 4], packets: &[u8]) -> Vec<u8> {
    [&magic[..], &[0; 16], &link_type, packets].concat()
}

fn put(machine: &Fixture, path: &str, bytes: &[u8]) {
    machine.write(path, "");
    std::fs::write(machine.path(path), bytes).unwrap();
}

#[test]
fn captures_of_every_form_are_known() {
    let machine = Fixture::new();
    let ethernet = [1, 0, 0, 0];
    put(
        &machine,
        "/a",
        &pcap([0xd4, 0xc3, 0xb2, 0xa1], ethernet, &[0; 16]),
    );
    put(
        &machine,
        "/b",
        &pcap([0x4d, 0x3c, 0xb2, 0xa1], ethernet, &[0; 16]),
    );
    put(
        &machine,
        "/c",
        &pcap([0xa1, 0xb2, 0xc3, 0xd4], [0, 0, 0, 1], &[0; 16]),
    );
    put(&machine, "/d", &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0]);
    for uri in [
        "pcap:/a",
        "pcap:/b",
        "pcap:/c",
        "pcap:/d",
        "pcap:/a,/new",
        "pcap:-,/new",
    ] {
        assert!(machine.notes(uri).is_empty(), "{uri}");
    }
    put(&machine, "/empty", &pcap([0xd4, 0xc3, 0xb2, 0xa1], ethernet, &[]));
    assert_eq!(
        machine.notes("pcap:/empty,/b"),
        ["pcap-empty", "pcap-overwritten"]
    );
}

#[test]
fn other_files_say_what_they_are_not() {
    let machine = Fixture::new();
    put(&machine, "/text", b"hello, this is a text of some length");
    put(&machine, "/short", b"\xd4\xc3");
    put(&machine, "/gz", &[0x1f, 0x8b, 8, 0]);
    put(
        &machine,
        "/cooked",
        &pcap([0xd4, 0xc3, 0xb2, 0xa1], [113, 0, 0, 0], &[0; 16]),
    );
    put(
        &machine,
        "/good",
        &pcap([0xd4, 0xc3, 0xb2, 0xa1], [1, 0, 0, 0], &[0; 16]),
    );
    machine.directory("/dir");
    assert!(machine.line("pcap:/text").contains("/text is not a pcap file"));
    assert!(machine.line("pcap:/short").contains("/short is not a pcap file"));
    assert!(
        machine
            .line("pcap:/gz")
            .ends_with("/gz is compressed; fix: gunzip --keep --stdout /gz > /gz.pcap")
    );
    assert!(
        machine
            .line("pcap:/cooked")
            .contains("holds no Ethernet frames (link type 113)")
    );
    assert!(
        machine
            .line("pcap:/none")
            .contains("/none cannot be read (No such file or directory")
    );
    assert!(
        machine
            .line("pcap:/none")
            .ends_with("fix: record one: tcpdump -i IF -w /none")
    );
    assert!(machine.line("pcap:/dir").contains("/dir is a directory"));
    assert!(machine.line("pcap:/good,/dir").contains("/dir is a directory"));
    assert!(
        machine
            .line("pcap:/good,/good")
            .contains("cannot be read and written at the same time")
    );
    assert!(
        machine
            .line("pcap:/good,/none/out")
            .ends_with("directory /none does not exist; fix: mkdir -p /none")
    );
}

#[test]
fn a_file_that_is_written_is_no_other_ports_under_any_name() {
    let machine = Fixture::new();
    put(
        &machine,
        "/in",
        &pcap([0xd4, 0xc3, 0xb2, 0xa1], [1, 0, 0, 0], &[0; 16]),
    );
    std::fs::hard_link(machine.path("/in"), machine.path("/linked")).unwrap();
    machine.directory("/dir");
    std::os::unix::fs::symlink(machine.path("/dir"), machine.path("/other")).unwrap();
    let check = |uris: &[&str]| {
        let uris: Vec<PortUri> = uris.iter().map(|uri| uri.parse().unwrap()).collect();
        host::check_all(&uris, &machine.sys).map_err(|problem| problem.to_string())
    };
    let both = "cannot be read and written at the same time";
    for (uris, why) in [
        (&["pcap:/in,/linked"][..], both),
        (&["pcap:/in", "pcap:-,/linked"], both),
        (&["pcap:-,/dir/../in", "pcap:/in"], both),
        (&["pcap:-,/dir/new", "pcap:-,/other/new"], "is written by"),
    ] {
        let line = check(uris).unwrap_err();
        assert!(line.contains(why), "{line}");
        assert!(line.ends_with("fix: write to another file"), "{line}");
    }
    assert!(check(&["pcap:/in,/dir/new", "pcap:/linked,/dir/old"]).is_ok());
}

#[test]
fn kernel_sockets_need_an_address_of_ours_and_a_free_port() {
    let mut machine = Fixture::new();
    machine.sys.addresses = vec![("eth0".into(), "192.0.2.2".parse().unwrap())];
    machine.check("kernel:127.0.0.1").unwrap();
    let every = machine.line("kernel:0.0.0.0");
    assert!(
        every.contains("stands for every address of this machine"),
        "{every}"
    );
    machine.check("kernel:192.0.2.2").unwrap();
    assert_eq!(
        machine.line("kernel:192.0.2.9"),
        "kernel:192.0.2.9: 192.0.2.9 is not an address of this machine (it has: 192.0.2.2); \
         fix: ip address add 192.0.2.9/32 dev lo"
    );
    assert!(
        machine
            .line("kernel:239.1.1.1")
            .ends_with("fix: use an address of this machine")
    );
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert!(
        machine
            .line(&format!("kernel:127.0.0.1:{port}"))
            .contains(&format!("UDP port {port} is in use; fix: "))
    );
}

#[test]
fn raw_devices_must_name_a_driver() {
    let machine = Fixture::new();
    machine.check("vdev:net_null0,size=64").unwrap();
    machine.check("vdev:crypto_null0").unwrap();
    assert!(
        machine
            .line("vdev:net_nul0")
            .ends_with("is called net_nul; fix: write vdev:net_null0")
    );
    let line = machine.line("vdev:net_elephant3");
    assert!(
        line.contains(
            "choose from: net_af_packet, net_af_xdp, net_memif, net_null, net_pcap, net_tap, net_vhost"
        ),
        "{line}"
    );
}
