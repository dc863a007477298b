//! Every way over the loopback: what is sent arrives once, in order, whole; what does not fit is counted.

use super::*;
use std::time::{Duration, Instant};

const WAYS: [Way; 3] = [Way::Call, Way::Batch, Way::Ring];

/// Puts another file in the place of a ring's: every call from now on fails, and it is never closed.
pub fn break_ring(fd: std::os::fd::RawFd) {
    let null = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: no pointers are passed.
    assert!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), fd) } >= 0);
}

pub fn open(buffer_bytes: usize) -> Arc<Socket> {
    let options = Options {
        local: "127.0.0.1:0".parse().unwrap(),
        shared_port: false,
        buffer_bytes,
        dscp: 0,
        ttl: 64,
    };
    Arc::new(Socket::open(&options).unwrap())
}

fn receive_all(receiver: &mut Receiver, wanted: usize) -> Vec<(Arrival, Vec<u8>)> {
    let mut all = Vec::new();
    let begun = Instant::now();
    while all.len() < wanted && begun.elapsed() < Duration::from_secs(5) {
        let mut rooms = vec![vec![0_u8; 2000]; 32];
        let mut arrivals = Vec::new();
        receiver.receive(rooms.iter_mut().map(|room| &mut room[..]), |arrival| {
            arrivals.push(arrival);
        });
        all.extend(
            arrivals
                .into_iter()
                .zip(rooms)
                .map(|(arrival, room)| (arrival, room[..arrival.len].to_vec())),
        );
    }
    all
}

#[test]
fn what_is_sent_arrives_in_order_and_whole_by_every_pair_of_ways() {
    for sending in WAYS {
        for receiving in WAYS {
            let (near, far) = (open(4 << 20), open(4 << 20));
            let mut sender = Sender::new(Arc::clone(&near), sending, 64).unwrap();
            let mut receiver = Receiver::new(Arc::clone(&far), receiving, 64, 2000).unwrap();
            let payloads: Vec<Vec<u8>> = (0..1000_usize)
                .map(|index| vec![index as u8; 18 + index])
                .collect();
            let mut got = Vec::new();
            for burst in payloads.chunks(50) {
                let sent = sender.send(burst.iter().map(|payload| (far.local(), &payload[..])));
                assert_eq!((sent.taken, sent.failed), (50, 0), "{sending:?}");
                got.extend(receive_all(&mut receiver, 50));
            }
            assert_eq!(got.len(), 1000, "{sending:?} to {receiving:?}");
            for ((arrival, bytes), payload) in got.iter().zip(&payloads) {
                assert_eq!((arrival.from, bytes), (near.local(), payload), "{receiving:?}");
            }
            assert_eq!(far.drops(), 0);
        }
    }
}

#[test]
fn what_a_full_buffer_drops_is_counted_to_the_packet() {
    for way in WAYS {
        // The standing request of the ring takes nothing before it is made.
        let (near, far) = (open(4 << 20), open(100_000));
        let mut sender = Sender::new(near, way, 64).unwrap();
        let payload = [7_u8; 500];
        let mut taken = 0;
        for _ in 0..100 {
            taken += sender.send((0..20).map(|_| (far.local(), &payload[..]))).taken;
        }
        let mut receiver = Receiver::new(Arc::clone(&far), way, 64, 2000).unwrap();
        let mut got = 0;
        while let more @ 1.. = receive_all_now(&mut receiver) {
            got += more;
        }
        assert_eq!(taken, 2000);
        assert!(far.drops() > 0);
        assert_eq!(got as u64 + far.drops(), 2000, "{way:?}");
    }
}

fn receive_all_now(receiver: &mut Receiver) -> usize {
    let mut rooms = vec![vec![0_u8; 2000]; 32];
    receiver.receive(rooms.iter_mut().map(|room| &mut room[..]), |_| {})
}

#[test]
fn what_cannot_be_sent_fails_and_holds_nothing_up() {
    for way in WAYS {
        let (near, far) = (open(1 << 20), open(1 << 20));
        let mut sender = Sender::new(near, way, 64).unwrap();
        let mut receiver = Receiver::new(Arc::clone(&far), way, 64, 2000).unwrap();
        let huge = vec![1_u8; 65535];
        let good = [2_u8; 30];
        let burst = [&good[..], &huge, &good];
        let sent = sender.send(burst.iter().map(|payload| (far.local(), *payload)));
        assert_eq!((sent.taken, sent.failed), (3, 1), "{way:?}");
        assert_eq!(receive_all(&mut receiver, 2).len(), 2, "{way:?}");
    }
}

#[test]
fn what_may_go_nowhere_fails_alone() {
    for way in WAYS {
        let (near, far) = (open(1 << 20), open(1 << 20));
        let mut sender = Sender::new(near, way, 64).unwrap();
        let mut receiver = Receiver::new(Arc::clone(&far), way, 64, 2000).unwrap();
        // Broadcasts are forbidden (EACCES), or without a route (ENETUNREACH): either may also be told of an earlier packet.
        let everybody = "255.255.255.255:9".parse().unwrap();
        let payload = [3_u8; 30];
        let burst = [far.local(), everybody, far.local(), everybody];
        let sent = sender.send(burst.into_iter().map(|to| (to, &payload[..])));
        assert_eq!((sent.taken, sent.failed), (4, 2), "{way:?}");
        assert_eq!(receive_all(&mut receiver, 2).len(), 2, "{way:?}");
    }
}

#[test]
fn a_peer_that_is_not_there_holds_nothing_up() {
    for way in WAYS {
        let (near, far) = (open(1 << 20), open(1 << 20));
        let nobody = open(1 << 20).local();
        let socket = Arc::clone(&near);
        let mut sender = Sender::new(near, way, 64).unwrap();
        let mut receiver = Receiver::new(Arc::clone(&far), way, 64, 2000).unwrap();
        let payload = [3_u8; 30];
        for _ in 0..20 {
            let sent = sender.send((0..10).map(|_| (nobody, &payload[..])));
            assert_eq!(sent.failed, 0, "{way:?}");
        }
        let mut taken = 0;
        while taken < 40 {
            taken += sender
                .send((taken..40).map(|_| (far.local(), &payload[..])))
                .taken;
        }
        assert_eq!(receive_all(&mut receiver, 40).len(), 40, "{way:?}");
        assert!(socket.refusals() > 0, "{way:?}");
    }
}

#[test]
fn the_port_is_free_as_soon_as_its_users_are_gone() {
    for way in WAYS {
        for _ in 0..20 {
            let (near, far) = (open(1 << 20), open(1 << 20));
            let local = far.local();
            let mut sender = Sender::new(Arc::clone(&near), way, 64).unwrap();
            let mut receiver = Receiver::new(Arc::clone(&far), way, 64, 2000).unwrap();
            receive_all_now(&mut receiver);
            sender.send((0..10).map(|_| (local, &[1_u8; 30][..])));
            drop((sender, receiver, near, far));
            std::net::UdpSocket::bind(local).expect("a free port");
        }
    }
}
