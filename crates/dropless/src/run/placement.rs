//! Which cores the workers get, and which one the control thread keeps.

use anyhow::Result;
use host::Sys;
use host::cores::{self, CoreSet};
use host::partition::{self, CgroupHome, PartitionStay};
use measure::Note;

use crate::plan::MachinePlan;

/// Cores for `wanted` workers: the user's, or chosen; and what to tell about the choice.
pub fn worker_cores(
    plan: &MachinePlan,
    wanted: usize,
    node: Option<u32>,
) -> Result<(Vec<usize>, Option<Note>)> {
    let sys = Sys::live();
    if !plan.cores.is_empty() {
        return Ok((plan.cores.iter().map(|core| core.0 as usize).collect(), None));
    }
    let allowed = cores::allowed(&sys).len().max(1);
    let choice = cores::pick(&sys, wanted.min(allowed), node)?;
    let list: Vec<usize> = choice.workers.iter().map(|core| core.0 as usize).collect();
    let told = choice.shared.then(|| {
        let cores = list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Note::new(
            "every_core_used",
            format!("workers use every core of this machine ({cores}): the kernel and this display take turns with them"),
        )
    });
    Ok((list, told))
}

/// Remembers the cgroup of this process, which goes back there when the result is dropped: after its workers have ended.
pub fn home() -> Option<CgroupHome> {
    partition::home(&Sys::live())
}

/// Moves this thread into the partition of `dropless tune`, where one of these cores is in it: what it starts there
/// stays. It comes back when the result is dropped, with its affinity forgotten.
pub fn visit(workers: &[usize]) -> Result<Option<PartitionStay>> {
    let cores: CoreSet = workers.iter().map(|core| cores::Core(*core as u32)).collect();
    Ok(partition::enter(&Sys::live(), &cores)?)
}

/// Keeps the control thread off the workers' cores where there is another.
pub fn leave_to_workers(workers: &[usize]) {
    let allowed = cores::allowed(&Sys::live());
    let taken: CoreSet = workers.iter().map(|core| cores::Core(*core as u32)).collect();
    if let Some(core) = allowed.without(&taken).iter().next() {
        // Only comfort: where it is refused, the workers share their core with a thread that mostly sleeps.
        let _ = dpdk::pin_to_core(core.0 as usize);
    }
}
