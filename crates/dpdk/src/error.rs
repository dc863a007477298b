//! What can go wrong, said with DPDK's own last words where it had any.

use std::io;

use thiserror::Error;

/// The operating system's words for a negative errno that DPDK returned.
pub(crate) fn os_error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code.saturating_abs())
}

/// The DPDK environment could not be started.
#[derive(Debug, Error)]
pub enum EalError {
    /// EAL starts once in the life of a process.
    #[error("DPDK was already started in this process, and starts only once; fix: run a new process")]
    AlreadyStarted,
    /// EAL would print its help and end the process as if all were well.
    #[error(
        "the EAL argument {0:?} asks for help, and DPDK would end the program with it; fix: see `man dpdk-testpmd`, or remove it"
    )]
    Help(String),
    /// An argument holds a zero byte.
    #[error("the EAL argument {0:?} holds a zero byte; fix: remove it")]
    Argument(String),
    /// `rte_pdump_init` refused.
    #[error("DPDK does not serve dpdk-dumpcap and dpdk-pdump: {0}; fix: leave --dpdk-tools out")]
    Dumps(io::Error),
    /// `rte_eal_init` refused.
    #[error("DPDK did not start with `{arguments}`: {source}{}", tail(log))]
    Init {
        /// The arguments, joined by spaces.
        arguments: String,
        /// What `rte_errno` said.
        source: io::Error,
        /// DPDK's last log lines.
        log: Vec<String>,
    },
}

/// A packet buffer pool could not be made.
#[derive(Debug, Error)]
pub enum PoolError {
    /// `rte_pktmbuf_pool_create` refused.
    #[error(
        "no pool {name:?} of {size} buffers of {room} bytes ({mib} MiB): {source}; fix: more memory for DPDK (hugepages, or -m) or fewer buffers{}",
        tail(log)
    )]
    Create {
        /// The pool's name.
        name: String,
        /// Buffers wanted.
        size: usize,
        /// Room of each, bytes.
        room: usize,
        /// All of it, MiB.
        mib: usize,
        /// What `rte_errno` said.
        source: io::Error,
        /// DPDK's last log lines.
        log: Vec<String>,
    },
    /// The name, size or room is outside of what DPDK takes.
    #[error("pool {name:?}: {problem}")]
    Invalid {
        /// The pool's name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// A port could not be found, configured, started or asked.
#[derive(Debug, Error)]
pub enum PortError {
    /// No such port.
    #[error("no port {name:?}; DPDK has {}{}", list(ports), tail(log))]
    Unknown {
        /// The name asked for.
        name: String,
        /// What there is.
        ports: Vec<String>,
        /// DPDK's last log lines: why it made no such port.
        log: Vec<String>,
    },
    /// The port was opened before in this process.
    #[error("port {0:?} is in use already: a port is opened once")]
    Taken(String),
    /// The configuration cannot be.
    #[error("port {name:?}: {problem}")]
    Invalid {
        /// The port's name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The driver refused a step.
    #[error("port {name:?}: {step}: {source}{}", tail(log))]
    Driver {
        /// The port's name.
        name: String,
        /// What was being done.
        step: String,
        /// The driver's error.
        source: io::Error,
        /// DPDK's last log lines.
        log: Vec<String>,
    },
}

/// A worker thread could not be made ready.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The operating system gave no thread.
    #[error("no thread for worker {name:?}: {source}")]
    Spawn {
        /// The worker's name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The core is absent or not allowed.
    #[error("worker {name:?} cannot run on core {core}: {source}; fix: choose a core of `taskset -cp $$`")]
    Pin {
        /// The worker's name.
        name: String,
        /// The core wanted.
        core: usize,
        /// Why.
        source: io::Error,
    },
    /// DPDK has no place for one more thread, or is not started.
    #[error("DPDK does not take worker {name:?} as its thread: {source}")]
    Register {
        /// The worker's name.
        name: String,
        /// Why.
        source: io::Error,
    },
}

fn tail(log: &[String]) -> String {
    log.iter()
        .fold(String::new(), |text, line| text + "\n  DPDK: " + line)
}

fn list(ports: &[String]) -> String {
    if ports.is_empty() {
        "no ports".to_owned()
    } else {
        ports.join(", ")
    }
}
