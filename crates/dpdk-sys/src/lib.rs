//! Raw bindings to the C shim around DPDK's inline functions: `shim/shim.h` says what each one does.
#![allow(missing_docs, reason = "generated from shim.h, which documents each item")]
#![allow(non_camel_case_types, non_upper_case_globals, reason = "the names are C's")]
#![allow(clippy::pedantic, unused_qualifications, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
