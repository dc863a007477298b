//! What a user sees of `dropless`, one module a topic: one executable, because each would be built with everything again.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod absence;
mod attach;
mod capture;
mod capture_files;
mod capture_guests;
mod capture_limits;
mod capture_wanted;
mod capture_watched;
mod cli;
mod compare;
mod config;
mod dashboard;
mod doctor;
mod dumps;
mod elsewhere;
mod extcap;
mod filter;
mod filter_flood;
mod filter_import;
mod filter_refused;
mod filter_run;
mod filter_samples;
mod fooled;
mod forward;
mod forward_beside;
mod forward_lengths;
mod guard;
mod guard_ports;
mod guard_sources;
mod health;
mod hostile;
mod hosts;
mod ids;
mod interfaces;
mod interrupted;
mod kernel_peer;
mod kernel_port;
mod ledger;
mod load;
mod locale;
mod manager;
mod memif;
mod memif_ends;
mod metrics;
mod metrics_clients;
mod names;
mod on_wire;
mod packet;
mod pcap;
mod placement;
mod ports;
mod read;
mod read_ring;
mod replay;
mod replay_limits;
mod report_command;
mod report_page;
mod report_refused;
mod restart;
mod rights;
mod robust;
mod search;
mod search_oracle;
mod search_path;
mod soak;
mod support;
mod support_itself;
mod tap;
mod testpmd;
mod thief;
mod top;
mod tune;
mod vhost;
mod watched;
mod wrong_uses;
mod xdp;
