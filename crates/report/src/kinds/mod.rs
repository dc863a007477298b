//! The kinds of result, one a file. A further one is its file and its name in the list.

use crate::kind::Entry;

pub mod intervals;
pub mod unfinished;

macro_rules! kinds {
    ($($name:ident,)*) => {
        $(pub mod $name;)*

        /// Every kind that a run directory can hold.
        pub const ALL: &[&Entry] = &[$(&$name::KIND),*];
    };
}

kinds! {
    send,
    reflect,
    capture,
    forward,
    replay,
    filter,
    guard,
    search,
    compare,
    noise,
}
