//! Lists of cores, and the choice of workers.

use crate::fixture::Fixture;
use host::Sys;
use host::cores::{Core, CoreSet, Polled, allowed, check, pick, polled};
use host::threads::{Thread, is_real_time, threads};
use proptest::prelude::*;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn set(text: &str) -> CoreSet {
    text.parse().unwrap()
}

fn numbers(cores: &[Core]) -> Vec<u32> {
    cores.iter().map(|core| core.0).collect()
}

#[test]
fn lists_read_and_print_as_the_kernel_does() {
    for text in ["", "0", "0-3,5", "1,3,5-7", "0,1"] {
        assert_eq!(set(text).to_string(), text);
    }
    assert_eq!(set("3,1-2,2"), set("1-3"));
    for text in ["a", "1-", "-1", "3-1", "1,,2", "9999", "0-4294967295"] {
        let error = text.parse::<CoreSet>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("invalid core list '{text}'; write cores as 0-3,5")),
            "{error}"
        );
    }
}

#[test]
fn the_highest_cores_work_and_the_lowest_keeps_the_house() {
    let machine = Fixture::new();
    let choice = pick(&machine.sys, 3, None, &[]).unwrap();
    assert_eq!(
        (numbers(&choice.workers), choice.housekeeping, choice.shared),
        (vec![7, 6, 5], Core(0), false)
    );
    let all = pick(&machine.sys, 8, None, &[]).unwrap();
    assert_eq!((numbers(&all.workers).last(), all.shared), (Some(&0), true));
    let line = pick(&machine.sys, 9, None, &[]).unwrap_err().to_string();
    assert!(
        line.contains("9 workers need a core each, and 8 may be used (0-7)"),
        "{line}"
    );
}

/// A hybrid processor has its weak cores last.
#[test]
fn strong_cores_come_before_weak_ones() {
    let picked =
        |machine: &Fixture, workers| numbers(&pick(&machine.sys, workers, None, &[]).unwrap().workers);
    let capacities = |machine: &Fixture, of_five, of_others| {
        for core in 0..8 {
            let capacity = if core == 5 { of_five } else { of_others };
            let file = format!("/sys/devices/system/cpu/cpu{core}/cpu_capacity");
            machine.write(&file, capacity);
        }
    };
    let arm = Fixture::new();
    capacities(&arm, "1024", "600");
    assert_eq!(picked(&arm, 3), [5, 7, 6]);
    let x86 = Fixture::new();
    x86.write("/sys/devices/cpu_atom/cpus", "4-7\n");
    assert_eq!(picked(&x86, 4), [3, 2, 1, 7]);
    // With SMT all have the same; without it those of a kind differ.
    capacities(&x86, "1024", "1024");
    assert_eq!(picked(&x86, 4), [3, 2, 1, 7]);
    capacities(&x86, "700", "600");
    assert_eq!(picked(&x86, 5), [3, 2, 1, 5, 7]);
}

#[test]
fn what_others_poll_comes_last() {
    let machine = Fixture::new();
    let numbers = |workers| {
        let choice = pick(&machine.sys, workers, None, &polled(&machine.sys)).unwrap();
        (numbers(&choice.workers), choice.shared)
    };
    machine.thread(70, "R", "7", 0x40_0000);
    assert_eq!(numbers(2), (vec![6, 5], false));
    // Rather beside the house than beside a poller.
    for core in [1, 2, 4, 5, 6] {
        machine.thread(80 + core, "R", &core.to_string(), 0x40_0000);
    }
    assert_eq!(numbers(2), (vec![3, 0], true));
    assert_eq!(numbers(3), (vec![3, 0, 7], true));
    machine.thread(80, "R", "0", 0x40_0000);
    assert_eq!(numbers(2), (vec![3, 7], false));
}

