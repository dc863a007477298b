//! Finds DPDK through pkg-config, compiles the C shim against its headers and generates the bindings of the shim.

use std::{env, error::Error, path::PathBuf, process::Command};

const OLDEST: &str = "22.11";
/// What the shim itself calls; every other driver is loaded by EAL from its driver directory.
const LIBRARIES: [&str; 9] = [
    "rte_ethdev",
    "rte_mbuf",
    "rte_mempool",
    "rte_ring",
    "rte_eal",
    "rte_net_ring",
    "rte_net_vhost",
    "rte_pdump",
    "rte_vhost",
];
const SOURCES: [&str; 10] = [
    "burst",
    "drivers",
    "eal",
    "interrupts",
    "log",
    "nap",
    "pool",
    "port",
    "sockets",
    "unmap",
];

fn main() -> Result<(), Box<dyn Error>> {
    let found = pkg_config::Config::new()
        .atleast_version(OLDEST)
        .cargo_metadata(false)
        .probe("libdpdk")
        .map_err(|error| {
            format!("DPDK {OLDEST} or newer wanted: {error}\nfix: apt-get install libdpdk-dev")
        })?;
    for path in &found.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    // In the system's library directory pkg-config prints no -L at all.
    for library in LIBRARIES {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
    // A library of its own since 23.11.
    if found.libs.iter().any(|library| library == "rte_log") {
        println!("cargo:rustc-link-lib=dylib=rte_log");
    }

    // The pkg-config crate drops `-include rte_config.h` and `-march=…`, without which the inlines differ
    // from those the DPDK libraries were built with: the raw flags are asked for once more.
    let output = Command::new(env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into()))
        .args(["--cflags", "libdpdk"])
        .output()?;
    let flags: Vec<String> = String::from_utf8(output.stdout)?
        .split_whitespace()
        .map(str::to_owned)
        .collect();

    let mut shim = cc::Build::new();
    for source in SOURCES {
        shim.file(format!("shim/{source}.c"));
    }
    for flag in &flags {
        shim.flag(flag);
    }
    // The hot inlines are worth full optimisation in every profile.
    shim.opt_level(3)
        .std("gnu11")
        .warnings(true)
        .flag("-Wno-deprecated-declarations")
        .compile("dropless_shim");

    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("bindings.rs");
    bindgen::Builder::default()
        .header("shim/shim.h")
        .clang_args(&flags)
        .allowlist_function("dl_.*")
        .allowlist_type("dl_.*")
        .allowlist_var("DL_.*")
        .opaque_type("rte_.*")
        .prepend_enum_name(false)
        .layout_tests(false)
        .generate_comments(false)
        .generate()?
        .write_to_file(out)?;

    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    Ok(())
}
