//! A null port with a prefilled pool, driven by a worker that is pinned and known to DPDK; errors of pools and ports.

mod support;

use std::thread;

use dpdk::{Burst, Pool, PoolError, Port, PortConfig, PortError, WorkerError, spawn_worker};

#[test]
fn a_worker_drives_a_null_port() {
    let eal = support::eal("null");
    assert!(dpdk::version().starts_with("DPDK "));
    let mut pool = Pool::new(&eal, "packets", 2047, 256, 1024, None).unwrap();
    let frame: Vec<u8> = (0..100).collect();
    assert_eq!(pool.prefill(&frame), 2047);
    assert_eq!(pool.in_use(), 0);

    let name = eal.null("x", frame.len()).unwrap();
    let wanted = PortConfig {
        rx_queues: 2,
        tx_queues: 1,
        rx_descriptors: 70,
        tx_checksum_offload: true,
        ..PortConfig::default()
    };
    let (mut port, mut rx, mut tx) = Port::by_name(&eal, &name)
        .unwrap()
        .configure(&wanted, &pool)
        .unwrap();
    assert_eq!((rx.len(), tx.len(), port.driver_name()), (2, 1, "net_null"));
    let granted = port.granted();
    assert!(!granted.tx_checksum_offload);
    assert!(
        port.notes().iter().any(|note| note.contains("UDP checksums")),
        "{:?}",
        port.notes()
    );
    port.start().unwrap();
    assert!(port.link().unwrap().up);
    port.mac().unwrap();

    let (queue, sender) = (&mut rx[1], &mut tx[0]);
    let (eal_here, pool_here, frame) = (&eal, &pool, &frame);
    let sent = thread::scope(|scope| {
        let work = move || {
            let mut burst = Burst::new(eal_here);
            assert_eq!(queue.receive(&mut burst, 64), 64);
            assert!((0..64).all(|index| burst.bytes(index) == frame));
            assert_eq!(pool_here.in_use(), 64);
            sender.transmit(&mut burst, 50)
        };
        let worker = spawn_worker(scope, Some(eal_here), 0, "sender", work).unwrap();
        worker.join().unwrap()
    });
    assert_eq!(sent, 50);
    assert_eq!(pool.in_use(), 0, "14 were freed with the burst, 50 by the driver");
    let stats = port.stats().unwrap();
    assert_eq!((stats.ipackets, stats.opackets), (64, 50));

    let panicked = thread::scope(|scope| {
        spawn_worker(scope, Some(&eal), 0, "fails", || panic!("as it should"))
            .unwrap()
            .join()
    });
    assert!(panicked.is_err());
    let absent = thread::scope(|scope| {
        let worker = spawn_worker(scope, Some(&eal), 1000, "nowhere", || ());
        worker.map(drop).unwrap_err()
    });
    assert!(matches!(absent, WorkerError::Pin { core: 1000, .. }), "{absent}");

    let unknown = Port::by_name(&eal, "net_null_y").unwrap_err();
    let unknown = unknown.to_string();
    assert!(
        unknown.starts_with("no port \"net_null_y\"; DPDK has net_null_x"),
        "{unknown}"
    );
    let taken = Port::by_name(&eal, &name).unwrap_err();
    assert!(matches!(taken, PortError::Taken(_)), "{taken}");
    drop((port, rx, tx));
    assert!(
        pool.audit().is_empty(),
        "the buffers in the worker's cache are not missing"
    );
    let huge = Pool::new(&eal, "huge", 1_000_000, 0, 2048, None).unwrap_err();
    assert!(matches!(huge, PoolError::Create { mib: 2197, .. }), "{huge}");
    let no_driver = eal.add_device("net_nothing0", "").unwrap_err();
    assert!(matches!(no_driver, PortError::Driver { .. }), "{no_driver}");
}
