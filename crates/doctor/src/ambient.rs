//! What anybody who measures on this machine should know before the first packet; quick to find out.

use std::path::PathBuf;

use crate::Remedy;
use host::{Fix, Sys, Warning, cores, hugepages};

const GOVERNORS: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// The warnings that concern every run, whatever its ports.
pub fn ambient(sys: &Sys) -> Vec<Warning> {
    [
        no_hugepages(sys),
        clocksource(sys),
        one_core(sys),
        quota(sys),
        governor(sys),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn no_hugepages(sys: &Sys) -> Option<Warning> {
    (hugepages::free_bytes(sys, None) == 0).then(|| {
        let fix = hugepages::check(sys, "", hugepages::MINIMUM_BYTES, None).err().map(|problem| *problem.fix);
        let text = "no huge pages are free: memory comes from ordinary pages (embedded mode), NIC ports will not start";
        Warning { fix, ..Warning::new("no-hugepages", text) }
    })
}

fn clocksource(sys: &Sys) -> Option<Warning> {
    let current = sys.text(format!("{CLOCKSOURCE}/current_clocksource"))?;
    if current == "tsc" || !cfg!(target_arch = "x86_64") {
        return None;
    }
    let text = format!(
        "the kernel's clock source is {current}, not tsc: it may consider the TSC unreliable, and reading the time is slow"
    );
    let available = sys
        .text(format!("{CLOCKSOURCE}/available_clocksource"))
        .unwrap_or_default();
    let fix = if available.split_whitespace().any(|name| name == "tsc") {
        Remedy::write(format!("{CLOCKSOURCE}/current_clocksource"), "tsc", current).fix
    } else {
        Fix::advice("boot with tsc=reliable, if the TSC is known to be reliable").persistent()
    };
    Some(Warning::new("clocksource", text).with_fix(fix))
}

fn one_core(sys: &Sys) -> Option<Warning> {
    (cores::allowed(sys).len() == 1).then(|| {
        let text = "only one core may be used: workers share it with everything else, so rates and latencies say little about the port";
        Warning::new("one-core", text)
    })
}

/// A quota on CPU time stops a polling thread in mid-run.
fn quota(sys: &Sys) -> Option<Warning> {
    let (file, limit) = cpu_limit(sys)?;
    let (quota, period) = limit.split_once(' ').unwrap_or((limit.as_str(), "100000"));
    let text = format!("CPU time is limited to {quota} us in {period} us: polling workers will be stopped");
    let lift = Remedy::write(file.display().to_string(), "max", &limit);
    Some(Warning::new("cpu-quota", text).with_fix(lift.fix))
}

/// The `cpu.max` (cgroup v2) that limits this process, and its value.
pub(crate) fn cpu_limit(sys: &Sys) -> Option<(PathBuf, String)> {
    host::cgroup_folders(sys, "cpu").iter().find_map(|folder| {
        let file = folder.join("cpu.max");
        let limit = sys.text(&file).filter(|text| !text.starts_with("max"))?;
        Some((file, limit))
    })
}

fn governor(sys: &Sys) -> Option<Warning> {
    let slow = cores::allowed(sys).iter().find_map(|core| {
        let file = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor");
        sys.text(file).filter(|governor| governor != "performance")
    })?;
    let text =
        format!("the frequency governor is {slow}, not performance: rates vary with the core's frequency");
    let fix = Fix::one(format!("echo performance | tee {GOVERNORS} > /dev/null"))
        .undone_by([format!("echo {slow} | tee {GOVERNORS} > /dev/null")]);
    Some(Warning::new("governor", text).with_fix(fix))
}
