//! The end of a memif server whose client goes on calling.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Lab, require};

const LIMIT: Duration = Duration::from_secs(30);

/// As on a machine that has no time: long between the stop of a port and its end, and between that and the end of the process.
const SLOW: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int rte_eth_dev_close(uint16_t port)
{
    int (*close)(uint16_t) = dlsym(RTLD_NEXT, "rte_eth_dev_close");

    usleep(300000);
    int result = close(port);
    fprintf(stderr, "closed\n");
    return result;
}

int rte_eal_cleanup(void)
{
    int (*cleanup)(void) = dlsym(RTLD_NEXT, "rte_eal_cleanup");

    for (int tenths = 0; tenths < 300 && access("gone", F_OK) != 0; tenths++)
        usleep(100000);
    return cleanup();
}
"#;

/// A library to be loaded before DPDK's.
fn slow(lab: &Lab) -> String {
    let (source, library) = (lab.path("slow.c"), lab.path("slow.so"));
    std::fs::write(&source, SLOW).expect("a file");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(made.expect("cc").success());
    library.display().to_string()
}

/// It was taken in by a port that was gone, and its going ended the server by SIGSEGV.
#[test]
fn a_client_may_call_while_its_server_ends() {
    let Some(lab) = require(&[]) else { return };
    let common = ["--json", "--quiet", "--no-doctor", "--no-huge", "--port"];
    let far = [&["reflect"], &common[..], &["memif:m.sock"]].concat();
    let far = lab.dropless(&far).spawn();
    let load = [
        "memif:m.sock,server",
        "--count",
        "1k",
        "--rate",
        "10kpps",
        "--drain",
        "100ms",
    ];
    let near = [&["send"], &common[..], &load].concat();
    let mut near = lab.dropless(&near).env("LD_PRELOAD", &slow(&lab)).spawn();
    near.wait_for("closed", LIMIT);
    far.signal(Signal::SIGINT);
    let far = far.wait(LIMIT);
    std::fs::write(lab.path("gone"), "").expect("a file");
    let near = near.wait(LIMIT);
    assert_eq!(far.code, Some(0), "{far}");
    assert!(near.code.is_some(), "{near}");
    assert!(near.json()["verdict"].is_string(), "{near}");
}
