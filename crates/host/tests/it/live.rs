//! The machine the tests run on, whatever it is.

use host::{PortUri, Sys, Usable, discover};
use std::process::Command;

#[test]
fn whatever_carries_a_role_is_never_offered_without_a_word() {
    let carriers = discover(&Sys::live());
    for carrier in carriers.iter().filter(|carrier| !carrier.roles.is_empty()) {
        let why = match &carrier.usable {
            Usable::Yes => panic!("{} is offered without a word", carrier.name),
            Usable::Caution { why } | Usable::No { why, .. } => why,
        };
        assert!(
            carrier.roles.iter().any(|role| why.contains(&role.to_string())),
            "{}: {why}",
            carrier.name
        );
    }
    let ring = carriers.iter().find(|carrier| carrier.name == "ring").unwrap();
    assert_eq!(ring.usable, Usable::Yes);
}

#[test]
fn the_default_route_agrees_with_the_kernels_own_tool() {
    let output = match Command::new("ip").args(["route", "get", "198.51.100.1"]).output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => return crate::skip::skip("needs ip and a default route"),
    };
    let interface = output
        .split_whitespace()
        .skip_while(|word| *word != "dev")
        .nth(1)
        .unwrap();
    let carriers = discover(&Sys::live());
    let carrier = carriers.iter().find(|carrier| carrier.name == interface).unwrap();
    assert!(carrier.roles.contains(&host::Role::DefaultRoute), "{carrier:?}");
}

#[test]
fn an_interface_in_a_named_namespace_is_found_by_entering_it() {
    let name = format!("dropless-host-{}", std::process::id());
    let interface = format!("dlh{}", std::process::id());
    let ip = |arguments: &[&str]| {
        Command::new("ip")
            .args(arguments)
            .output()
            .is_ok_and(|o| o.status.success())
    };
    if !ip(&["netns", "add", &name]) {
        return crate::skip::skip("needs leave to make network namespaces");
    }
    let made = ip(&[
        "-n", &name, "link", "add", &interface, "type", "veth", "peer", "name", "peer",
    ]);
    let line = host::check(
        &format!("packet:{interface}").parse::<PortUri>().unwrap(),
        &Sys::live(),
    );
    assert!(ip(&["netns", "delete", &name]));
    assert!(made);
    let line = line.unwrap_err().to_string();
    assert_eq!(
        line,
        format!(
            "packet:{interface}: interface {interface} is in another network namespace ({name}); \
             fix: ip netns exec {name} dropless <the same arguments>"
        )
    );
}
