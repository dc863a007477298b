//! What can be refused by looking at the command line alone.

use super::refused;

/// One test a line: its name, the arguments, what the line says, and last what it tells to do.
macro_rules! wrong {
    ($($name:ident: $arguments:expr => $($word:expr),+;)*) => {
        $(#[test] fn $name() { refused(&$arguments, &[$($word),+]); })*
    };
}

wrong! {
    unknown_command: ["sned"] => "unrecognized subcommand 'sned'", "'send'", "see dropless --help";
    unknown_flag: ["send", "--foo"] => "unexpected argument '--foo'", "see dropless send --help";
    no_port_to_reflect_on: ["reflect"] => "--port <URI>", "see dropless reflect --help";
    size_and_payload: ["send", "--size", "64", "--payload", "64"] => "cannot be used with", "see dropless send --help";
    tune_that_changes_cores_nobody_named: ["tune", "--apply"] => "no cores are named", "would suit this machine";
    tune_and_undo_at_once: ["tune", "--undo", "--apply"] => "cannot be used with", "see dropless tune --help";
    tune_that_writes_what_it_does_not_print: ["tune", "--cores", "1", "--write"] => "--boot", "see dropless tune --help";
    tune_that_takes_back_and_writes: ["tune", "--undo", "--write"] => "cannot be used with", "see dropless tune --help";
    tune_that_changes_and_writes: ["tune", "--cores", "1", "--apply", "--write"] => "cannot be used with", "see dropless tune --help";
    tune_that_takes_back_for_a_while: ["tune", "--undo", "--duration", "9s"] => "cannot be used with", "see dropless tune --help";
    search_for_a_share_of_no_speed: ["search", "--max-rate", "90%"] => "--max-rate: a rate in percent needs a link speed", "in pps or bps";
    search_for_a_test_that_is_not_made: ["search", "--method", "rfc2544", "--latency-trials", "5", "--dry-run"] => "--latency-trials is of a test that is not made", "add --test latency";
    compare_ports_that_are_not_tried: ["compare", "--methods", "kernel", "--near-port", "null", "--far-port", "null", "--dry-run"] => "--near-port is of the way `ports`", "add that to --methods";
    reflect_with_a_seed_of_no_fault: ["reflect", "--port", "null", "--seed", "7"] => "--fault", "see dropless reflect --help";
    size_of_no_stream: ["send", "--size", "1518", "--stream", "name=a,size=64"] => "--size would do nothing", "leave it out";
    tune_that_forces_no_nic: ["tune", "--cores", "1", "--force"] => "--nic", "see dropless tune --help";
    tune_for_a_core_that_is_not_there: ["tune", "--cores", "8000"] => "no core 8000", "choose from";
    tune_for_no_nic: ["tune", "--cores", "0", "--nic", "pci:zz"] => "'zz' is not", "0000:3b:00.0";
    unknown_shell: ["completions", "tcsh"] => "'tcsh'", "bash";
    seed_is_no_number: ["send", "--seed", "x"] => "invalid value 'x' for '--seed <N>'", "see dropless send --help";
    unknown_verification: ["send", "--verify", "all"] => "invalid value 'all'", "none, checksum, payload";
    dscp_out_of_range: ["send", "--dscp", "64"] => "write a number from 0 to 63", "see dropless send --help";
    dscp_is_no_number: ["send", "--dscp", "EF"] => "invalid value 'EF'", "write a number from 0 to 63";
    flag_with_a_slip: ["send", "--portt", "ring"] => "similar argument exists: '--port'", "see dropless send --help";
    drain_of_hours: ["send", "--drain", "10h"] => "so long a drain", "use --interval 2198ms or longer, or a shorter --drain";
    queues_of_a_ring: ["send", "--rx-queues", "1000"] => "16 at most", "use fewer";
    router_of_a_ring: ["send", "--via", "10.0.0.1"] => "means nothing to port ring", "leave --via out";
    router_beside_a_mac: ["send", "--port", "packet:lo", "--via", "10.0.0.1", "--to-mac", "02:00:00:00:00:01"] => "gives one", "leave one of them out";
    firewall_beside_the_kernel: ["compare", "--methods", "xdp,memif", "--firewall-rules", "5", "--dry-run"] => "none of these ways", "add one to --methods: kernel, kernel-mmsg, kernel-uring";
    compare_at_no_rate: ["compare", "--rates", "20kpps,fast", "--dry-run"] => "--rates: rate \"fast\"", "write 3.5Mpps";
    compare_for_no_time: ["compare", "--duration", "soon", "--dry-run"] => "--duration: duration \"soon\"", "a number and a unit";
    noise_above_no_time: ["noise", "--threshold", "soon"] => "--threshold: duration \"soon\"", "a number and a unit";
    noise_at_no_rate: ["noise", "--rate", "1Gbps"] => "--rate 1Gbps is not a packet rate", "write it as 14.88Mpps";
    compare_on_no_device: ["compare", "--methods", "ports", "--near-port", "xdp:nowhere", "--far-port", "xdp:nowhere2", "--dry-run"] => "no interface is called nowhere", "dropless ports";
    undo_of_no_journal: ["tune", "--undo", "--journal", "/nonexistent"] => "/nonexistent: there is no such file", "leave it out";
    kernel_of_another_family: ["send", "--port", "kernel:127.0.0.1", "--to", "::1"] => "both IPv6", "give --to, or the port kernel:ADDR, an address of the same family";

    empty_port: ["send", "--port", ""] => "the name is empty", "kinds: ring, null";
    unknown_kind: ["send", "--port", "rnig"] => "no kind of port is called 'rnig'", "did you mean ring?";
    interface_without_kind: ["send", "--port", "eth7"] => "'eth7'", "xdp:eth7 or packet:eth7";
    kind_without_target: ["send", "--port", "xdp"] => "xdp needs the name of an interface", "write xdp:IF";
    unknown_port_option: ["send", "--port", "ring,dircet"] => "no option 'dircet'", "did you mean direct?";
    port_option_out_of_range: ["send", "--port", "ring,size=100"] => "'100'", "a power of two";
    bad_pci_address: ["send", "--port", "pci:zz"] => "'zz' is not", "0000:3b:00.0";
    bad_mac_port: ["send", "--port", "mac:12"] => "'12' is not", "02:00:00:00:00:01";
    two_equal_ports: ["send", "--port", "ring", "--port", "ring"] => "given twice", "ring:a ring:b";
    two_rings_of_one_name: ["send", "--port", "ring:a", "--port", "ring:a,size=64"] => "same", "give each port once";
    xdp_that_insists_on_zero_copy: ["send", "--port", "xdp:lo,mode=zero-copy"] => "option mode takes copy or auto", "zero copy where the interface's driver has it";
    kernel_from: ["send", "--port", "kernel:127.0.0.1", "--from", "127.0.0.2"] => "sends from its own address", "leave --from out";
    kernel_from_of_a_stream: ["send", "--port", "kernel:127.0.0.1", "--stream", "to=127.0.0.2,from=127.0.0.9"] => "sends from its own address", "leave from= out";
    kernel_checksum_offload: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--checksum-offload"] => "leaves checksums to the kernel", "leave --checksum-offload out";
    kernel_ttl: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--ttl", "0"] => "sends no TTL of 0", "use packet:IF";
    kernel_ttl_of_a_stream: ["send", "--port", "kernel:127.0.0.1", "--stream", "to=127.0.0.2,ttl=0"] => "sends no TTL of 0", "use packet:IF";
    kernel_itself: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.1"] => "goes from 127.0.0.1 to itself", "give --to, or the port kernel:ADDR, another address";
    kernel_flows: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--flows", "8"] => "one UDP port a queue", "use --tx-queues 8";
    kernel_vlan: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--vlan", "5"] => "no VLAN tags", "use packet:IF";
    kernel_mac: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--to-mac", "02:00:00:00:00:09"] => "leaves MAC addresses and routes to the kernel";
    kernel_others: ["send", "--port", "kernel:127.0.0.1", "--port", "ring"] => "does not go with ports of other kinds";
    kernel_corrupt: ["reflect", "--port", "kernel:127.0.0.1", "--fault", "corrupt=1%"] => "the damage would not be detected", "use packet:IF";
    kernel_eal: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--eal", "-n4"] => "--eal would do nothing", "leave it out";
    kernel_buffers: ["reflect", "--port", "kernel:127.0.0.1", "--buffers", "4096"] => "--buffers would do nothing", "DPDK is not started";
    kernel_dumps: ["send", "--port", "kernel:127.0.0.1", "--to", "127.0.0.2", "--dpdk-tools"] => "--dpdk-tools would do nothing", "use packet:IF";
    kernel_addresses: ["reflect", "--port", "kernel:127.0.0.1", "--address", "10.0.0.9"] => "answers for the address in its name", "leave --address out";
    kernel_any: ["reflect", "--port", "kernel:0.0.0.0:7777"] => "stands for every address", "ip address";
    kernel_io: ["send", "--port", "kernel:127.0.0.1,io=aio"] => "takes call, mmsg or uring";
    send_into_null: ["send", "--port", "null"] => "nothing comes back", "--tx-only";
    reflect_on_ring: ["reflect", "--port", "ring"] => "has its reflector built in", "use `dropless send`";

    size_below_probe: ["send", "--size", "63"] => "63 is below the probe", "use --size 64";
    size_below_probe_with_tags: ["send", "--size", "64", "--vlan", "5", "--to", "2001:2::2"] => "at least 88", "use --size 88";
    size_above_jumbo: ["send", "--size", "9700"] => "9700", "up to 9618";
    size_range_backwards: ["send", "--size", "1500-64"] => "\"1500-64\"", "write 64, 64,512,1518";
    empty_size: ["send", "--size", ""] => "--size is empty", "imix";
    payload_above_jumbo: ["send", "--payload", "9573"] => "9573 is more than", "use --payload 9572";
    payload_above_jumbo_with_a_tag: ["send", "--payload", "9572", "--vlan", "5"] => "9572 is more than", "use --payload 9568";
    payload_below_probe: ["send", "--payload", "17"] => "17 is below the probe", "use --payload 18";
    bad_rate: ["send", "--rate", "5x"] => "\"5x\"", "3.5Mpps, 10Gbps";
    rate_of_nothing: ["send", "--rate", "0pps"] => "\"0pps\"", "write a rate from 0.00001pps";
    rate_above_the_link: ["send", "--rate", "101%"] => "\"101%\"", "to 100%";
    rate_of_no_link: ["send", "--rate", "1000Tpps"] => "\"1000Tpps\"", "from 0.00001pps to 1Tpps";
    rate_of_years: ["send", "--rate", "0.0000001pps"] => "\"0.0000001pps\"", "from 0.00001pps to 1Tpps";
    bad_duration: ["send", "--duration", "5parsecs"] => "--duration", "a number and a unit";
    no_duration: ["send", "--duration", "0s"] => "is zero", "give a time such as 10s";
    no_packets: ["send", "--count", "0"] => "--count 0 sends nothing", "give the number";
    bad_count: ["send", "--count", "many"] => "\"many\"", "write";
    no_flows: ["send", "--flows", "0"] => "--flows 0", "between 1 and 16M";
    no_queues: ["send", "--tx-queues", "0"] => "at least one queue", "use --tx-queues 1";
    more_queues_than_a_ring_has: ["send", "--rx-queues", "1000"] => "--rx-queues 1000", "16 at most", "use fewer";
    too_many_queues: ["send", "--rx-queues", "65535"] => "more than DPDK has", "use fewer";
    no_queues_to_reflect_on: ["reflect", "--port", "null", "--queues", "0"] => "at least one queue", "use --queues 1";
    empty_burst: ["send", "--burst", "0"] => "--burst 0", "between 1 and 64";
    burst_too_large: ["send", "--burst", "65"] => "--burst 65", "between 1 and 64";
    too_few_descriptors: ["send", "--descriptors", "63"] => "--descriptors 63", "1024 is usual";
    too_many_descriptors: ["send", "--descriptors", "40000"] => "--descriptors 40000", "between 64 and 32768";
    buffers_below_the_queues: ["send", "--buffers", "10"] => "too few where the queues alone hold", "use --buffers";
    buffers_above_the_memory: ["send", "--no-huge", "--buffers", "4000000000"] => "MiB of memory are available", "use fewer --buffers";
    interval_too_short: ["send", "--interval", "10us"] => "--interval 10", "1ms is the shortest";
    interval_too_short_to_reflect: ["reflect", "--port", "null", "--interval", "1us"] => "too short", "1ms is the shortest";
    drain_of_nothing: ["send", "--drain", "50us"] => "every packet would count as late", "use --drain 1ms";

    no_core_list: ["send", "--cores", "0-"] => "invalid core list '0-'", "write cores as 0-3,5";
    empty_core_list: ["send", "--cores", ""] => "the list is empty", "leave --cores out";
    doctor_of_no_cores: ["doctor", "--cores", ""] => "the list is empty", "leave --cores out";
    doctor_of_absent_cores: ["doctor", "--cores", "8000"] => "no core 8000", "choose from --cores";
    doctor_of_no_port: ["doctor", "--port", "rnig"] => "no kind of port is called 'rnig'", "did you mean ring?";
    doctor_for_no_time: ["doctor", "--watch", "soon"] => "--watch: duration \"soon\"", "write a number and a unit";
    doctor_for_a_day: ["doctor", "--watch", "24h"] => "--watch 24h is long", "10s usually tell";
    absent_core: ["send", "--cores", "8000"] => "no core 8000", "choose from --cores";
    cores_for_nothing: ["send", "--cores", "0-3"] => "--cores names 4, and at most 3", "name fewer, or use more queues";
    cores_to_receive_nothing: ["send", "--port", "null", "--tx-only", "--cores", "0,1"] => "at most 1 have something to do", "one for each transmit queue";
    cores_to_reflect_on: ["reflect", "--port", "null", "--cores", "0,1"] => "at most 1 have something to do", "use more --queues";
    cores_to_replay_on: ["replay", "x.pcap", "--port", "null", "--cores", "0,1"] => "at most 1 have something to do", "name one core";
    core_twice: ["send", "--cores", "0-1,0"] => "core 0 twice", "give each core once";

    no_address: ["send", "--to", "10.0.0.256"] => "--to 10.0.0.256", "IP:PORT-PORT";
    address_that_some_resolvers_take: ["send", "--to", "10.1"] => "--to 10.1 is neither an address", "IP:PORT-PORT";
    host_that_nobody_knows: ["send", "--to", "nowhere.invalid:7"] => "--to nowhere.invalid: nobody knows a host", "write its IP address";
    host_of_the_family_of_the_socket: ["send", "--port", "kernel:127.0.0.1", "--to", "localhost"] => "goes from 127.0.0.1 to itself";
    port_range_backwards: ["send", "--to", "10.0.0.1:9-7"] => "ends before it begins", "write 7-9";
    multicast_destination: ["send", "--to", "224.0.0.1"] => "not a unicast address", "give the address";
    multicast_source: ["send", "--from", "ff02::1", "--to", "fe80::1"] => "not a unicast address", "nobody could send to it";
    families_mixed: ["send", "--from", "2001:2::1", "--to", "198.18.0.2"] => "must be IPv4, or both IPv6", "give --from";
    router_of_the_other_family: ["send", "--port", "packet:lo", "--to", "10.0.0.2", "--via", "2001:2::9"] => "of the other family", "give the router's address";
    to_itself: ["send", "--from", "198.18.0.2"] => "to itself", "give --from another address";
    source_port_of_nobody: ["send", "--from", "198.18.0.1:0"] => "nothing comes back to port 0", "write one from 1 on";
    no_backlog: ["send", "--backlog", "0"] => "--backlog 0 gives up all", "give 1 or more";
    flows_into_multicast: ["send", "--from", "223.255.255.255:65000", "--to", "10.0.0.1", "--flows", "64513"] => "beyond unicast ones (64513 flows", "give --from a lower address";
    flows_up_to_broadcast: ["send", "--from", "255.255.255.254", "--to", "10.0.0.1", "--flows", "100k"] => "from 255.255.255.254 beyond", "fewer --flows";
    flows_beyond_the_last_address: ["send", "--from", "255.255.255.254", "--to", "10.0.0.1", "--flows", "200k"] => "from 255.255.255.254 beyond", "fewer --flows";
    bad_destination_mac: ["send", "--to-mac", "zz"] => "--to-mac zz", "02:00:00:00:00:01";
    group_source_mac: ["send", "--from-mac", "01:00:5e:00:00:01"] => "multicast address", "use one like 02:";
    vlan_out_of_range: ["send", "--vlan", "4095"] => "VLAN id 4095", "between 1 and 4094";
    three_vlans: ["send", "--vlan", "1,2,3"] => "3 were given", "--vlan takes one id, or two";
    bad_reflector_address: ["reflect", "--port", "null", "--address", "x"] => "invalid value 'x'", "see dropless reflect --help";

    unknown_stream_field: ["send", "--stream", "colour=red"] => "unknown field `colour`", "fields are name, size";
    empty_stream: ["send", "--stream", ""] => "not FIELD=VALUE", "write e.g. size=128";
    some_streams_with_a_rate: ["send", "--stream", "rate=1kpps", "--stream", "size=64"] => "1 of 2 streams", "give every --stream a rate=";
    rate_beside_streams_with_rates: ["send", "--rate", "5pps", "--stream", "name=a,rate=1kpps", "--stream", "name=b,rate=2kpps"] => "--rate 5pps would do nothing", "leave it out";
    unknown_metric: ["send", "--expect", "los<1"] => "no metric \"los\"", "there are loss, lost";
    unknown_operator: ["send", "--expect", "loss~1"] => "no comparison", "write METRIC<VALUE";
    unknown_unit: ["send", "--expect", "loss<1parsec"] => "\"1parsec\" is no bound", "write a number in %";
    field_of_a_stream_twice: ["send", "--stream", "name=a,size=64,size=1518"] => "`size` is given twice", "give it once";
    fault_twice: ["send", "--fault", "drop=0.5,drop=0.1"] => "fault `drop` is given twice", "give each once";
    no_fault_in_the_flag: ["send", "--fault", ""] => "not NAME=VALUE", "e.g. drop=0.1%";
    unknown_fault: ["send", "--fault", "drip=1%"] => "no fault `drip`", "use drop, duplicate";
    expectation_without_unit: ["send", "--expect", "loss<0.1"] => "no bound for loss", "write a number in % or ppm";
    two_streams_of_one_name: ["send", "--stream", "name=a", "--stream", "name=a"] => "two streams are called `a`", "name= of its own";
    ring_that_nobody_empties: ["send", "--tx-only"] => "nothing receives from port ring", "use --port null";
    plan_and_a_rate: ["send", "--plan", "p.json", "--rate", "1kpps"] => "cannot be used with", "--rate", "see dropless send --help";
    plan_and_a_port: ["send", "--plan", "p.json", "--port", "ring"] => "cannot be used with", "--port", "see dropless send --help";
    plan_and_cores: ["send", "--plan", "p.json", "--cores", "0"] => "cannot be used with", "--cores", "see dropless send --help";
    tap_of_the_host_beside_a_ring: ["forward", "--port", "ring:a", "--port", "ring:b", "--kernel", "tap:x0"] => "--kernel for port ring:a", "--kernel is for xdp: and pci: ports";
    filter_run_of_nothing: ["filter", "run"] => "required arguments", "see dropless filter run --help";
    filter_stop_of_no_interface: ["filter", "stop", "eth999"] => "dropless: eth999: no interface is called eth999", "fix:";
    capture_below_a_file: ["capture", "--port", "ring", "--to", "/etc/passwd/x"] => "Not a directory", "name a file in a directory that is there";
    flows_of_no_statistics: ["read", "-", "--flows-max", "10"] => "--top <N>|--connections", "see dropless read --help";
    ethernet_beside_the_top: ["read", "-", "--top", "5", "-e"] => "cannot be used with", "see dropless read --help";
    times_of_the_top: ["read", "-", "--top", "5", "--time", "epoch"] => "--top has no times", "leave them out, or add --connections";
    zone_of_the_top: ["read", "-", "--top", "5", "--utc"] => "--top has no times", "leave them out, or add --connections";
    ethernet_beside_connections: ["read", "-", "--connections", "-e"] => "cannot be used with", "see dropless read --help";
    filter_that_is_taken_for_a_file: ["read", "-", "udp"] => "no file udp", "A filter is written --filter 'udp'";
    plan_without_end: ["send", "--plan", "/dev/zero"] => "it is a device", "plan.json";
    tap_of_too_many_queues: ["reflect", "--port", "tap:fewer0", "--queues", "5"] => "port tap:fewer0 is a tap", "4 at most";
    tap_of_the_host_of_too_many_queues: ["forward", "--port", "null:a", "--port", "null:b", "--queues", "5", "--kernel", "tap:fewer0"] => "port tap:fewer0 is a tap", "4 at most";
    memif_that_serves_of_two_queues: ["reflect", "--port", "memif:/tmp/x.sock,server", "--queues", "2"] => "where it serves", "id=N";
    transmit_queues_beside_those_of_a_port: ["send", "--port", "ring,queues=2", "--tx-queues", "17"] => "--tx-queues 17", "16 at most";
    ring_of_too_many_queues: ["send", "--port", "ring,queues=99"] => "99 queues", "16 at most";
    fault_above_one: ["send", "--fault", "drop=150%"] => "150%", "write it as 0.1%";
    faults_above_one: ["send", "--fault", "drop=60%,corrupt=60%"] => "120", "keep the sum at or below 100%";
    fault_without_reflector: ["send", "--port", "ring,direct", "--fault", "drop=1%"] => "no port of this run has one", "use --port ring";
}

#[test]
fn more_lanes_than_the_probe_can_name() {
    let streams: Vec<String> = (0..100).map(|number| format!("name={number}")).collect();
    let mut arguments = vec!["send", "--tx-queues", "1000"];
    for stream in &streams {
        arguments.extend(["--stream", stream]);
    }
    refused(&arguments, &["100000 lanes", "use fewer streams or queues"]);
}

#[test]
fn looking_into_a_run_with_what_only_ports_have() {
    let of_ports = [
        "--port=ring",
        "--eal=--foo",
        "--wait=1s",
        "--queues=4",
        "--descriptors=8192",
        "--buffers=5",
        "--dpdk-tools",
        "--force",
        "--explain",
        "--pause=1us",
    ];
    for flag in of_ports {
        let name = flag.split('=').next().unwrap_or(flag);
        let words = ["cannot be used with", name, "see dropless capture --help"];
        refused(&["capture", "--attach", "1", flag], &words);
    }
}
