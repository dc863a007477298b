//! Shows and keeps results: the run directory, the terminal, the live display. Knows `measure`'s result types only.
#![forbid(unsafe_code)]

pub mod atomic;
mod balance;
pub mod compare;
pub mod csv;
pub mod export;
mod files;
mod flows;
pub mod hgrm;
pub mod html;
pub mod input;
pub mod intervals;
pub mod json;
pub mod judged;
pub mod kind;
pub mod kinds;
pub mod list;
pub mod live;
pub mod load;
pub(crate) mod machine;
pub mod number;
pub mod ours;
pub mod out;
pub mod published;
pub mod read;
pub mod rows;
pub mod rundir;
mod sane;
mod sheet;
pub mod style;
pub mod table;
pub mod terminal;
pub mod utc;
pub mod wrap;

pub use files::{GAP_COLUMNS, STALL_COLUMNS};
pub use intervals::IntervalWriter;
pub use live::Live;
pub use out::Console;
pub use rundir::{RunDir, RunDirError, WriteError};
pub use style::{Stream, Style};
