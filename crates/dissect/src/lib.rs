//! Packets for people and for scripts: one line each, as `tcpdump -n` has them, and the flows that they make.
//!
//! Headers are found by [`wire`], which says for the whole project what a frame is; [`View`] takes it behind every kind of
//! link. Of a packet nothing but numbers and fixed words gets into text: no byte of it can reach a terminal. What a file says
//! in words ([`capture::input::Packet::comment`]) is made plain first.
//!
//! No I/O, and no allocation a packet.
#![forbid(unsafe_code)]

mod bytes;
mod clock;
pub mod flow;
mod foreign;

mod json;
mod line;
mod names;
mod text;
mod view;

pub use names::protocol as protocol_name;

pub use clock::{Clock, TimeFormat};
pub use json::json;
pub use line::{Printer, Show};
pub use text::Text;
pub use view::{Network, View};
