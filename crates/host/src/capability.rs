//! The Linux capabilities that ports need.

use std::fmt;

/// A Linux capability by its number in `capability.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Configure interfaces, attach XDP programs, create TAP devices.
    NetAdmin = 12,
    /// Open packet sockets.
    NetRaw = 13,
    /// Lock any amount of memory.
    IpcLock = 14,
    /// Everything not split off; here: physical addresses from `/proc/self/pagemap`.
    SysAdmin = 21,
    /// Load BPF programs (5.8 and later; before, [`Capability::SysAdmin`]).
    Bpf = 39,
    /// Load programs that the verifier must follow pointers in.
    Perfmon = 38,
    /// Bind UDP ports below 1024.
    NetBindService = 10,
}

impl Capability {
    /// Its bit in the masks of `/proc/PID/status`.
    pub const fn mask(self) -> u64 {
        1 << self as u64
    }

    /// Its name for setcap.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "cap_net_admin",
            Self::NetRaw => "cap_net_raw",
            Self::IpcLock => "cap_ipc_lock",
            Self::SysAdmin => "cap_sys_admin",
            Self::Bpf => "cap_bpf",
            Self::Perfmon => "cap_perfmon",
            Self::NetBindService => "cap_net_bind_service",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().to_ascii_uppercase())
    }
}
