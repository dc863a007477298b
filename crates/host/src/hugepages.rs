//! Huge pages: how many are free, per size and NUMA node, and the command that reserves more.

use crate::cgroups::{Room, room};
use crate::{Fix, Problem, Sys, cores};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a NIC port needs at the least, in bytes: EAL's own memory and one small pool.
pub const MINIMUM_BYTES: u64 = 256 << 20;
const NODES: &str = "/sys/devices/system/node";
/// What mends a limit of huge pages.
pub const RAISE: &str =
    "have whoever made the cgroup raise that limit (of a Kubernetes pod: resources.limits, hugepages-2Mi)";

/// The huge pages of one size on one NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// NUMA node.
    pub node: u32,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Pages reserved.
    pub total: u64,
    /// Pages nobody uses.
    pub free: u64,
}

impl Pool {
    /// Free memory in bytes.
    pub fn free_bytes(&self) -> u64 {
        self.free * self.page_bytes
    }
}

/// Every size on every node, also where none are reserved.
pub fn pools(sys: &Sys) -> Vec<Pool> {
    let nodes = cores::numa_nodes(sys);
    let of_node = |node: &u32| pools_of(sys, *node, &format!("{NODES}/node{node}/hugepages"));
    let mut pools: Vec<Pool> = nodes.iter().flat_map(of_node).collect();
    // Kernels without NUMA have no nodes, only the sums.
    if nodes.is_empty() {
        pools = pools_of(sys, 0, "/sys/kernel/mm/hugepages");
    }
    pools.sort_by_key(|pool| (pool.node, pool.page_bytes));
    pools
}

fn pools_of(sys: &Sys, node: u32, directory: &str) -> Vec<Pool> {
    let pool = |name: String| {
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        let kib: u64 = kib.parse().ok()?;
        let count = |file: &str| sys.number(format!("{directory}/{name}/{file}")).unwrap_or(0);
        Some(Pool {
            node,
            page_bytes: kib << 10,
            total: count("nr_hugepages"),
            free: count("free_hugepages"),
        })
    };
    sys.names(directory).into_iter().filter_map(pool).collect()
}

/// Free huge memory in bytes that this process may take, on one node or on all.
pub fn free_bytes(sys: &Sys, node: Option<u32>) -> u64 {
    let sizes = sizes(sys, node).into_iter();
    let least = sizes.map(|(size, free)| room_for(sys, size).map_or(free, |room| free.min(room.bytes)));
    least.sum()
}

/// Of each size of page the free memory, on one node or on all.
fn sizes(sys: &Sys, node: Option<u32>) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    let pools = pools(sys).into_iter();
    for pool in pools.filter(|pool| node.is_none_or(|node| pool.node == node)) {
        *sizes.entry(pool.page_bytes).or_default() += pool.free_bytes();
    }
    sizes
}

/// What the cgroups of this process leave it of pages of this size. Who takes more is killed when it touches them, or is refused
/// before, where the limit is one of reservations.
fn room_for(sys: &Sys, page_bytes: u64) -> Option<Room> {
    let size = match page_bytes >> 10 {
        kib if kib >= 1 << 20 => format!("{}GB", kib >> 20),
        kib if kib >= 1 << 10 => format!("{}MB", kib >> 10),
        kib => format!("{kib}KB"),
    };
    let files = [
        ("max", "current"),
        ("rsvd.max", "rsvd.current"),
        ("limit_in_bytes", "usage_in_bytes"),
        ("rsvd.limit_in_bytes", "rsvd.usage_in_bytes"),
    ];
    let files = files.map(|(limit, taken)| {
        (
            format!("hugetlb.{size}.{limit}"),
            format!("hugetlb.{size}.{taken}"),
        )
    });
    room(sys, "hugetlb", &files, |_| 0)
}

