//! Every form of a port URI, and every way to get one wrong.

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> PortUri {
    text.parse().unwrap()
}

#[track_caller]
fn refused(text: &str, part: &str) {
    let line = text.parse::<PortUri>().unwrap_err().to_string();
    assert!(line.contains(part), "{line:?} does not say {part:?}");
    assert!(!line.contains('\n'));
}

#[test]
fn every_kind_reads_and_prints_back() {
    for text in [
        "ring",
        "ring,direct",
        "ring:a,direct,size=1024,queues=4",
        "null",
        "null:b,size=128",
        "pci:0000:3b:00.0",
        "pci:10000:3b:1f.7,queues=8",
        "vmbus:f8615163-0001-1000-2000-6045bd7a8f21",
        "mac:02:00:00:00:00:01",
        "xdp:eth1",
        "xdp:eth1,start=2,mode=copy,queues=2",
        "xdp:eth1,mode=copy",
        "packet:eth1",
        "packet:eth1,qdisc-bypass",
        "tap:tap0",
        "tap:tap0,mac=02:00:00:00:00:09",
        "memif:/run/x.sock",
        "memif:/run/x.sock,server,id=7,size=12",
        "memif:@name,zero-copy",
        "vhost:/run/v.sock",
        "vhost:/run/v.sock,client,queues=2",
        "virtio-user:/run/v.sock",
        "virtio-user:/run/v.sock,server,queues=2",
        "pcap:in.pcap",
        "pcap:in.pcap,out.pcap",
        "pcap:-,out.pcap",
        "pcap:in.pcap,queues=2",
        "kernel:192.0.2.1",
        "kernel:192.0.2.1:9000",
        "kernel:[::1]:9000",
        "kernel:::1",
        "kernel:192.0.2.1:7,io=mmsg",
        "kernel:::1,io=uring,queues=2",
        "vdev:net_null0,size=128",
    ] {
        assert_eq!(parse(text).to_string(), text);
        let json = serde_json::to_string(&parse(text)).unwrap();
        assert_eq!(serde_json::from_str::<PortUri>(&json).unwrap(), parse(text));
    }
}

#[test]
fn other_spellings_mean_the_same() {
    assert_eq!(parse("pci:3b:00.0"), parse("pci:0000:3B:00.0"));
    assert_eq!(parse("mac:02-00-00-00-00-0A"), parse("mac:02:00:00:00:00:0a"));
    assert_eq!(parse("memif:/x,id=0"), parse("memif:/x"));
    assert_eq!(parse("xdp:eth1,mode=auto"), parse("xdp:eth1"));
    assert_eq!(parse("pcap:a,-"), parse("pcap:a"));
    assert_eq!(parse("kernel:[::1]"), parse("kernel:::1"));
    assert_eq!(
        parse("vmbus:{F8615163-0001-1000-2000-6045BD7A8F21}"),
        parse("vmbus:f8615163-0001-1000-2000-6045bd7a8f21")
    );
}

#[test]
fn wrong_uris_say_what_to_write() {
    refused("memif:/run/a\nb", "port 'memif:/run/a\\nb': a control character");
    refused("", "the name is empty; kinds: ring, null, pci:0000:3b:00.0");
    refused(
        "pic:3b:00.0",
        "no kind of port is called 'pic', did you mean pci?",
    );
    refused("eth1", "did you mean xdp:eth1 or packet:eth1?");
    refused("0000:3b:00.0", "did you mean pci:0000:3b:00.0?");
    refused("02:00:00:00:00:01", "did you mean mac:02:00:00:00:00:01?");
    refused(
        "pci:",
        "pci needs a PCI address after the colon; write pci:0000:3b:00.0",
    );
    refused("pci:3b:20.0", "'3b:20.0' is not DOMAIN:BUS:DEVICE.FUNCTION");
    refused("pci:+b:00.0", "is not DOMAIN:BUS:DEVICE.FUNCTION");
    refused("mac:02:00:00:00:00", "is not six bytes");
    refused("vmbus:1234", "is not a UUID");
    refused("xdp:", "needs the name of an interface");
    refused("xdp:an-interface-too-long", "at most 15 bytes");
    refused("xdp:../../x", "is not the name of an interface");
    refused(
        "xdp:eth1,mode=fast",
        "option mode takes copy or auto (zero copy where the interface's driver has it), not 'fast'",
    );
    refused("xdp:eth1,mode=zero-copy", "option mode takes copy or auto");
    refused(
        "xdp:eth1,quues=2",
        "xdp has no option 'quues', did you mean queues?; options: start, mode, queues",
    );
    refused(
        "ring,queues=0",
        "option queues takes a number of queues from 1, not '0'",
    );
    refused(
        "ring,queues",
        "option queues takes a number of queues from 1, not ''",
    );
    refused("ring,size=1000", "a power of two from 64");
    refused("ring,direct,direct", "option direct is given twice");
    refused("ring,direct=1", "option direct takes no value, not '1'");
    refused("ring,", "ring has no option ''");
    refused("tap:t0,mac=01:00:00:00:00:01", "a unicast MAC address");
    refused(
        "memif:/x,server,zero-copy",
        "server and zero-copy exclude each other",
    );
    refused("memif:/x,size=20", "5 to 14");
    refused(&format!("vhost:/{}", "x".repeat(107)), "at most 107 bytes");
    refused("pcap:-", "needs a file to read or a file to write");
    refused("kernel:host.example:1", "is not ADDR or ADDR:PORT");
    refused("kernel:192.0.2.1,io=aio", "takes call, mmsg or uring, not 'aio'");
    refused("vdev:", "needs DPDK's device arguments");
    refused("vdev", "needs DPDK's device arguments");
}

#[test]
fn names_that_dpdk_would_take_apart_are_refused() {
    for name in ["a=b", "a[b", "a]b"] {
        for uri in [
            format!("memif:/run/{name}"),
            format!("memif:@{name},server"),
            format!("vhost:{name}"),
            format!("virtio-user:/{name}/v"),
            format!("tap:{name}"),
            format!("xdp:{name}"),
            format!("packet:{name}"),
            format!("pcap:{name}"),
            format!("pcap:-,{name}"),
        ] {
            refused(&uri, "choose a name without it");
        }
    }
    parse("memif:/run/q'x (1) \\ ü");
}

proptest! {
    #[test]
    fn whatever_is_read_prints_back(text in "(ring|null|pci|xdp|tap|memif|pcap|kernel|vdev|mac|vhost)[:,]?[ -~]{0,40}") {
        if let Ok(uri) = text.parse::<PortUri>() {
            prop_assert_eq!(uri.to_string().parse::<PortUri>(), Ok(uri));
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = text.parse::<PortUri>();
    }
}
