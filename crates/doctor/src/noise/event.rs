//! The kernel's events that say what a core does, with their meaning.

use std::collections::HashMap;
use std::fmt;

use super::format::Format;

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

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Something begins, on top of what ran.
    Enter(Cause),
    /// It ends.
    Leave,
    /// The core goes to another task.
    Switch {
        /// The task before.
        from: u32,
        /// The state that it is in now: see [`Cause::away_in`].
        state: u32,
        /// The task after; 0 is the idle task.
        to: u32,
        /// Its name.
        name: String,
    },
    /// The function that the interrupt under way is for, by its address.
    Function(u64),
    /// The softirq under way has polled this network interface.
    Polled(String),
    /// The softirq under way has completed a request of this disk, by the kernel's number for it.
    Completed(u32),
    /// A task begins a work item, which calls the function at this address.
    Work {
        /// The task.
        pid: u32,
        /// The address.
        function: u64,
    },
    /// It ends it.
    WorkDone {
        /// The task.
        pid: u32,
    },
    /// A timer expires, on top of what ran, and calls the function at this address.
    Timer(u64),
    /// A task begins a system call.
    Call {
        /// The task.
        pid: u32,
        /// The call's number.
        number: u64,
    },
    /// A task ends its system call.
    Return {
        /// The task.
        pid: u32,
    },
    /// An interrupt is sent to other cores.
    Send {
        /// The core, where it is one.
        to: Option<u32>,
        /// The task that sends it.
        pid: u32,
    },
}

/// The events that come in pairs, by the cause that both stand for.
pub const PAIRS: [(&str, &str, &str); 13] = [
    ("timer", "hrtimer_expire_entry", "hrtimer_expire_exit"),
    ("irq", "irq_handler_entry", "irq_handler_exit"),
    ("irq", "softirq_entry", "softirq_exit"),
    ("irq_vectors", "local_timer_entry", "local_timer_exit"),
    ("irq_vectors", "reschedule_entry", "reschedule_exit"),
    ("irq_vectors", "call_function_entry", "call_function_exit"),
    (
        "irq_vectors",
        "call_function_single_entry",
        "call_function_single_exit",
    ),
    ("irq_vectors", "irq_work_entry", "irq_work_exit"),
    ("irq_vectors", "x86_platform_ipi_entry", "x86_platform_ipi_exit"),
    ("irq_vectors", "thermal_apic_entry", "thermal_apic_exit"),
    ("irq_vectors", "threshold_apic_entry", "threshold_apic_exit"),
    ("irq_vectors", "error_apic_entry", "error_apic_exit"),
    ("irq_vectors", "spurious_apic_entry", "spurious_apic_exit"),
];

/// The events that stand alone.
pub const SINGLES: [(&str, &str); 10] = [
    ("napi", "napi_poll"),
    ("block", "block_rq_complete"),
    ("workqueue", "workqueue_execute_start"),
    ("workqueue", "workqueue_execute_end"),
    ("signal", "signal_deliver"),
    ("sched", "sched_switch"),
    ("csd", "csd_function_entry"),
    ("exceptions", "page_fault_user"),
    ("exceptions", "page_fault_kernel"),
    ("nmi", "nmi_handler"),
];

/// The events of the other cores that name who sent an interrupt here.
pub const SENDERS: [(&str, &str); 2] = [("ipi", "ipi_send_cpu"), ("ipi", "ipi_send_cpumask")];
/// The events of our own threads that name the system call in which they did.
pub const CALLS: [(&str, &str); 2] = [("raw_syscalls", "sys_enter"), ("raw_syscalls", "sys_exit")];

/// The system calls that interrupt other cores, by number (kernel: `arch/x86/entry/syscalls/syscall_64.tbl`).
pub const CALL_NAMES: [(u64, &str); 10] = [
    (9, "mmap"),
    (10, "mprotect"),
    (11, "munmap"),
    (12, "brk"),
    (25, "mremap"),
    (28, "madvise"),
    (157, "prctl"),
    (203, "sched_setaffinity"),
    (321, "bpf"),
    (324, "membarrier"),
];

/// Reads records by the formats of the running kernel.
#[derive(Debug, Default)]
pub struct Decoder {
    known: HashMap<u16, (&'static str, Format)>,
}

impl Decoder {
    /// Learns an event: its name and the text of its `format` file.
    pub fn learn(&mut self, name: &'static str, format: &str) {
        if let Some(format) = Format::parse(format) {
            self.known.insert(format.id, (name, format));
        }
    }

    /// What a record says; `None` for one that is not known.
    pub fn decode(&self, record: &[u8]) -> Option<Event> {
        let id = u16::from_le_bytes(*record.first_chunk()?);
        let (name, format) = self.known.get(&id)?;
        let number = |field: &str| format.number(record, field);
        Some(match *name {
            "irq_handler_entry" => Event::Enter(Cause::Irq {
                number: number("irq")? as u32,
                name: format.text(record, "name")?,
            }),
            "softirq_entry" => Event::Enter(Cause::Softirq {
                vector: number("vec")? as u32,
                device: None,
                after: None,
            }),
            "sched_switch" => Event::Switch {
                from: number("prev_pid")? as u32,
                state: number("prev_state")? as u32,
                to: number("next_pid")? as u32,
                name: format.text(record, "next_comm")?,
            },
            "block_rq_complete" => Event::Completed(number("dev")? as u32),
            "workqueue_execute_start" => Event::Work {
                pid: number("common_pid")? as u32,
                function: number("function")?,
            },
            "workqueue_execute_end" => Event::WorkDone {
                pid: number("common_pid")? as u32,
            },
            "napi_poll" => Event::Polled(format.text(record, "dev_name")?),
            "hrtimer_expire_entry" => Event::Timer(number("function")?),
            "signal_deliver" => Event::Enter(Cause::Signal(number("sig")? as u32)),
            "sys_enter" => Event::Call {
                pid: number("common_pid")? as u32,
                number: number("id")?,
            },
            "sys_exit" => Event::Return {
                pid: number("common_pid")? as u32,
            },
            "csd_function_entry" => Event::Function(number("func")?),
            "page_fault_user" | "page_fault_kernel" => Event::Enter(Cause::PageFault),
            "nmi_handler" => Event::Enter(Cause::Nmi),
            "ipi_send_cpu" => Event::Send {
                to: Some(number("cpu")? as u32),
                pid: number("common_pid")? as u32,
            },
            "ipi_send_cpumask" => Event::Send {
                to: None,
                pid: number("common_pid")? as u32,
            },
            "call_function_entry" | "call_function_single_entry" => Event::Enter(Cause::Call {
                function: "call".into(),
                from: None,
            }),
            entry if entry.ends_with("_entry") => Event::Enter(Cause::Vector(entry.strip_suffix("_entry")?)),
            _ => Event::Leave,
        })
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
