//! Shows and keeps results: the run directory, the terminal, the live display. Knows `measure`'s result types only.
#![forbid(unsafe_code)]

mod atomic;
pub mod json;
pub mod live;
pub mod number;
pub mod out;
pub mod rows;
pub mod rundir;
pub mod style;
pub mod table;
pub mod utc;

pub use live::{Live, Snapshot, Traffic};
pub use out::Console;
pub use rundir::{RunDir, RunDirError, WriteError};
pub use style::{Stream, Style};
