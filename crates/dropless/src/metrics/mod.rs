//! `--metrics`: the state of a run in Prometheus' text format, and its health, over HTTP.

mod clients;
mod families;
mod server;

pub use server::Service;

pub use families::exposition;
