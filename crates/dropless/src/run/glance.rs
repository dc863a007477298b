//! The glance before a run: the worst of what can be found without waiting, a line each.

use std::fmt::Write as _;

use doctor::Finding;
use host::cores::{Core, CoreSet};
use host::{PortUri, Sys};
use report::RunDir;
use report::out::Console;
use report::rundir::file;
use serde::Serialize;

/// Version of what the run directory keeps.
const VERSION: u32 = 1;
/// Whoever wants more asks the doctor.
const SHOWN: usize = 3;

/// What the run directory keeps of the glance.
#[derive(Serialize)]
struct Kept<'f> {
    version: u32,
    workers: &'f str,
    findings: &'f [Finding],
}

/// Tells on standard error what may cost the coming run packets, and keeps it with the run. It fails nothing.
pub fn tell(console: Console, workers: &[usize], ports: &[PortUri], dir: &RunDir) {
    let workers: CoreSet = workers.iter().map(|core| Core(*core as u32)).collect();
    let list = workers.to_string();
    let findings = doctor::glance(&Sys::live(), workers, ports);
    let kept = Kept {
        version: VERSION,
        workers: &list,
        findings: &findings,
    };
    let _ = dir.write_json(file::DOCTOR, &kept);
    if console.quiet {
        return;
    }
    for line in lines(&findings, &list) {
        console.error(&line);
    }
}

/// The lines; the last one names the doctor where there is more.
pub(crate) fn lines(findings: &[Finding], workers: &str) -> Vec<String> {
    let more = findings.len().saturating_sub(SHOWN);
    let mut lines: Vec<String> = findings.iter().take(SHOWN).map(line).collect();
    if let Some(last) = lines.last_mut().filter(|_| more > 0) {
        let _ = write!(last, " ({more} more: dropless doctor --cores {workers})");
    }
    lines
}

fn line(finding: &Finding) -> String {
    let mut line = format!("doctor: {}", finding.says);
    if let Some(remedy) = finding.remedies.first() {
        // Many interrupts are many commands: one shows how it goes, the doctor has them all.
        let shown = match remedy.fix.commands.as_slice() {
            [first, rest @ ..] if !rest.is_empty() => format!("{first}, and {} like it", rest.len()),
            _ => remedy.fix.to_string(),
        };
        let _ = write!(line, "; fix ({}): {shown}", remedy.when);
    }
    line
}
