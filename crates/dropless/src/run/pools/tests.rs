//! Sizes and places of pools.

use super::*;

fn port(text: &str) -> PortUri {
    text.parse().unwrap()
}

fn holds(rings: u64) -> Holds {
    Holds {
        rings,
        ..Holds::default()
    }
}

#[test]
fn a_pool_is_as_large_as_the_sum_of_what_is_held() {
    let ring = Holds::of_port(&port("ring"), (1, 1), 512, 300);
    assert_eq!(
        ring.rings,
        2 * 2 * u64::from(RING_SLOTS),
        "both ends of it are ours"
    );
    assert_eq!((ring.drivers, ring.tasks), (0, 300));
    let memif = Holds::of_port(&port("memif:/run/a.sock"), (4, 2), 2048, 10);
    assert_eq!(
        (memif.rings, memif.drivers, memif.tasks),
        (6 * 2048, DRIVER_HELD, 40)
    );
    let xdp = Holds::of_port(&port("xdp:eth0"), (2, 2), 4096, 10);
    assert_eq!(
        xdp.rings,
        2 * (4096 + 2048 + 2048),
        "what a socket receives it gives back one for one"
    );
    let plan = PoolsPlan::new(&[(None, ring), (None, memif)], 3, None).unwrap();
    let pool = plan.pools[0];
    assert_eq!(pool.holds.total(), ring.total() + memif.total() + 3 * CACHE_HELD);
    assert_eq!((plan.pools.len(), pool.buffers), (1, 32767));
}

/// However many cores the machine has.
#[test]
fn a_run_of_one_queue_has_the_smallest_pool() {
    let ring = port("ring");
    let workers = workers_at_most([&ring].into_iter(), (1, 1));
    let holds = Holds::of_port(&ring, (1, 1), 1024, 400);
    let plan = PoolsPlan::new(&[(None, holds)], workers, None).unwrap();
    assert_eq!((workers, plan.buffers()), (2, BUFFERS_MIN as u32));
    let ports = [port("xdp:eth0,queues=3"), port("memif:/run/a.sock")];
    assert_eq!(workers_at_most(ports.iter(), (1, 2)), 2 * (3 + 2));
}

/// What drivers raise is no reason to refuse.
#[test]
fn few_descriptors_go_with_few_buffers() {
    let holds = Holds::of_port(&port("packet:eth0"), (1, 1), 64, 200);
    assert_eq!(holds.rings, 2 * 64);
    let raised = Holds::of_port(&port("packet:eth0"), (1, 1), 1024, 200);
    assert_eq!(holds.total(), raised.total());
}

#[test]
fn every_pool_holds_what_its_ports_hold_whatever_they_are() {
    let kinds = [
        "ring",
        "null",
        "memif:/run/a.sock",
        "xdp:eth0",
        "packet:eth0",
        "pci:0000:00:05.0",
    ];
    for text in kinds {
        for queues in [1, 3, 16] {
            for descriptors in [64, 1024, 4096] {
                let holds = Holds::of_port(&port(text), (queues, queues), descriptors, 4700);
                let plan = PoolsPlan::new(&[(None, holds); 3], 8, None).unwrap();
                let pool = plan.pools[0];
                assert_eq!(pool.holds.total(), 3 * holds.total() + 8 * CACHE_HELD);
                assert!(
                    u64::from(pool.buffers) >= pool.holds.total().max(BUFFERS_MIN),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn each_node_has_a_pool_and_each_port_that_of_its_node() {
    let ports = [
        (None, holds(1)),
        (Some(1), holds(10)),
        (Some(0), holds(100)),
        (Some(7), Holds::default()),
        (Some(1), holds(1000)),
    ];
    let made = |plan: &PoolsPlan| -> Vec<_> {
        let pools = plan.pools.iter();
        pools.map(|pool| (pool.node, pool.holds.rings)).collect()
    };
    let plan = PoolsPlan::new(&ports, 0, None).unwrap();
    assert_eq!(made(&plan), [(Some(1), 1011), (Some(0), 100)]);
    // A port of no node goes with the first that has one; sockets of the kernel take from none.
    assert_eq!(plan.of_port, [0, 0, 1, 0, 0]);
    let together = PoolsPlan::on_pages(&ports, 0, None, true).unwrap();
    assert_eq!(made(&together), [(None, 1111)]);
    assert_eq!(together.of_port, [0; 5]);
}

#[test]
fn too_few_buffers_are_refused_with_a_number_that_is_taken() {
    let ports = [(None, holds(5000))];
    let refused = PoolsPlan::new(&ports, 2, Some(6023)).unwrap_err().to_string();
    assert!(refused.contains("use --buffers 8191 or fewer"), "{refused}");
    let plan = PoolsPlan::new(&ports, 2, Some(8191)).unwrap();
    assert_eq!(plan.buffers(), 8191);
    assert!(PoolsPlan::new(&[(None, holds(1 << 40))], 2, None).is_err());
}

#[test]
fn ordinary_pages_hold_whole_buffers() {
    let pool = PoolPlan {
        node: None,
        holds: Holds::default(),
        buffers: 65535,
    };
    assert_eq!(pool.bytes(2048, false), 65535 * 2432);
    assert_eq!(pool.bytes(2048, true), 65535 * 4096, "one a page");
    assert_eq!(pool.bytes(1024, true), 32768 * 4096, "two a page");
    assert_eq!(pool.bytes(9728, true), 65535 * 3 * 4096);
}
