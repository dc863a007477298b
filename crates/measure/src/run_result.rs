//! What the results of all commands that move packets have in common.

use std::sync::LazyLock;

use crate::capture::CaptureSummary;
use crate::forward::ForwardSummary;
use crate::guard::GuardSummary;
use crate::note::Note;
use crate::replay::ReplaySummary;
use crate::result::{ClockSummary, Explanation, PoolSummary, PortSummary, QueueSummary, WorkerSummary};
use crate::summary::{ReflectSummary, Summary};
use crate::verdict::Validity;

/// The result of a run: whether it may be believed, and what carried its packets.
pub trait RunResult {
    /// The run directory.
    fn run(&self) -> &str;
    /// Whether the numbers may be believed.
    fn validity(&self) -> Validity;
    /// Why not; empty when valid.
    fn reasons(&self) -> &[Note];
    /// The process exit code.
    fn exit_code(&self) -> u8;
    /// How long it took, in seconds.
    fn duration_s(&self) -> f64;
    /// Per port.
    fn ports(&self) -> &[PortSummary];
    /// Per queue.
    fn queues(&self) -> &[QueueSummary];
    /// Per worker.
    fn workers(&self) -> &[WorkerSummary];
    /// The buffer pool.
    fn pool(&self) -> &PoolSummary;
    /// The clock.
    fn clock(&self) -> &ClockSummary;
    /// Who took the core; only with `--explain`.
    fn explanation(&self) -> Option<&Explanation>;
    /// What else the user should know.
    fn notes(&self) -> &[Note];
}

macro_rules! run_results {
    ($($summary:ty)*) => {$(
        impl RunResult for $summary {
            fn run(&self) -> &str {
                &self.run
            }

            fn validity(&self) -> Validity {
                self.verdict
            }

            fn reasons(&self) -> &[Note] {
                &self.reasons
            }

            fn exit_code(&self) -> u8 {
                // The type's own.
                <$summary>::exit_code(self)
            }

            fn duration_s(&self) -> f64 {
                self.duration_s
            }

            fn ports(&self) -> &[PortSummary] {
                &self.ports
            }

            fn queues(&self) -> &[QueueSummary] {
                &self.queues
            }

            fn workers(&self) -> &[WorkerSummary] {
                &self.workers
            }

            fn pool(&self) -> &PoolSummary {
                &self.pool
            }

            fn clock(&self) -> &ClockSummary {
                &self.clock
            }

            fn explanation(&self) -> Option<&Explanation> {
                self.explanation.as_ref()
            }

            fn notes(&self) -> &[Note] {
                &self.notes
            }
        }
    )*};
}

run_results! { Summary ReflectSummary CaptureSummary ReplaySummary ForwardSummary }

/// What carried the packets of a guard that has no ports: nothing of ours.
static NOTHING: LazyLock<ForwardSummary> = LazyLock::new(ForwardSummary::default);

impl GuardSummary {
    fn carrier(&self) -> &ForwardSummary {
        self.forward.as_deref().unwrap_or(&NOTHING)
    }
}

impl RunResult for GuardSummary {
    fn run(&self) -> &str {
        &self.run
    }

    fn validity(&self) -> Validity {
        self.verdict
    }

    fn reasons(&self) -> &[Note] {
        &self.reasons
    }

    fn exit_code(&self) -> u8 {
        Self::exit_code(self)
    }

    fn duration_s(&self) -> f64 {
        self.duration_s
    }

    fn ports(&self) -> &[PortSummary] {
        &self.carrier().ports
    }

    fn queues(&self) -> &[QueueSummary] {
        &self.carrier().queues
    }

    fn workers(&self) -> &[WorkerSummary] {
        &self.carrier().workers
    }

    fn pool(&self) -> &PoolSummary {
        &self.carrier().pool
    }

    fn clock(&self) -> &ClockSummary {
        &self.carrier().clock
    }

    fn explanation(&self) -> Option<&Explanation> {
        self.carrier().explanation.as_ref()
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }
}
