//! Why an interface does not get the rules, in one line that names what mends it.

use anyhow::{Error, anyhow};
use host::Sys;
use xdp::{AttachError, PROGRAM, Why};

const ENOSYS: i32 = 38;

/// Of what the kernel said.
pub fn attach(error: AttachError, name: &str) -> Error {
    match error {
        AttachError::Taken { name: Some(other) } if other == PROGRAM => anyhow!(
            "--dev {name}: rules of another dropless are in force there; fix: dropless filter status tells whose, dropless filter stop {name} ends them"
        ),
        AttachError::Taken { name: other } => {
            let who = other.map_or_else(String::new, |other| format!(" ({other})"));
            anyhow!(
                "--dev {name}: another XDP program{who} is attached to it, and is not replaced; fix: end whoever put it there, or take it off: ip link set dev {name} xdp off (of a BPF link: bpftool link detach id N)"
            )
        }
        AttachError::NotNative { .. } => anyhow!(
            "--dev {name}: {error}; fix: --mode generic (slower: the kernel makes a buffer of its own for each packet first)"
        ),
        AttachError::Other(source) if source.raw_os_error() == Some(ENOSYS) => no_bpf(name),
        AttachError::Program(error) => program(&error, name),
        AttachError::Other(_) | AttachError::Stay(_) => anyhow!("--dev {name}: {error}"),
    }
}

/// Of loading the program.
pub fn program(error: &xdp::Error, name: &str) -> Error {
    match error.why() {
        Why::NoRoom => anyhow!(
            "--dev {name}: these rules do not fit into the kernel's maps ({error}); fix: fewer prefixes, fewer --groups, or more memory"
        ),
        Why::NotAllowed => anyhow!(
            "--dev {name}: {error}; no capability is missing: seccomp, a security module or lockdown keeps this process from bpf(2); fix: run it where that is allowed (docker run: --security-opt seccomp=unconfined)"
        ),
        Why::NoBpf => no_bpf(name),
        Why::NoFiles => {
            anyhow!("--dev {name}: {error}; this process may open no more files; fix: raise `ulimit -n`")
        }
        Why::Refused => anyhow!(
            "--dev {name}: {error}: the verifier of this kernel ({}), or a security module, does not take the program; fix: another kernel of 5.18 or later, or filter in user space: dropless forward --rules",
            release()
        ),
        Why::Other => {
            let sys = Sys::live();
            let version = release();
            let types = if sys.exists("/sys/kernel/btf/vmlinux") {
                ""
            } else {
                ", without BTF"
            };
            anyhow!(
                "--dev {name}: {error} (kernel {version}{types}); fix: boot a kernel of 5.18 or later with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF, or filter in user space: dropless forward --rules"
            )
        }
    }
}

fn release() -> String {
    Sys::live().kernel_release().unwrap_or_default()
}

fn no_bpf(name: &str) -> Error {
    anyhow!(
        "--dev {name}: this kernel has no BPF; fix: boot a kernel with CONFIG_BPF_SYSCALL, or filter in user space: dropless forward --rules"
    )
}
