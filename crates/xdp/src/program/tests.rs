//! How much of what the kernel's verifier grants is used, and what is made of a refusal.

use libbpf_rs::{ErrorExt as _, libbpf_sys as sys};
use rules::Tables;

use super::{Error, Filter, Groups, Why, told};

/// The verifier gives up after a million instructions; other kernels walk more of them than this one.
const WALKED_MAX: u32 = 200_000;

/// Of every condition a few, so that each table is there.
const ALL: &str = "\
allow dport 7 from 10.0.0.0/8 tcp flags syn vlan 7
allow from 2001:db8::/32,2001:db9::1,10.0.0.0/8,10.64.1.0/24,11.1.1.1,12.1.1.1,13.1.1.1 fragment later
allow arp
allow to 2001:db8::/32,2001:db9::1,10.0.0.0/8,10.64.1.0/24,11.1.1.1,12.1.1.1,13.1.1.1 udp sport 7
allow icmp type 8
";
const RATES: &str = "\
rate 1pps per source burst 1
rate 1pps per destination/24,32 burst 1 udp dport 7
";

/// Instructions that the verifier walked until it took the program.
fn walked(filter: &Filter) -> u32 {
    let mut info = sys::bpf_prog_info::default();
    let mut len = size_of::<sys::bpf_prog_info>() as u32;
    let to = (&raw mut info).cast();
    // SAFETY: the descriptor lives as long as the filter, and `info` is as long as told.
    let failed = unsafe { sys::bpf_obj_get_info_by_fd(filter.program().unwrap(), to, &raw mut len) };
    assert_eq!(failed, 0);
    info.verified_insns
}

#[test]
fn the_verifier_is_far_from_giving_up() {
    for (all, rates, malformed) in [
        (0, "", ""),
        (1, "", ""),
        (40, "", ""),
        (1, RATES, ""),
        (40, RATES, "deny malformed\n"),
    ] {
        let text = format!("{malformed}{}{rates}deny\n", ALL.repeat(all));
        let set = rules::parse("test.rules", &|_| Ok(text.clone())).unwrap();
        let tables = Tables::new(&set).unwrap();
        for tells in [false, true] {
            match Filter::load(&tables, Groups::New(1 << 10), tells) {
                // Of who may not load programs nothing can be said; tests/agree.rs says that it was skipped.
                Err(error) if error.why() == Why::NotAllowed => return,
                loaded => assert!(walked(&loaded.unwrap()) < WALKED_MAX, "{text}"),
            }
        }
    }
}

#[test]
fn a_refusal_is_told_by_the_code_of_the_kernel() {
    let codes = [
        (1, Why::NotAllowed),
        (7, Why::NoRoom),
        (12, Why::NoRoom),
        (13, Why::Refused),
        (22, Why::Other),
        (24, Why::NoFiles),
        (38, Why::NoBpf),
    ];
    for (code, why) in codes {
        let error = || libbpf_rs::Error::from_raw_os_error(code);
        let about = error().context("an object").context("a program");
        for error in [error(), about] {
            assert_eq!(told("loading")(error).why(), why, "{code}");
        }
    }
    assert_eq!(Error::Missing("map").why(), Why::Other);
}
