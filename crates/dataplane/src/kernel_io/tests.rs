//! The reflecting loop over real sockets of the loopback.

use super::*;
use crate::fault::Faults;
use crate::reflect::{OwnMac, ReflectCounters, ReflectPlan, ReflectTask};
use crate::resolve::{Question, ask, send};
use crate::slot::Slot;
use crate::{Phase, Task};
use measure::Ticks;
use sockets::{Options, Socket, Way};
use std::time::{Duration, Instant};
use wire::{Addresses, BurstStamp, Class, Template, TemplateSpec, Verify, classify};

fn open(local: &str) -> Arc<Socket> {
    let options = Options {
        local: local.parse().unwrap(),
        shared_port: false,
        buffer_bytes: 4 << 20,
        dscp: 0,
        ttl: 64,
    };
    Arc::new(Socket::open(&options).unwrap())
}

fn sides(socket: &Arc<Socket>, way: Way, pool: &SlotPool) -> (KernelReceive, KernelTransmit) {
    let counters = Arc::new(SocketCounters::default());
    let receiver = Receiver::new(Arc::clone(socket), way, 32, 2000).unwrap();
    let sender = Sender::new(Arc::clone(socket), way, 32).unwrap();
    (
        KernelReceive::new(
            receiver,
            socket.local(),
            true,
            pool.clone(),
            Arc::clone(&counters),
        ),
        KernelTransmit::new(sender, pool.clone(), counters),
    )
}

#[test]
fn probes_are_returned_by_every_way_and_every_buffer_comes_back() {
    for way in [Way::Call, Way::Batch, Way::Ring] {
        let (near, far) = (open("127.0.0.1:0"), open("127.0.0.2:0"));
        let pools = [SlotPool::new(300, 2048), SlotPool::new(300, 2048)];
        let (mut rx, mut tx) = sides(&near, way, &pools[0]);
        let (far_rx, far_tx) = sides(&far, way, &pools[1]);
        let counters = ReflectCounters::new();
        let plan = ReflectPlan {
            own_mac: OwnMac::Any,
            only_ours: true,
            me: Addresses {
                mac: [2, 0, 0, 0, 0, 1],
                ips: vec![far.local().ip()],
            },
            burst: 32,
            hold_ticks: 1 << 40,
            takes_rest: true,
            counters: Arc::clone(&counters),
            own_counters: None,
        };
        let (totals, fill) = Slot::new();
        let mut task = Box::new(ReflectTask::new(
            far_rx,
            far_tx,
            plan,
            None::<Faults<SlotPool>>,
            fill,
        ));
        let template = Template::new(&TemplateSpec {
            src: near.local(),
            dst: far.local(),
            run: 9,
            dst_ports: far.local().port()..=far.local().port(),
            ..TemplateSpec::plain(128)
        })
        .unwrap();
        let mut frames = tx.batch();
        assert_eq!(tx.buffers().allocate(&mut frames, 32), 32);
        for index in 0..32 {
            let room = frames.write(index, template.frame_len());
            template.write(room, &BurstStamp::new(1, 0), index as u64, None);
        }
        assert_eq!(tx.transmit(&mut frames, 32), 32);
        let begun = Instant::now();
        let mut back = rx.batch();
        while back.len() < 32 && begun.elapsed() < Duration::from_secs(5) {
            task.poll(Ticks(1), Phase::Run);
            rx.receive(&mut back, 32);
        }
        assert_eq!((back.len(), counters.returned.get()), (32, 32), "{way:?}");
        for (index, (frame, _)) in back.each().enumerate() {
            let Class::Probe(probe) = classify(frame, 9, Verify::Payload) else {
                panic!("{way:?}: no probe")
            };
            assert_eq!(probe.sequence, index as u64, "{way:?}");
        }
        drop(back);
        task.finish();
        assert_eq!(totals.get().map(|totals| totals.held), Some(0));
        drop((rx, tx, frames));
        for pool in pools {
            assert_eq!(pool.free.len(), 300, "{way:?}");
        }
    }
}

#[test]
fn who_asks_gives_back_what_each_queue_received() {
    let (near, far) = (open("127.0.0.1:0"), open("127.0.0.2:0"));
    let pools = [0; 4].map(|_| SlotPool::new(64, 2048));
    let (first, mut tx) = sides(&near, Way::Call, &pools[0]);
    // As a port has it that does not reflect: other buffers to send from, and others again in its second queue.
    let (second, _) = sides(&far, Way::Call, &pools[1]);
    let (_, mut stranger) = sides(&far, Way::Call, &pools[2]);
    let template = |dst| {
        let spec = TemplateSpec {
            dst,
            dst_ports: dst.port()..=dst.port(),
            ..TemplateSpec::plain(128)
        };
        Template::new(&spec).unwrap()
    };
    for to in [near.local(), far.local()] {
        let mut buffers = pools[2].clone();
        for _ in 0..8 {
            assert!(send(&mut stranger, &mut buffers, template(to).bytes()));
        }
    }
    let (mut rx, mut buffers) = ([first, second], pools[3].clone());
    let seen = std::cell::Cell::new(0);
    let question = Question {
        frame: &[],
        me: &Addresses {
            mac: [2, 0, 0, 0, 0, 1],
            ips: Vec::new(),
        },
        waits: &[u64::MAX],
    };
    let count = |_: &[u8]| {
        seen.set(seen.get() + 1);
        (seen.get() == 16).then_some(())
    };
    let found = ask(
        &mut rx,
        (&mut tx, &mut buffers),
        &question,
        &count,
        || Ticks(0),
        &|| false,
    );
    assert_eq!(found, Some(()));
    drop((rx, tx, stranger));
    assert_eq!(pools.map(|pool| pool.free.len()), [64; 4]);
}
