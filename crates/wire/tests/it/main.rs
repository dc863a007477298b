//! Frames against an independent, slow reading of the same formats.

mod answer;
mod common;
mod flow;
mod foreign;
mod numbers;
mod parse;
mod receive;
mod reflect;
mod template;
