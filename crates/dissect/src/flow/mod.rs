//! Who talks to whom: packets joined by their addresses and ports, in bounded memory.

mod connections;
mod count;
mod table;
mod talkers;

pub use connections::{Connection, Connections, End};
pub use count::{Count, Evicted};
pub use talkers::{Talker, Talkers};