/// The limit of a cgroup that keeps this process from `bytes` of huge memory, on one node or on all, however many pages are
/// reserved or free.
pub fn forbidden(sys: &Sys, bytes: u64, node: Option<u32>) -> Option<Room> {
    let sizes = sizes(sys, node);
    let free: u64 = sizes.values().sum();
    let each: Vec<Option<Room>> = sizes.keys().map(|size| room_for(sys, *size)).collect();
    let may_take = each
        .iter()
        .map(|room| room.as_ref().map_or(u64::MAX, |room| room.bytes));
    let may_take = may_take.fold(0, u64::saturating_add);
    let is_it = free_bytes(sys, node) < bytes && (free >= bytes || may_take < bytes);
    let each = each.into_iter().flatten().filter(|_| is_it);
    each.min_by_key(|room| room.bytes)
}

/// Whether `bytes` of huge memory are free (on `node`, where that matters) and mounted; `what` wants them.
pub fn check(sys: &Sys, what: &str, bytes: u64, node: Option<u32>) -> Result<(), Problem> {
    let pools = pools(sys);
    let node = node.filter(|node| pools.iter().any(|pool| pool.node == *node));
    let free = free_bytes(sys, node);
    if free < bytes {
        let place = node.map_or_else(String::new, |node| format!(" on NUMA node {node}"));
        let (wanted, free) = (bytes.div_ceil(1 << 20), free >> 20);
        if let Some(Room { file, .. }) = forbidden(sys, bytes, node) {
            let found = format!(
                "it needs {wanted} MiB of huge pages{place}, and this process's cgroup may take {free} MiB ({file})"
            );
            return Err(Problem::new(what, found, Fix::advice(RAISE)));
        }
        let found = format!("it needs {wanted} MiB of free huge pages{place}, and {free} MiB are free");
        return Err(Problem::new(what, found, reserve(&pools, bytes, node)));
    }
    if sys.mounts("hugetlbfs").is_empty() {
        let mount = "mount -t hugetlbfs hugetlbfs /dev/hugepages";
        let fix = Fix::all(["mkdir -p /dev/hugepages", mount])
            .undone_by(["umount /dev/hugepages"])
            .kept_by(["systemctl enable dev-hugepages.mount"]);
        let found = "it needs huge pages, and no hugetlbfs is mounted";
        return Err(Problem::new(what, found, fix));
    }
    Ok(())
}

/// Reserves so many 2 MiB pages (the smallest size there is) that `bytes` become free.
fn reserve(pools: &[Pool], bytes: u64, node: Option<u32>) -> Fix {
    let Some(Reservation { file, pages, total }) = reservation(pools, bytes, node) else {
        return Fix::kernel_with("CONFIG_HUGETLBFS");
    };
    // `vm.nr_hugepages` is the sum of all nodes, over which the kernel spreads it.
    let first = pools.first().map(|pool| pool.node);
    let keep = if pools.iter().any(|pool| Some(pool.node) != first) {
        let node = node.unwrap_or(0);
        format!("echo 'w {file} - - - - {pages}' > /etc/tmpfiles.d/80-hugepages-node{node}.conf")
    } else {
        format!("echo 'vm.nr_hugepages={pages}' > /etc/sysctl.d/80-hugepages.conf")
    };
    Fix::one(format!("echo {pages} > {file}"))
        .undone_by([format!("echo {total} > {file}")])
        .kept_by([keep])
}

/// Where pages are reserved, how many it takes, and how many it has.
#[derive(Debug)]
pub struct Reservation {
    /// The file to write to.
    pub file: String,
    /// What to write there.
    pub pages: u64,
    /// What it holds.
    pub total: u64,
}

/// What makes `bytes` free, in the smallest pages there are; `None` where the kernel has none.
pub fn reservation(pools: &[Pool], bytes: u64, node: Option<u32>) -> Option<Reservation> {
    let wanted = node.unwrap_or(0);
    let pool = pools
        .iter()
        .filter(|pool| pool.node == wanted)
        .min_by_key(|pool| pool.page_bytes)?;
    // Never fewer than somebody has reserved.
    let pages = pool.total - pool.free.min(pool.total) + bytes.div_ceil(pool.page_bytes);
    let pages = pages.max(pool.total);
    let kib = pool.page_bytes >> 10;
    let file = if pools.iter().any(|pool| pool.node != wanted) || node.is_some() {
        format!("{NODES}/node{wanted}/hugepages/hugepages-{kib}kB/nr_hugepages")
    } else {
        format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages")
    };
    let total = pool.total;
    Some(Reservation { file, pages, total })
}
