//! Compiles the XDP program.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let source = "src/bpf/filter.bpf.c";
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let Some(folder) = std::env::var_os("OUT_DIR") else {
        return ExitCode::FAILURE;
    };
    let object = PathBuf::from(folder).join("filter.bpf.o");
    // Debian keeps what differs between architectures in a folder of its own, which clang does not look into for bpf.
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let compiled = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .arg(format!("-I/usr/include/{architecture}-linux-gnu"))
        .args(["-c", source, "-o"])
        .arg(&object)
        .status();
    match compiled {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!(
                "{clang} compiles the XDP program and cannot be started: {error}; `./dev setup` installs it"
            );
            ExitCode::FAILURE
        }
    }
}
