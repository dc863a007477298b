//! Packets through a pair of ring ports: written, sent, received, filtered, freed, and none of them lost.

use dpdk::{Burst, Eal, Pool, Port, PortConfig};

#[test]
fn packets_cross_a_ring_pair() {
    let arguments = [
        "--no-huge",
        "--no-pci",
        "--no-shconf",
        "-m",
        "64",
        "--lcores",
        "0@(0-1)",
        "--file-prefix",
        "dl-ring-pair",
    ];
    let eal = Eal::init(&arguments.map(str::to_owned)).unwrap();
    let mut pool = Pool::new(&eal, "packets", 1023, 128, 2048, None).unwrap();
    let (a, b) = eal.ring_pair("wire", 256, 1).unwrap();
    assert_eq!(eal.ports(), [a.clone(), b.clone()]);
    let config = PortConfig::default();
    let (mut port_a, _, mut tx) = Port::by_name(&eal, &a)
        .unwrap()
        .configure(&config, &pool)
        .unwrap();
    let (mut port_b, mut rx, _) = Port::by_name(&eal, &b)
        .unwrap()
        .configure(&config, &pool)
        .unwrap();
    assert!(Port::by_name(&eal, &a).is_err(), "a port has one owner");
    let (tx, rx) = (&mut tx[0], &mut rx[0]);

    let mut burst = Burst::new(&eal);
    assert_eq!(pool.allocate(&mut burst, 64), 64);
    assert_eq!(tx.transmit(&mut burst, 64), 0, "a stopped port takes nothing");
    port_a.start().unwrap();
    port_b.start().unwrap();
    for index in 0..64 {
        let room = burst.write(index, 60);
        assert_eq!(room.len(), 64);
        room.fill(index as u8);
    }
    assert_eq!(burst.blanks(0, 64).len(), 64);
    for (index, blank) in burst.blanks(32, 32).enumerate() {
        blank.write(60).fill(32 + index as u8);
    }
    assert_eq!(tx.transmit(&mut burst, 40), 40);
    assert_eq!(burst.len(), 24);
    assert_eq!(burst.bytes(0), [40; 60]);
    assert_eq!(tx.transmit(&mut burst, 64), 24);
    assert_eq!(
        (tx.offered(), tx.accepted()),
        (128, 64),
        "a refused packet counts at each offer"
    );

    let mut received = Burst::new(&eal);
    assert_eq!(rx.receive(&mut received, 32), 32);
    assert_eq!(rx.receive(&mut received, 32), 32);
    assert_eq!(rx.receive(&mut received, 32), 0);
    assert_eq!(rx.received(), 64);
    for index in 0..64 {
        assert_eq!(received.bytes(index), [index as u8; 60]);
        assert_eq!(received.packet_len(index), 60);
    }
    let keep: Vec<bool> = (0..64).map(|index| index % 3 == 0).collect();
    received.retain(&keep);
    assert_eq!(received.len(), 22);
    assert_eq!(received.bytes(21), [63; 60]);
    assert_eq!(pool.in_use(), 22);

    let held = received.take(1);
    assert_eq!(held.bytes(), [3; 60]);
    assert_eq!(received.bytes(1), [6; 60]);
    received.push(held).unwrap();
    assert_eq!(received.bytes(21), [3; 60]);
    received.bytes_mut(0)[0] = 99;
    received.set_len(0, 1);
    assert_eq!(received.bytes(0), [99]);
    assert_eq!(port_a.stats().unwrap().opackets, 64);
    assert_eq!(port_b.stats().unwrap().ipackets, 64);
    assert_eq!(port_b.driver_name(), "net_ring");

    // What waits in a ring comes home when both ports are closed.
    assert_eq!(tx.transmit(&mut received, 10), 10);
    drop(received);
    assert_eq!(pool.in_use(), 10);
    drop((port_a, port_b, burst));
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.audit().len(), 0);
    let mut burst = Burst::new(&eal);
    assert_eq!(pool.allocate(&mut burst, 10), 10);
    assert_eq!(pool.audit().len(), 10);
}
