//! Compiles the programs for the kernel.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode};

const PROGRAMS: [&str; 2] = ["filter", "probes"];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let Some(folder) = std::env::var_os("OUT_DIR") else {
        return ExitCode::FAILURE;
    };
    for program in PROGRAMS {
        match compile(&clang, program, &folder) {
            Ok(true) => {}
            Ok(false) => return ExitCode::FAILURE,
            Err(error) => {
                eprintln!(
                    "{clang} compiles the programs for the kernel and cannot be started: {error}; `./dev setup` installs it"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Whether the compiler took it.
fn compile(clang: &str, program: &str, folder: &OsStr) -> std::io::Result<bool> {
    // Debian keeps what differs between architectures in a folder of its own, which clang does not look into for bpf.
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let compiled = Command::new(clang)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .arg(format!("-I/usr/include/{architecture}-linux-gnu"))
        .args(["-c", &format!("src/bpf/{program}.bpf.c"), "-o"])
        .arg(Path::new(folder).join(format!("{program}.bpf.o")))
        .status()?;
    Ok(compiled.success())
}
