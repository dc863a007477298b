//! Whether somebody else had our cores while trials lost packets: then the path may carry more than was found.

use measure::Note;
use measure::units::format_duration;
use report::number::counted;

use super::journal::Line;

/// A worker that did not poll for this long may have cost what a trial lost, ns.
const DISTURBED_NS: u64 = 1_000_000;

/// Trials that lost packets on the path while somebody else had our cores.
#[derive(Default)]
pub struct Disturbance {
    /// Trials with loss on the path.
    lossy: u64,
    /// Of those, the ones in which a worker did not poll for `DISTURBED_NS`.
    disturbed: u64,
    /// The longest such time, and the trial.
    worst: (u64, u64),
}

impl Disturbance {
    /// Takes in one more trial.
    pub fn look(&mut self, number: u64, line: &Line) {
        if line.trial.lost.path == 0 {
            return;
        }
        self.lossy += 1;
        if line.pause_ns >= DISTURBED_NS {
            self.disturbed += 1;
            self.worst = self.worst.max((line.pause_ns, number));
        }
    }

    /// What is to be said of it.
    pub fn note(&self) -> Option<Note> {
        (self.disturbed > 0).then(|| {
            let text = format!(
                "of {} that lost packets, {} had a core of ours away for a millisecond or longer (trial {}: {}): what was lost then may be this machine's doing, and the path may carry more; `dropless noise` names who",
                counted(self.lossy, "trial"),
                self.disturbed,
                self.worst.1,
                format_duration(self.worst.0)
            );
            Note::new("our_cores_were_away", text)
        })
    }
}
