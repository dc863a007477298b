//! Makes the changes of a plan, one after the other. One that is refused does not stop the others.

use super::journal::Journal;
use super::kernel::Kernel;
use super::operator::{Operator, Outcome};
use super::plan::Plan;
use super::step::{Action, Step};
use host::Problem;

/// Makes the changes; `told` hears of each as it is done. An error is one of the journal's: then nothing more is done.
pub fn apply(
    kernel: &dyn Kernel,
    plan: &Plan,
    journal: &mut Journal,
    told: &mut dyn FnMut(&Step, &Outcome),
) -> Result<Vec<Outcome>, Problem> {
    let mut operator = Operator { kernel, journal };
    let mut outcomes = Vec::new();
    for step in &plan.steps {
        let outcome = take(&mut operator, &step.action)?;
        told(step, &outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn take(operator: &mut Operator<'_>, action: &Action) -> Result<Outcome, Problem> {
    match action {
        Action::Write(change) => operator.value(&change.path, &change.value, change.effective.as_deref()),
        Action::Text { path, text, service } => {
            if let Some((directory, _)) = path.rsplit_once('/') {
                if let Err(error) = operator.directory(directory)? {
                    return Ok(Outcome::refused(error.to_string()));
                }
            }
            operator.file(path, text, service.as_deref())
        }
        Action::Partition { cores } => operator.partition(cores),
        Action::Bind { address, driver } => operator.bind(*address, driver),
        Action::Load { module } => operator.module(module),
    }
}
