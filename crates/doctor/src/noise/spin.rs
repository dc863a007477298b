//! A loop that does nothing but look at the clock: whatever takes its core shows as a stall.

use std::sync::atomic::{AtomicBool, Ordering};

use measure::bucket::{Bucket, SERVICE};

use super::attribute::Span;

/// The stalls that a loop saw, in a room that was made before it began.
#[derive(Debug)]
pub struct Stalls {
    seen: Vec<Span>,
    /// Stalls that found no room.
    pub dropped: u64,
    /// Of all of them, those without room among them: what waited at most had come in so many ticks, of a receiver that works off
    /// [`SERVICE`] times what comes.
    pub behind: f64,
    /// Looks at the clock.
    pub looks: u64,
    /// From when on it was due to look, to its last look, ticks.
    pub span: Span,
    /// The thread that looked.
    pub thread: u32,
}

impl Stalls {
    /// Room for `most` stalls, all of its memory touched.
    pub fn with_room(most: usize) -> Self {
        let nothing = Span {
            from: 0,
            to: 0,
            core: 0,
        };
        // What is all zeroes the allocator may leave to the kernel, which gives no memory before it is written to.
        let written = Span { from: 1, ..nothing };
        let mut seen = vec![written; most];
        seen.clear();
        Self {
            seen,
            dropped: 0,
            behind: 0.0,
            looks: 0,
            span: nothing,
            thread: 0,
        }
    }

    /// The stalls, in order.
    pub fn all(&self) -> &[Span] {
        &self.seen
    }

    /// Looks at the clock until `stop`, at least once, and notes every pair of looks that lie more than `threshold` ticks
    /// apart. `first` counts as a look: a core that was taken away then, or until `stop`, was away as at any other time. The
    /// caller has bound this thread to its core.
    pub fn spin(&mut self, first: u64, clock: fn() -> u64, threshold: u64, stop: &AtomicBool) {
        self.thread = nix::unistd::gettid().as_raw() as u32;
        let mut last = first;
        let mut time = Bucket::of_time(SERVICE);
        loop {
            // The flag is looked at rarely: its line is another core's.
            for _ in 0..256 {
                let now = clock();
                if now.saturating_sub(last) > threshold {
                    let [from, to] = [last, now].map(|at| at.saturating_sub(first) as f64);
                    time.stall(from, to);
                    self.behind = self.behind.max(time.waiting(to));
                    let stall = Span {
                        from: last,
                        to: now,
                        core: this_core(),
                    };
                    if self.seen.len() < self.seen.capacity() {
                        self.seen.push(stall);
                    } else {
                        self.dropped += 1;
                    }
                }
                last = now;
            }
            self.looks += 256;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self.span = Span {
            from: first,
            to: last,
            core: this_core(),
        };
    }
}

/// The core that this thread is on; needs no system call. `u32::MAX` where the C library cannot tell.
pub fn this_core() -> u32 {
    nix::sched::sched_getcpu().map_or(u32::MAX, |core| core as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    static STOP: AtomicBool = AtomicBool::new(false);
    const LOOKS: u64 = 1 << 16;

    /// Never twice the same; tells the loop to stop in time.
    fn clock() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(0);
        let now = NOW.fetch_add(1, Ordering::Relaxed);
        STOP.store(now >= LOOKS, Ordering::Relaxed);
        now
    }

    /// Page faults of this thread so far.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // proc(5): the name, in brackets, is the second field, and may have blanks; the tenth is `minflt`.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    /// An optimized build is the one to try: it makes allocations of what is all zeroes.
    #[test]
    fn a_room_has_its_memory_before_the_loop_begins() {
        let mut stalls = Stalls::with_room(LOOKS as usize);
        let before = faults();
        stalls.spin(0, clock, 0, &STOP);
        let during = faults() - before;
        assert_eq!(stalls.all().len(), LOOKS as usize);
        let pages = size_of_val(stalls.all()) / 4096;
        assert!(during * 10 < pages as u64, "{during} faults, {pages} pages");
    }

    #[test]
    fn all_are_known_together_also_those_that_found_no_room() {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        static STOP: AtomicBool = AtomicBool::new(false);
        // Away for 301 ticks first, and for 7,001 after 49 more.
        let clock = || {
            let look = LOOKS.fetch_add(1, Ordering::Relaxed);
            STOP.store(look >= 200, Ordering::Relaxed);
            look + if look < 50 { 0 } else { 300 } + if look < 100 { 0 } else { 7_000 }
        };
        let mut stalls = Stalls::with_room(1);
        stalls.spin(0, clock, 100, &STOP);
        assert_eq!((stalls.all().len(), stalls.dropped), (1, 1));
        let behind = 301.0 - 49.0 * (SERVICE - 1.0) + 7_001.0;
        assert!((stalls.behind - behind).abs() < 1e-6, "{}", stalls.behind);
    }

    #[test]
    fn a_clock_that_steps_back_is_no_stall() {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        static STOP: AtomicBool = AtomicBool::new(false);
        // Steps back once, and on by a stall once.
        let clock = || {
            let look = LOOKS.fetch_add(1, Ordering::Relaxed);
            STOP.store(look >= 200, Ordering::Relaxed);
            match look {
                0..50 => 10_000 + look,
                50..100 => 5_000 + look,
                _ => 6_000 + look,
            }
        };
        let mut stalls = Stalls::with_room(8);
        stalls.spin(10_000, clock, 100, &STOP);
        let seen: Vec<(u64, u64)> = stalls.all().iter().map(|stall| (stall.from, stall.to)).collect();
        assert_eq!(seen, [(5_099, 6_100)]);
    }

    #[test]
    fn a_core_that_was_away_all_the_time_was_taken() {
        let mut stalls = Stalls::with_room(1);
        stalls.spin(0, || 5_000, 100, &AtomicBool::new(true));
        let seen: Vec<u64> = stalls.all().iter().map(|stall| stall.ticks()).collect();
        assert_eq!((seen, stalls.span.ticks()), (vec![5_000], 5_000));
        assert!(stalls.looks > 0 && stalls.behind >= 5_000.0);
    }
}
