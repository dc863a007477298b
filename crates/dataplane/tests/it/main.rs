//! The real loops over memory: what was put in is found again, to the packet.

mod capture;
mod chained;
mod conservation;
mod forward;
mod flows;
mod rates;
mod replay;
mod tap;
