//! Huge pages per size and node.

use crate::fixture::Fixture;
use host::hugepages::{check, forbidden, free_bytes, pools, reservation};

#[test]
fn every_size_on_every_node() {
    let machine = Fixture::new();
    machine.hugepages(0, 1_048_576, 2, 1);
    machine.hugepages(1, 2048, 0, 0);
    let found: Vec<(u32, u64, u64)> = pools(&machine.sys)
        .iter()
        .map(|p| (p.node, p.page_bytes >> 20, p.free))
        .collect();
    assert_eq!(found, [(0, 2, 512), (0, 1024, 1), (1, 2, 0)]);
    assert_eq!(free_bytes(&machine.sys, None), 2 << 30);
    assert_eq!(free_bytes(&machine.sys, Some(1)), 0);
}

#[test]
fn the_fix_reserves_on_the_right_node_what_is_missing() {
    let machine = Fixture::new();
    machine.hugepages(1, 2048, 100, 20);
    check(&machine.sys, "x", 1 << 30, None).unwrap();
    check(&machine.sys, "x", 1 << 30, Some(0)).unwrap();
    let problem = check(&machine.sys, "x", 1 << 30, Some(1)).unwrap_err();
    assert_eq!(
        problem.found,
        "it needs 1024 MiB of free huge pages on NUMA node 1, and 40 MiB are free"
    );
    // 80 are in use, 512 must be free.
    let file = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(problem.fix.commands, [format!("echo 592 > {file}")]);
    assert_eq!(problem.fix.undo, [format!("echo 100 > {file}")]);
    let keep = format!("echo 'w {file} - - - - 592' > /etc/tmpfiles.d/80-hugepages-node1.conf");
    assert_eq!(problem.fix.make_persistent, [keep]);
}

#[test]
fn kernels_without_numa_and_without_mounts() {
    let machine = Fixture::new();
    machine.remove("/sys/devices/system/node");
    machine.write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0");
    machine.write("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0");
    let line = check(&machine.sys, "x", 1 << 21, None).unwrap_err().to_string();
    let keep = check(&machine.sys, "x", 1 << 21, None)
        .unwrap_err()
        .fix
        .make_persistent;
    assert_eq!(
        keep,
        ["echo 'vm.nr_hugepages=1' > /etc/sysctl.d/80-hugepages.conf"]
    );
    assert!(
        line.ends_with("fix: echo 1 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
        "{line}"
    );
    machine.write("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "1");
    machine.write("/proc/mounts", "proc /proc proc rw 0 0\n");
    let line = check(&machine.sys, "x", 1 << 21, None).unwrap_err().to_string();
    assert!(
        line.contains("no hugetlbfs is mounted; fix: mkdir -p /dev/hugepages && mount -t hugetlbfs"),
        "{line}"
    );
}

#[test]
fn what_is_reserved_is_never_given_back() {
    let machine = Fixture::new();
    machine.hugepages(1, 2048, 100, 90);
    let wanted = |mib: u64| {
        reservation(&pools(&machine.sys), mib << 20, Some(1))
            .unwrap()
            .pages
    };
    assert_eq!((wanted(2), wanted(180), wanted(200)), (100, 100, 110));
}

/// As in a pod that was given none: what is free on the machine is not for it.
#[test]
fn what_the_cgroup_forbids_is_not_free() {
    let machine = Fixture::new();
    machine.hugepages(0, 1_048_576, 2, 2);
    machine.write("/proc/self/cgroup", "0::/pod/it\n");
    let folder = "/sys/fs/cgroup/pod";
    machine.write(&format!("{folder}/hugetlb.1GB.max"), "0\n");
    machine.write(&format!("{folder}/it/hugetlb.2MB.max"), "max\n");
    machine.write(&format!("{folder}/it/hugetlb.2MB.rsvd.max"), "max\n");
    assert_eq!(free_bytes(&machine.sys, None), 1 << 30, "those of 2 MiB");
    assert_eq!(forbidden(&machine.sys, 1 << 30, None), None);
    machine.write(&format!("{folder}/hugetlb.2MB.max"), "536870912\n");
    machine.write(&format!("{folder}/hugetlb.2MB.current"), "134217728\n");
    assert_eq!(free_bytes(&machine.sys, None), 384 << 20);
    machine.write(&format!("{folder}/it/hugetlb.2MB.rsvd.max"), "0\n");
    machine.write(&format!("{folder}/it/hugetlb.2MB.rsvd.current"), "0\n");
    assert_eq!(free_bytes(&machine.sys, Some(0)), 0);
    let line = check(&machine.sys, "x", 1 << 21, Some(0))
        .unwrap_err()
        .to_string();
    assert!(
        line.starts_with("x: it needs 2 MiB of huge pages on NUMA node 0, and this process's cgroup may take 0 MiB (/sys/fs/cgroup/")
            && line.contains("hugepages-2Mi"),
        "{line}"
    );
    // None are free, and more could be.
    let elsewhere = Fixture::new();
    elsewhere.hugepages(0, 2048, 0, 0);
    assert_eq!(forbidden(&elsewhere.sys, 1, None), None);
}

/// As version 1 names it.
#[test]
fn limits_of_version_1_hold_as_well() {
    let machine = Fixture::new();
    machine.write("/proc/self/cgroup", "4:hugetlb:/docker/it\n");
    let folder = "/sys/fs/cgroup/hugetlb";
    machine.write(
        &format!("{folder}/hugetlb.2MB.limit_in_bytes"),
        "9223372036852678656\n",
    );
    assert_eq!(free_bytes(&machine.sys, None), 1 << 30);
    machine.write(&format!("{folder}/hugetlb.2MB.limit_in_bytes"), "2097152\n");
    machine.write(&format!("{folder}/hugetlb.2MB.usage_in_bytes"), "0\n");
    assert_eq!(free_bytes(&machine.sys, None), 2 << 20);
}
