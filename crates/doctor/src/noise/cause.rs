//! What takes a core away from its program, and what an engineer calls it.

use std::fmt;

/// What takes a core away from its program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A device's interrupt.
    Irq {
        /// Its number, as in `/proc/interrupts`.
        number: u32,
        /// Its handler's name.
        name: String,
    },
    /// Deferred work of the kernel.
    Softirq {
        /// Its number: see [`SOFTIRQS`].
        vector: u32,
        /// The network interface that it polls, of `NET_RX`; the disk that it serves, of `BLOCK`.
        device: Option<String>,
        /// What ran before it in the same stall, and most likely raised it.
        after: Option<Box<Cause>>,
    },
    /// An interrupt of the core's own interrupt controller, by the kernel's name for it; `local_timer` is the tick.
    Vector(&'static str),
    /// A function that another core had run here.
    Call {
        /// The function.
        function: String,
        /// Who asked for it, where that was seen.
        from: Option<Sender>,
    },
    /// A timer other than the tick, by the function that it calls.
    Timer(String),
    /// Another task.
    Task {
        /// Its id.
        pid: u32,
        /// Its name, at most 15 characters.
        name: String,
        /// The function of the work item that it is at, of a `kworker`.
        work: Option<String>,
    },
    /// Nobody ran, and not because the program waited: it was not allowed to. Of the kinds of quota only that of a cgroup
    /// is counted.
    NotRunnable,
    /// The quota of a cgroup was used up, and the kernel counted that.
    Quota,
    /// The program was stopped, by a signal or by a debugger.
    Stopped,
    /// The program itself waited in the kernel.
    Waiting,
    /// The program was moved to this core, and is not, or was not, on its own.
    Moved(u32),
    /// A signal to the program itself, and its handler.
    Signal(u32),
    /// A page fault of the program itself.
    PageFault,
    /// A non-maskable interrupt.
    Nmi,
    /// What the program did itself, between two polls.
    OwnWork,
    /// Nothing that the kernel saw.
    Outside,
    /// Of that what the kernel counts as stolen.
    Stolen,
    /// Events of the kernel were lost then.
    Unrecorded,
}

impl Cause {
    /// Why a task that leaves the processor in this state cannot go on: the bits of `prev_state` (kernel:
    /// `include/linux/sched.h`, `TASK_REPORT`). `None` is one that could, and has to make way for another.
    pub fn away_in(state: u32) -> Option<Self> {
        const STOPPED: u32 = 0x4;
        const TRACED: u32 = 0x8;
        /// Beyond these there is only that it was preempted.
        const REPORTED: u32 = 0xFF;
        match state & REPORTED {
            0 => None,
            state if state & (STOPPED | TRACED) != 0 => Some(Self::Stopped),
            _ => Some(Self::Waiting),
        }
    }
}

/// Who sent an inter-processor interrupt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sender {
    /// The core it ran on.
    pub core: u32,
    /// The task it ran in: `hog, 77`, or `own process: munmap`.
    pub who: std::sync::Arc<str>,
}

/// The names of the softirqs, by number (kernel: `include/linux/interrupt.h`).
pub const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Irq { number, name } => write!(f, "IRQ {number} {name}"),
            Self::Softirq {
                vector,
                device,
                after,
            } => {
                match SOFTIRQS.get(*vector as usize) {
                    Some(name) => write!(f, "softirq {name}")?,
                    None => write!(f, "softirq {vector}")?,
                }
                if let Some(device) = device {
                    write!(f, " of {device}")?;
                }
                match after {
                    Some(cause) => write!(f, " after {}", Short(cause)),
                    None => Ok(()),
                }
            }
            Self::Vector("local_timer") => f.write_str("tick"),
            Self::Vector(name) => f.write_str(name),
            Self::Call { function, from } => {
                write!(f, "IPI {function}")?;
                match from {
                    Some(Sender { core, who }) => write!(f, " from CPU {core} ({who})"),
                    None => Ok(()),
                }
            }
            Self::Timer(function) => write!(f, "timer {function}"),
            Self::Signal(number) => match i32::try_from(*number).map(nix::sys::signal::Signal::try_from) {
                Ok(Ok(signal)) => write!(f, "signal {signal}"),
                _ => write!(f, "signal {number}"),
            },
            Self::Task {
                name,
                work: Some(function),
                ..
            } => write!(f, "preempted by {name}: {function}"),
            Self::Task {
                pid,
                name,
                work: None,
            } => write!(f, "preempted by {name} ({pid})"),
            Self::NotRunnable => f.write_str("not runnable: nobody ran"),
            Self::Quota => f.write_str("not runnable: cgroup quota"),
            Self::Stopped => f.write_str("stopped"),
            Self::Waiting => f.write_str("waiting"),
            Self::Moved(core) => write!(f, "moved to CPU {core}"),
            Self::PageFault => f.write_str("page fault"),
            Self::Nmi => f.write_str("NMI"),
            Self::OwnWork => f.write_str("its own work"),
            Self::Outside => f.write_str("outside the kernel (inferred)"),
            Self::Stolen => f.write_str("hypervisor (steal)"),
            Self::Unrecorded => f.write_str("not known: events of the kernel were lost"),
        }
    }
}

/// A cause within another's name.
struct Short<'c>(&'c Cause);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cause::Irq { number, .. } => write!(f, "IRQ {number}"),
            other => other.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_the_names_that_an_engineer_knows() {
        let irq = Cause::Irq {
            number: 38,
            name: "virtio2-input.0".into(),
        };
        let softirq = Cause::Softirq {
            vector: 3,
            device: Some("eth1".into()),
            after: Some(Box::new(irq.clone())),
        };
        let call = Cause::Call {
            function: "flush_tlb_func".into(),
            from: Some(Sender {
                core: 0,
                who: "hog, 77".into(),
            }),
        };
        let task = Cause::Task {
            pid: 9,
            name: "irqbalance".into(),
            work: None,
        };
        let names = [irq, softirq, call, task, Cause::Vector("local_timer")].map(|cause| cause.to_string());
        assert_eq!(
            names,
            [
                "IRQ 38 virtio2-input.0",
                "softirq NET_RX of eth1 after IRQ 38",
                "IPI flush_tlb_func from CPU 0 (hog, 77)",
                "preempted by irqbalance (9)",
                "tick"
            ]
        );
    }
}
