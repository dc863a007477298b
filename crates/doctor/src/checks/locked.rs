//! Locked memory: packet buffers must not be paged out, and a limit on locking keeps `AF_XDP` and DPDK from starting.

use crate::{Finding, Remedy, Subject, When};
use host::Capability;
use host::Fix;

const NAME: &str = "locked-memory";
const FILE: &str = "/proc/self/limits";
/// Enough for the buffers of a few queues.
const WANTED_BYTES: u64 = 64 << 20;

/// See the module.
pub fn check(subject: &Subject<'_>) -> Finding {
    let sys = subject.sys;
    if !sys.exists(FILE) {
        return Finding::unreadable(NAME, FILE);
    }
    let limit = sys.locked_memory_limit();
    let shown = limit.map_or("unlimited".to_owned(), |bytes| format!("{} KiB", bytes >> 10));
    let finding = Finding::of(NAME).read(FILE, &shown);
    let Some(limit) = limit.filter(|limit| *limit < WANTED_BYTES) else {
        return finding.good(format!("this process may lock enough memory ({shown})"));
    };
    if sys.has(Capability::IpcLock) {
        return finding.good("CAP_IPC_LOCK lets this process lock any amount of memory");
    }
    let wanted = WANTED_BYTES >> 20;
    let raise = Fix::one("sudo prlimit --pid $$ --memlock=unlimited")
        .undone_by([format!("sudo prlimit --pid $$ --memlock={limit}")])
        .kept_by(["echo '* - memlock unlimited' > /etc/security/limits.d/80-memlock.conf"]);
    finding
        .warning(format!(
            "this process may lock {shown}, and buffers need {wanted} MiB"
        ))
        .costs("xdp: ports do not start; DPDK's memory may be paged out")
        .remedy(Remedy::by_hand(When::Restart, raise))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fixture::Machine;

    const NAMES: [&str; 16] = [
        "cpu time",
        "file size",
        "data size",
        "stack size",
        "core file size",
        "resident set",
        "processes",
        "open files",
        "locked memory",
        "address space",
        "file locks",
        "pending signals",
        "msgqueue size",
        "nice priority",
        "realtime priority",
        "realtime timeout",
    ];

    fn limits(locked: &str) -> String {
        let row = |name: &&str| {
            let value = if *name == "locked memory" {
                locked
            } else {
                "unlimited"
            };
            let unit = if name.ends_with("priority") { "" } else { "units" };
            format!("{:<26}{value:<21}{value:<21}{unit:<10}\n", format!("Max {name}"))
        };
        let head = "Limit                     Soft Limit           Hard Limit           Units     \n";
        head.to_owned() + &NAMES.iter().map(row).collect::<String>()
    }

    #[test]
    fn the_limit_or_the_right_decides() {
        let verdict = |locked: &str, rights: &str| {
            let status = STATUS.replace("RIGHTS", rights);
            Machine::with(&[(FILE, &limits(locked)), ("/proc/self/status", &status)]).verdict(check)
        };
        assert_eq!(verdict("unlimited", "0000000000000000"), Verdict::Good);
        assert_eq!(verdict("65536", "0000000000000000"), Verdict::Warning);
        assert_eq!(verdict("65536", "000001ffffffffff"), Verdict::Good);
        assert_eq!(Machine::with(&[]).verdict(check), Verdict::CannotTell);
    }

    const STATUS: &str = "Name:\tdropless\nUmask:\t0022\nState:\tR (running)\nTgid:\t7\nNgid:\t0\nPid:\t7\nPPid:\t1\n\
        TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\nThreads:\t1\nSigQ:\t0/1\n\
        SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n\
        SigCgt:\t0000000000000000\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\tRIGHTS\n\
        CapBnd:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n";
}
