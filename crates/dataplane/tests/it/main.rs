//! The real loops over memory: what was put in is found again, to the packet.

mod bursts;
mod capture;
mod chained;
mod conservation;
mod flows;
mod forward;
mod rates;
mod reflect;
mod replay;
mod send;
mod support;
mod tap;
