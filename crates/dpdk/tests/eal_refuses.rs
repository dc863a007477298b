//! What DPDK refuses: the error quotes DPDK, names the argument, and nothing is printed over the user's terminal.

use dpdk::{Eal, EalError};

#[test]
fn a_refused_start_says_why() {
    let help = Eal::init(&["--help".to_owned()]).unwrap_err();
    assert!(matches!(help, EalError::Help(_)), "{help}");

    let arguments = [
        "--no-huge",
        "--no-pci",
        "--no-shconf",
        "--file-prefix",
        "dl-refuses",
        "--no-such-thing",
    ];
    let refused = Eal::init(&arguments.map(str::to_owned)).unwrap_err().to_string();
    assert!(
        refused.contains("unrecognized option '--no-such-thing'"),
        "{refused}"
    );
    assert!(
        !refused.contains("EAL Linux options"),
        "the usage is no help: {refused}"
    );

    let again = Eal::init(&[]).unwrap_err();
    assert!(matches!(again, EalError::AlreadyStarted), "{again}");
}
