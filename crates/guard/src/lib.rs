//! Finds floods in samples of packets, and the narrowest rules that stop them.
//!
//! No I/O, no clock, no unsafe: packets and the time are arguments, and a seed decides what is left to chance, so that
//! every decision can be replayed. [`Guard::observe`] takes a sample, [`Guard::tick`] decides every [`TICK_NS`], and
//! [`Guard::rules`] is the text, in the language of `rules`, that is put before the user's own rules.
//!
//! Memory is bounded whatever is sent: the tables of destinations and sources keep the busiest in sets of a few (`heavy`), those of
//! known sources give newcomers away first (`known`), and samples lie in rings.
#![forbid(unsafe_code)]

mod baseline;
mod block;
mod class;
mod event;
mod explain;
mod flood;
mod guard;
mod heavy;
mod in_force;
mod known;
mod recent;
mod sample;
mod settings;
mod shape;
mod sources;
mod spread;
mod traffic;
mod watched;

pub use baseline::{Baseline, Learned};
pub use block::Action;
pub use class::{CLASSES, Class, amplifies};
pub use event::{Blocked, Event, Expired, Over, Refused};
pub use guard::{Guard, SETTLED_NS, TICK_NS};
pub use sample::Sample;
pub use settings::{Cap, Learn, Limit, Settings, Thresholds};
