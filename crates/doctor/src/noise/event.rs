//! The kernel's events that say what a core does, with their meaning.

use std::collections::HashMap;

use super::cause::Cause;
use super::format::Format;

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