#[test]
fn a_poller_is_a_thread_that_runs_and_may_run_nowhere_else() {
    let machine = Fixture::new();
    machine.thread(70, "R", "5", 0x40_0000);
    machine.thread(71, "S", "4", 0x40_0000);
    machine.thread(72, "R", "2-3", 0x40_0000);
    machine.thread(73, "R", "6", 0x20_0040);
    let found = polled(&machine.sys);
    let [only] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (only.core, only.by.process, &only.by.name[..]),
        (Core(5), 70, "a) b")
    );
    let known: Vec<Thread> = threads(&machine.sys).collect();
    assert_eq!(known.len(), 4);
    assert!(known[3].is_kernel && !known[0].is_kernel && !known[0].is_real_time);
    // Whoever shares the only core that we may run on is not set apart from anybody.
    machine.process("000001ffffffffff", "5");
    assert_eq!(polled(&machine.sys).len(), 0);
}

/// A shell that does this again and again on one core, until it is dropped: also where the test fails, or is killed.
struct Loop(Child);

impl Loop {
    fn on(core: Core, does: &str) -> Self {
        let script = format!("while :; do {does}; done");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "taskset", "-c", &core.to_string()]);
        command.args(["sh", "-c", &script]);
        Self(command.spawn().expect("setpriv starts"))
    }

    fn is_among(&self, found: &[Polled]) -> bool {
        found.iter().any(|polled| polled.by.process == self.0.id())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One that is awake for half of the time is seen running in every other look.
#[test]
fn who_often_waits_polls_no_core() {
    let sys = Sys::live();
    let cores: Vec<Core> = allowed(&sys).iter().take(2).collect();
    let [first, second] = cores[..] else {
        return crate::skip::skip("needs two cores");
    };
    let (polls, waits) = (Loop::on(first, ":"), Loop::on(second, "sleep 0.001"));
    // Until it has been started and pinned.
    let begun = Instant::now();
    while !polls.is_among(&polled(&sys)) && begun.elapsed() < Duration::from_secs(30) {}
    let looks: Vec<_> = (0..50).map(|_| polled(&sys)).collect();
    assert!(looks.iter().all(|found| polls.is_among(found)), "{looks:?}");
    assert!(!looks.iter().any(|found| waits.is_among(found)), "{looks:?}");
}

#[test]
fn a_real_time_class_is_seen() {
    let machine = Fixture::new();
    assert!(!is_real_time(&machine.sys));
    let stat = |policy: u32| {
        let fields = format!("R 1 1 1 0 -1 0{} {policy} 0 0 0 0 0 0 0 0 0 0 0", " 0".repeat(31));
        machine.write("/proc/self/stat", &format!("70 (a) b) {fields}\n"));
        is_real_time(&machine.sys)
    };
    // As `sched.h` numbers them: other, fifo, rr, batch, idle, deadline.
    assert_eq!(
        [0, 1, 2, 3, 5, 6].map(stat),
        [false, true, true, false, false, true]
    );
}

#[test]
fn isolated_cores_are_allowed_and_come_first() {
    let machine = Fixture::new();
    machine.write("/sys/devices/system/cpu/isolated", "2-3\n");
    // The kernel leaves isolated cores out of the affinity it hands out.
    machine.process("000001ffffffffff", "0-1,4-7");
    assert_eq!(allowed(&machine.sys), set("0-7"));
    assert_eq!(
        numbers(&pick(&machine.sys, 3, None, &[]).unwrap().workers),
        [3, 2, 7]
    );
    // Somebody who narrowed the affinity meant it.
    machine.process("000001ffffffffff", "0,4-5");
    assert_eq!(allowed(&machine.sys), set("0,4-5"));
}

#[test]
fn sibling_threads_come_last_and_far_nodes_after_near_ones() {
    let machine = Fixture::new();
    for core in 0..8 {
        let (low, high) = (core % 4, core % 4 + 4);
        let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        machine.write(&file, &format!("{low},{high}\n"));
    }
    // 4 shares its physical core with 0, the housekeeper; 1 to 3 with 5 to 7.
    assert_eq!(
        numbers(&pick(&machine.sys, 7, None, &[]).unwrap().workers),
        [7, 6, 5, 4, 3, 2, 1]
    );
    assert_eq!(
        numbers(&pick(&machine.sys, 3, None, &[]).unwrap().workers),
        [7, 6, 5]
    );
    machine.write("/sys/devices/system/node/node0/cpulist", "0-3\n");
    assert_eq!(
        numbers(&pick(&machine.sys, 3, Some(0), &[]).unwrap().workers),
        [3, 2, 1]
    );
}

#[test]
fn cores_asked_for_must_be_there_on_and_allowed() {
    let machine = Fixture::new();
    check(&machine.sys, &set("1-3")).unwrap();
    machine.write("/sys/devices/system/cpu/online", "0-5\n");
    machine.process("000001ffffffffff", "0-3");
    let line = |text: &str| check(&machine.sys, &set(text)).unwrap_err().to_string();
    assert_eq!(
        line("2,9"),
        "cores 2,9: this machine has no core 9 (it has 0-7); fix: choose from --cores 0-3"
    );
    assert_eq!(
        line("6"),
        "cores 6: core 6 is switched off; fix: echo 1 > /sys/devices/system/cpu/cpu6/online"
    );
    assert_eq!(
        line("3-4"),
        "cores 3,4: core 4 is outside this process's affinity or cpuset (0-3); fix: taskset -pc 0-4 $$"
    );
    let file = "/sys/fs/cgroup/a/cpuset.cpus.effective";
    machine.write("/proc/self/cgroup", "0::/a/b\n");
    machine.write(file, "0-4\n");
    assert!(line("3,4").contains("fix: taskset"), "the cpuset has it");
    machine.write(file, "0-3\n");
    assert!(
        line("3,4").contains(&format!(
            "core 4 is outside this process's cpuset ({file}: 0-3); fix: choose from --cores 0-3"
        )),
        "{}",
        line("3,4")
    );
    assert!(line("").contains("the list is empty"));
}

/// As in a container whose /sys is masked.
#[test]
fn where_nobody_tells_which_cores_there_are_the_affinity_decides() {
    let machine = Fixture::new();
    machine.remove("/sys/devices/system/cpu");
    check(&machine.sys, &set("1-3")).unwrap();
    let line = check(&machine.sys, &set("3,8")).unwrap_err().to_string();
    assert!(
        line.contains("core 8 is outside this process's affinity or cpuset (0-7)"),
        "{line}"
    );
}

/// The C library's sets of cores have 1024 places.
#[test]
fn no_worker_goes_where_no_thread_can_be_pinned() {
    let machine = Fixture::new();
    machine.write("/sys/devices/system/cpu/online", "0-1100\n");
    machine.write("/sys/devices/system/cpu/present", "0-1100\n");
    machine.process("000001ffffffffff", "0-1100");
    assert_eq!(allowed(&machine.sys), set("0-1023"));
    assert_eq!(
        numbers(&pick(&machine.sys, 2, None, &[]).unwrap().workers),
        [1023, 1022]
    );
    check(&machine.sys, &set("1023")).unwrap();
    let line = check(&machine.sys, &set("1023-1025")).unwrap_err().to_string();
    assert_eq!(
        line,
        "cores 1023-1025: no thread can be pinned to cores 1024,1025: the C library's sets of cores end below 1024 (CPU_SETSIZE); fix: choose from --cores 0-1023"
    );
}

proptest! {
    #[test]
    fn any_set_prints_so_that_it_reads_back(cores in prop::collection::btree_set(0u32..300, 0..40)) {
        let cores: CoreSet = cores.into_iter().map(Core).collect();
        prop_assert_eq!(cores.to_string().parse::<CoreSet>(), Ok(cores));
    }

    #[test]
    fn no_list_panics(text in "[0-9,\\- ]{0,12}") {
        let _ = text.parse::<CoreSet>();
    }
}

#[test]
fn workers_are_distinct_and_as_many_as_asked_for() {
    let machine = Fixture::new();
    for workers in 0..=8 {
        let choice = pick(&machine.sys, workers, None, &[]).unwrap();
        let distinct: CoreSet = choice.workers.iter().copied().collect();
        assert_eq!(distinct.len(), workers);
        assert_eq!(choice.shared, distinct.contains(choice.housekeeping));
    }
}
