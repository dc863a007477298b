//! The protocol under loom, which runs a program through every order in which its threads' loads and stores may be seen:
//! what is read is whole, in order and once, and what was overwritten is counted.

use std::sync::atomic::Ordering::{self, Relaxed};

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::{Cursor, Words, begin, close, commit, end, is_ended, is_held, is_there};
use crate::layout::{Geometry, SEGMENT_MIN, consumer, header, slot};

const GEOMETRY: Geometry = Geometry {
    segments: 2,
    segment_len: SEGMENT_MIN,
    preamble_len: 0,
};
/// Packets a segment, each committed by itself.
const EACH: u32 = 1;
/// Looks that are made beside the producer, before all that is left is taken.
const LOOKS: usize = 2;

/// The numbers of a ring or of a consumer's page, without the gaps between them.
struct Modelled(Vec<AtomicU64>);

impl Modelled {
    fn new() -> Self {
        Self((0..12).map(|_| AtomicU64::new(0)).collect())
    }

    fn at(&self, at: usize) -> &AtomicU64 {
        let index = match at {
            header::BEGUN => 0,
            header::ENDED | consumer::FIRST => 1,
            consumer::TAKEN => 2,
            consumer::LOST => 3,
            at => {
                let (number, field) = ((at - header::LEN) / slot::LEN, (at - header::LEN) % slot::LEN);
                4 + number * 4 + field / 8
            }
        };
        &self.0[index]
    }
}

impl Words for Modelled {
    fn load(&self, at: usize, order: Ordering) -> u64 {
        self.at(at).load(order)
    }

    fn store(&self, at: usize, value: u64, order: Ordering) {
        self.at(at).store(value, order);
    }

    fn fence(&self, order: Ordering) {
        loom::sync::atomic::fence(order);
    }
}

/// Where packets lie: each is a number, that among all of the ring.
trait Data: Send + Sync + 'static {
    const IS_LOSSLESS: bool;
    fn new() -> Self;
    fn write(&self, place: usize, value: u64);
    fn read(&self, place: usize) -> u64;
}

const PLACES: usize = GEOMETRY.segments as usize * EACH as usize;

/// Read in place: loom fails where somebody writes meanwhile.
struct InPlace(Vec<UnsafeCell<u64>>);

// SAFETY: the ring's protocol keeps readers and the writer apart, and loom checks that it does.
unsafe impl Sync for InPlace {}

impl Data for InPlace {
    const IS_LOSSLESS: bool = true;

    fn new() -> Self {
        Self((0..PLACES).map(|_| UnsafeCell::new(u64::MAX)).collect())
    }

    fn write(&self, place: usize, value: u64) {
        // SAFETY: loom fails the test where another thread has the cell.
        self.0[place].with_mut(|cell| unsafe { *cell = value });
    }

    fn read(&self, place: usize) -> u64 {
        // SAFETY: as above.
        self.0[place].with(|cell| unsafe { *cell })
    }
}

/// Copied, word by word, while somebody may write.
struct Copied(Vec<AtomicU64>);

impl Data for Copied {
    const IS_LOSSLESS: bool = false;

    fn new() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    fn write(&self, place: usize, value: u64) {
        self.0[place].store(value, Relaxed);
    }

    fn read(&self, place: usize) -> u64 {
        self.0[place].load(Relaxed)
    }
}

struct Model<D> {
    ring: Modelled,
    page: Modelled,
    data: D,
}

fn place(number: u64, packet: usize) -> usize {
    (number % u64::from(GEOMETRY.segments)) as usize * EACH as usize + packet
}

/// Writes segments as the producer does, until one is full; returns the packets.
fn produce<D: Data>(model: &Model<D>, segments: u64) -> u64 {
    let mut packets = 0;
    for number in 0..segments {
        let released = model.page.load(consumer::RELEASED, Ordering::Acquire);
        if D::IS_LOSSLESS && is_held(released, &GEOMETRY, number) {
            break;
        }
        begin(&model.ring, &GEOMETRY, number, packets);
        for packet in 0..EACH {
            model.data.write(place(number, packet as usize), packets);
            packets += 1;
            commit(&model.ring, &GEOMETRY, number, (packet + 1, 0));
        }
        close(&model.ring, &GEOMETRY, number);
    }
    end(&model.ring);
    packets
}

/// Reads as a consumer does.
struct Reader {
    cursor: Cursor,
    /// The packet that is to come next, unless some are lost.
    next: u64,
    taken: u64,
}

impl Reader {
    /// One look; whether anything was there.
    fn look<D: Data>(&mut self, model: &Model<D>) -> bool {
        let look = self.cursor.look(&model.ring, &model.page);
        let Some(look) = look.expect("nothing is damaged") else {
            return false;
        };
        let places = (look.taken..look.packets).map(|packet| place(look.number, packet));
        let values: Vec<u64> = places.map(|place| model.data.read(place)).collect();
        if !D::IS_LOSSLESS && !is_there(&model.ring, &GEOMETRY, look.number) {
            return true;
        }
        self.cursor.took(&model.page, &look);
        for value in values {
            assert!(value >= self.next && value != u64::MAX, "whole, and in order");
            assert!(value == self.next || !D::IS_LOSSLESS, "none is left out");
            self.next = value + 1;
            self.taken += 1;
        }
        true
    }
}

/// A producer of so many segments, and a consumer beside it.
fn check<D: Data>(segments: u64) {
    let mut builder = Builder::new();
    // Threads are taken off at most so often against their will, which is where such faults are found.
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let model = Arc::new(Model {
            ring: Modelled::new(),
            page: Modelled::new(),
            data: D::new(),
        });
        let mut reader = Reader {
            cursor: Cursor::new(GEOMETRY, &model.page, D::IS_LOSSLESS),
            next: 0,
            taken: 0,
        };
        let beside = Arc::clone(&model);
        let producer = thread::spawn(move || produce(&beside, segments));
        for _ in 0..LOOKS {
            let is_over = is_ended(&model.ring);
            let found = reader.look(&model);
            // Asked before: nothing can come after it.
            assert!(!is_over || found || !reader.look(&model));
        }
        let written = producer.join().expect("the producer");
        while reader.look(&model) {}
        let lost = model.page.load(consumer::LOST, Relaxed);
        assert_eq!(model.page.load(consumer::TAKEN, Relaxed), reader.taken);
        assert_eq!(reader.taken + lost, written, "every packet is taken or counted");
        assert!(lost == 0 || !D::IS_LOSSLESS);
    });
}

#[test]
fn a_lossless_consumer_is_never_overwritten() {
    check::<InPlace>(3);
}

#[test]
fn a_lossy_consumer_takes_nothing_torn() {
    check::<Copied>(3);
}
